package stages

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// A pageForm is where the parts of a tool's pages stand. It is found in the first result and holds for all.
type pageForm struct {
	next  path // of what tells the next page; meaningless without paged
	more  path // of what says whether there is one, of a Relay connection
	paged bool // whether next was found
	items path // of the array of items; meaningless without listed
	node  bool // the items are the nodes of edges

	listed bool // whether items was found
}

// Bounds of the search for the parts of a page: what is deeper, or behind so many objects, is no envelope.
const (
	maxPageDepth   = 8
	maxPageObjects = 1000
)

// A formFinder searches a result for the conventions.
type formFinder struct {
	counts counting                   // of the argument
	fits   func(json.RawMessage) bool // whether a value can be the argument's
}

func (f formFinder) find(result json.RawMessage) *pageForm {
	form, holder := &pageForm{}, path{}
	breadthFirst(result, func(at path, object json.RawMessage) bool {
		next := f.best(at, object)
		if next != nil {
			form.next, form.more, form.paged, holder = next.at, next.more, true, at
		}
		return next == nil
	})
	form.findItems(result, holder)
	return form
}

// A nextPlace is a member that may tell the next page.
type nextPlace struct {
	at, more path
	value    bool // it holds one; else it says that there is none
	akin     bool // its name does not speak of another kind of paging
}

// best chooses what tells the next page in one object: its own members and those of "meta" and "pagination", before its
// "next". One that holds a value wins over one that says that there is none.
func (f formFinder) best(at path, object json.RawMessage) *nextPlace {
	all := f.places(at, object)
	last := slices.IndexFunc(all, func(p nextPlace) bool { return p.at[len(p.at)-1].key == "next" })
	if last < 0 {
		last = len(all)
	}
	var inner []nextPlace
	for _, name := range pageInfos {
		if info := memberOf(object, name); info[0] == '{' {
			inner = append(inner, f.places(at.with(name), info)...)
		}
	}
	all = slices.Insert(all, last, inner...)
	for _, good := range []func(nextPlace) bool{
		func(p nextPlace) bool { return p.value && p.akin },
		func(p nextPlace) bool { return p.value },
		func(nextPlace) bool { return true },
	} {
		if i := slices.IndexFunc(all, good); i >= 0 {
			return &all[i]
		}
	}
	return nil
}

// places returns the members of one object that may tell the next page, in the order of the table.
func (f formFinder) places(at path, object json.RawMessage) []nextPlace {
	found := make([]*nextPlace, len(nextNames))
	for key, value := range members(object) {
		i := slices.IndexFunc(nextNames, func(n nextName) bool { return n.name == key })
		if i < 0 {
			continue
		}
		p := &nextPlace{at: at.with(key), value: !isEmpty(value)}
		counts := nextNames[i].counts
		p.akin = counts == uncounted || counts == f.counts
		usable := p.akin || f.counts == uncounted
		if key == relayInfo {
			usable = value[0] == '{' && isBool(memberOf(value, relayMore))
			p.more, p.at = p.at.with(relayMore), p.at.with(relayCursor)
			if usable {
				value = memberOf(value, relayCursor)
			}
		}
		found[i] = nil // of two members of one name the last counts
		if usable && (isEmpty(value) || f.fits(value)) {
			found[i] = p
		}
	}
	var list []nextPlace
	for _, p := range found {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

// findItems finds the array of items: beside what tells the next page, or beside what holds that; else the result
// itself; else the first array breadth first, one that is not empty if there is one.
func (f *pageForm) findItems(result json.RawMessage, holder path) {
	for n := len(holder); n >= 0; n-- {
		object, err := holder[:n].one(result)
		if err != nil || object[0] != '{' {
			continue
		}
		for _, name := range itemNames {
			if v := memberOf(object, name); v[0] == '[' {
				f.items, f.listed, f.node = holder[:n].with(name), true, name == relayEdges
				return
			}
		}
	}
	if result[0] == '[' {
		f.items, f.listed = path{}, true
		return
	}
	breadthFirst(result, func(at path, object json.RawMessage) bool {
		for key, v := range members(object) {
			if v[0] != '[' || f.listed && trimBlank(v[1:])[0] == ']' {
				continue
			}
			f.items, f.listed = at.with(key), true
			if trimBlank(v[1:])[0] != ']' {
				return false
			}
		}
		return true
	})
}

// breadthFirst visits the objects of a result, those in arrays left out, until visit returns false.
func breadthFirst(result json.RawMessage, visit func(at path, object json.RawMessage) bool) {
	type place struct {
		at    path
		value json.RawMessage
	}
	queue := []place{{path{}, result}}
	for n := 0; n < len(queue); n++ {
		p := queue[n]
		if p.value[0] != '{' {
			continue
		}
		if !visit(p.at, p.value) {
			return
		}
		if len(p.at) == maxPageDepth {
			continue
		}
		for key, v := range members(p.value) {
			if v[0] == '{' && len(queue) < maxPageObjects {
				queue = append(queue, place{p.at.with(key), v})
			}
		}
	}
}

// isEmpty reports whether a value says that there is no next page.
func isEmpty(v json.RawMessage) bool {
	switch v[0] {
	case 'n', 'f':
		return true
	case '"':
		return len(v) == 2
	case '[', '{':
		end := trimBlank(v[1:])[0]
		return end == ']' || end == '}'
	}
	return false
}

func isBool(v json.RawMessage) bool { return v[0] == 't' || v[0] == 'f' }

// queryValue returns the argument's value from the query of a URL. isURL reports whether text is one at all: a path
// counts if it has a query.
func queryValue(text, arg string) (value string, isURL bool) {
	web := strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
	if !web && !(strings.HasPrefix(text, "/") || strings.HasPrefix(text, "?")) || !web && !strings.Contains(text, "?") {
		return "", false
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", web
	}
	return u.Query().Get(arg), web || u.Query().Has(arg)
}
