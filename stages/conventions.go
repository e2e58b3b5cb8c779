package stages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
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

// cursorArguments are the names of arguments that choose a page by what the page before tells.
var cursorArguments = []string{"cursor", "after", "page_token", "pageToken", "next_token", "nextToken", "starting_after"}

// pageArguments are the names of arguments that choose a page, those first that leave the least to guess.
var pageArguments = append(cursorArguments[:len(cursorArguments):len(cursorArguments)], "page", "page_number", "pageNumber", "offset", "skip")

// countedWords tell how an argument counts: by the first of these that is part of its name, else as a page.
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

// conventionOf returns the first conventional argument among the properties of a tool, or nothing.
func conventionOf(properties []string) string {
	for _, name := range pageArguments {
		if slices.Contains(properties, name) {
			return name
		}
	}
	return ""
}

// countingOf tells how an argument counts that takes a number.
func countingOf(name string) counting {
	if slices.Contains(cursorArguments, name) {
		return uncounted
	}
	for _, w := range countedWords {
		if strings.Contains(strings.ToLower(name), w.word) {
			return w.counts
		}
	}
	return countedPages
}

// A pageForm says where the parts of a tool's pages stand. It is found in the first result and holds for all of them.
type pageForm struct {
	next  path // to the value for the next page; nil: not found
	more  path // to what says whether there is a next page, in a Relay connection
	items path // to the array of items; nil: not found
	node  bool // the items are the nodes of edges
	cut   bool // the search ended at one of its bounds
}

// Bounds of the search for the parts of a page. Objects beyond them are data, not part of the envelope.
const (
	maxPageDepth   = 8
	maxPageObjects = 1000
	maxPageFields  = 200_000
	maxPageName    = 100 // bytes; a path of such names is short enough to be written in a stage
)

// searched names the part of a result that was searched, for errors.
func (f *pageForm) searched() string {
	if !f.cut {
		return "the result"
	}
	return fmt.Sprintf("the part of the result that is searched (%d levels, %d objects, %d fields)", maxPageDepth, maxPageObjects, maxPageFields)
}

// A formFinder searches a result for the conventions, breadth first.
type formFinder struct {
	counts counting                   // of the argument
	fits   func(json.RawMessage) bool // whether a value can be the argument's

	envelopes   []*envelope
	list, empty path // to the first array with elements, and to the first one without; nil: there is none
	fields      int  // searched
	cut         bool // the search ended at a bound
}

// An envelope is an object of a result that may hold the parts of a page.
type envelope struct {
	at     path
	around *envelope
	value  json.RawMessage
	fields map[string]json.RawMessage // those that the conventions name
}

// find searches for the value for the next page, then for the items: beside that value or around it, else the result
// itself, else the first array, one that is not empty if there is one. It ends at the bounds, and with ctx.
func (f *formFinder) find(ctx context.Context, result json.RawMessage) (*pageForm, error) {
	f.envelopes = []*envelope{{at: path{}, value: result}}
	for i := 0; i < len(f.envelopes); i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f.visit(f.envelopes[i])
	}
	form, holder := &pageForm{cut: f.cut}, f.envelopes[0]
	for _, e := range f.envelopes {
		if next := f.best(e); next != nil {
			form.next, form.more, holder = next.at, next.more, e
			break
		}
	}
	for e := holder; e != nil; e = e.around {
		for _, name := range itemNames {
			if kindOfValue(e.fields[name]) == '[' {
				form.items, form.node = e.at.with(name), name == relayEdges
				return form, nil
			}
		}
	}
	switch {
	case result[0] == '[':
		form.items = path{}
	case f.list != nil:
		form.items = f.list
	default:
		form.items = f.empty
	}
	return form, nil
}

// visit notes what an object holds, and the objects in it that are to be visited: all but those in arrays.
func (f *formFinder) visit(e *envelope) {
	if e.value[0] != '{' {
		return
	}
	e.fields = map[string]json.RawMessage{}
	for key, v := range members(e.value) {
		if f.fields++; f.fields > maxPageFields {
			f.cut = true
			return
		}
		if slices.Contains(itemNames, key) || slices.ContainsFunc(nextNames, func(n nextName) bool { return n.name == key }) {
			e.fields[key] = v // of two of one name the last counts
		}
		switch {
		case len(key) > maxPageName:
		case v[0] == '[' && isEmpty(v):
			if f.empty == nil {
				f.empty = e.at.with(key)
			}
		case v[0] == '[' && f.list == nil:
			f.list = e.at.with(key)
		case v[0] == '{' && len(e.at) < maxPageDepth && len(f.envelopes) < maxPageObjects:
			f.envelopes = append(f.envelopes, &envelope{at: e.at.with(key), around: e, value: v})
		case v[0] == '{':
			f.cut = true
		}
	}
}

// A nextPlace is a field that may hold the value for the next page. Those of the lowest rank are the likeliest.
type nextPlace struct {
	at, more path
	rank     int
}

const (
	rankValue   = iota
	rankForeign // a value, by a name of another kind of paging
	rankEmpty   // it says that there is no next page
)

// best returns the likeliest place in one object: among its own fields and those of "meta" and "pagination", before its
// "next".
func (f *formFinder) best(e *envelope) *nextPlace {
	last := len(nextNames) - 1
	all := f.places(e, nextNames[:last])
	for _, info := range pageInfos {
		for _, inner := range f.envelopes {
			if inner.around == e && inner.at[len(inner.at)-1].key == info {
				all = append(all, f.places(inner, nextNames)...)
			}
		}
	}
	all = append(all, f.places(e, nextNames[last:])...)
	if len(all) == 0 {
		return nil
	}
	best := slices.MinFunc(all, func(a, b nextPlace) int { return cmp.Compare(a.rank, b.rank) })
	return &best
}

func (f *formFinder) places(e *envelope, names []nextName) (all []nextPlace) {
	for _, n := range names {
		value, ok := e.fields[n.name]
		if !ok {
			continue
		}
		p := nextPlace{at: e.at.with(n.name)}
		akin := n.counts == uncounted || n.counts == f.counts
		switch {
		case isEmpty(value):
			p.rank = rankEmpty
		case !akin:
			p.rank = rankForeign
		}
		if n.name == relayInfo {
			if kindOfValue(value) != '{' || !isBool(memberOf(value, relayMore)) {
				continue
			}
			p.more, p.at = p.at.with(relayMore), p.at.with(relayCursor)
			value = memberOf(value, relayCursor)
		}
		if (akin || f.counts == uncounted) && (isEmpty(value) || f.fits(value)) {
			all = append(all, p)
		}
	}
	return all
}

func isBool(v json.RawMessage) bool { return kindOfValue(v) == 't' || kindOfValue(v) == 'f' }

// queryValue returns the argument's value from the query of a URL. isURL reports whether text is one at all: without a
// scheme only if its query has the argument. It allocates nothing for the rest of the query, however long.
func queryValue(text, arg string) (value string, isURL bool) {
	web := strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
	if !web && !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "?") {
		return "", false
	}
	text, _, _ = strings.Cut(text, "#")
	_, query, _ := strings.Cut(text, "?")
	for field := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(field, "=")
		if len(name) > len("%00")*len(arg) {
			continue
		}
		if name, err := url.QueryUnescape(name); err != nil || name != arg {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", web
}
