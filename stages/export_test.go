package stages

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
)

// Items splits everything in and returns the items as a for_each would see them.
func Items(in io.Reader, max int64, kind DataKind) (data []string, text []bool, err error) {
	h := new(header)
	h.describe(about{Kind: kind})
	s := newItems(in, max, h)
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

// ValuesOf returns what the result of an item becomes.
func ValuesOf(data []byte, kind DataKind) []string {
	var list []string
	for _, v := range (about{Kind: kind}).values(data) {
		list = append(list, string(v))
	}
	return list
}

// Members returns the keys and values of an object, and whether data is one.
func Members(data []byte) (keys, values []string, ok bool) {
	members, err := readObject(data)
	for _, m := range members {
		keys, values = append(keys, m.key), append(values, string(m.value))
	}
	return keys, values, err == nil
}

// ParsePath reads a path and writes it again.
func ParsePath(text string) (string, error) {
	p, err := parsePath(text)
	return p.String(), err
}

// Follow returns what stands at a path in a JSON value, null for what is missing.
func Follow(ctx context.Context, text string, value []byte) (found []string, err error) {
	err = FollowEach(ctx, text, value, func(v []byte) { found = append(found, cmp.Or(string(v), "null")) })
	return found, err
}

// FollowEach gives what stands at a path to yield, nil for what is missing.
func FollowEach(ctx context.Context, text string, value []byte, yield func([]byte)) error {
	p, err := parsePath(text)
	if err != nil {
		return err
	}
	return p.each(ctx, value, func(v json.RawMessage) error { yield(v); return nil })
}

// PageArguments returns the conventional arguments that choose a page, and how each counts.
func PageArguments() (names, counts []string) {
	for _, a := range pageArguments {
		names = append(names, a)
		counts = append(counts, map[counting]string{countedPages: "from 1", countedItems: "from 0, by the items"}[countingOf(a)])
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

// ItemError returns the failure of item n of a for_each that fails with err.
func ItemError(err error, n int) error {
	return (&item{number: n, of: &each{forEach: &forEach{}}}).failure(err)
}
