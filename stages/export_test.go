package stages

import (
	"encoding/json"
	"io"
)

// Items splits everything in and returns the items as a for_each would see them.
func Items(in io.Reader, max int64) (data []string, text []bool, err error) {
	s := newItems(in, max)
	for {
		it, err := s.next()
		if err == io.EOF {
			return data, text, nil
		}
		if err != nil {
			return data, text, err
		}
		data, text = append(data, string(it.data)), append(text, it.text)
	}
}

// Values returns what the result of an item becomes.
func Values(data []byte) []string {
	var list []string
	for _, v := range values(data) {
		list = append(list, string(v))
	}
	return list
}

// Members returns the keys and values of an object, and whether data is one.
func Members(data []byte) (keys, values []string, ok bool) {
	members, err := parseObject(data)
	for _, m := range members {
		keys, values = append(keys, m.key), append(values, string(m.value))
	}
	return keys, values, err == nil
}

// Follow returns what stands at a path in a JSON value, and whether expression is one.
func Follow(expression string, value []byte) (found []string, ok bool, err error) {
	p, ok := parsePath(expression)
	if !ok {
		return nil, false, nil
	}
	err = p.each(value, func(v json.RawMessage) error { found = append(found, string(v)); return nil })
	return found, true, err
}

// PageArguments returns the conventional arguments that choose a page, and how each counts.
func PageArguments() (names, counts []string) {
	for _, a := range pageArguments {
		names = append(names, a.name)
		counts = append(counts, map[counting]string{countedPages: "from 1", countedItems: "from 0, by the items"}[a.counts])
	}
	return names, counts
}

// NextNames and ItemNames return the other conventions of pages.
func NextNames() (names []string) {
	for _, n := range nextNames {
		names = append(names, n.name)
	}
	return names
}

func ItemNames() []string { return itemNames }

// PatternOf returns what messages of one kind have in common.
func PatternOf(text string) string { return patternOf(text) }

// SameCall reports whether two argument objects make equal calls.
func SameCall(a, b []byte) bool { return keyOf(a) == keyOf(b) }

// OfItem reports whether a failure with a code is one of an item, and whether that is decided at all.
func OfItem(c Code) (ofOne, known bool) {
	ofOne, known = ofItem[c]
	return ofOne, known
}
