package stages

import (
	"slices"
	"strings"
)

// counting is how the values of an argument that chooses a page follow each other where no result names the next one.
type counting int

const (
	uncounted    counting = iota // only the tool knows the next value
	countedPages                 // one more for every page
	countedItems                 // as many more as there were items
)

// pageArguments are the names of arguments that choose a page, those first that leave the least to guess.
var pageArguments = []struct {
	name   string
	counts counting
}{
	{"cursor", uncounted},
	{"after", uncounted},
	{"page_token", uncounted},
	{"pageToken", uncounted},
	{"next_token", uncounted},
	{"nextToken", uncounted},
	{"starting_after", uncounted},
	{"page", countedPages},
	{"page_number", countedPages},
	{"pageNumber", countedPages},
	{"offset", countedItems},
	{"skip", countedItems},
}

// countedWords tell how an argument of another name counts, which a stage names itself: by the first of these that is
// part of the name, else as a page.
var countedWords = []struct {
	word   string
	counts counting
}{
	{"offset", countedItems},
	{"skip", countedItems},
	{"page", countedPages},
	{"start", countedItems},
	{"from", countedItems},
	{"begin", countedItems},
	{"first", countedItems},
}

// nextNames are the members of results that tell the next page, in the order in which one object is searched for them.
// Those of another counting than the argument's are about something else; uncounted ones fit all.
var nextNames = []nextName{
	{"next_page", countedPages},
	{"next_cursor", uncounted},
	{"nextCursor", uncounted},
	{"next_page_token", uncounted},
	{"nextPageToken", uncounted},
	{"next_token", uncounted},
	{"nextToken", uncounted},
	{"next_offset", countedItems},
	{relayInfo, uncounted},
	{"next", uncounted},
}

type nextName struct {
	name   string
	counts counting
}

// The members of a Relay connection: {"edges": [{"node": ITEM}], "pageInfo": {"endCursor", "hasNextPage"}}.
const (
	relayInfo   = "pageInfo"
	relayCursor = "endCursor"
	relayMore   = "hasNextPage"
	relayEdges  = "edges"
	relayNode   = "node"
)

// pageInfos are the members of results that hold what else would stand beside them.
var pageInfos = []string{"meta", "pagination"}

// itemNames are the members that hold the items of a page, beside what tells the next one.
var itemNames = []string{"items", "results", "data", "nodes", relayEdges}

// conventionOf returns the first conventional argument among the properties of a tool.
func conventionOf(properties []string) (name string, ok bool) {
	for _, a := range pageArguments {
		if slices.Contains(properties, a.name) {
			return a.name, true
		}
	}
	return "", false
}

// countingOf tells how an argument counts that takes a number.
func countingOf(name string) counting {
	for _, a := range pageArguments {
		if a.name == name {
			return a.counts
		}
	}
	for _, w := range countedWords {
		if strings.Contains(strings.ToLower(name), w.word) {
			return w.counts
		}
	}
	return countedPages
}

func argumentNames() []string {
	var names []string
	for _, a := range pageArguments {
		names = append(names, a.name)
	}
	return names
}
