package quality

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Types is a set of jq's types.
type Types uint8

// The types.
const (
	Null Types = 1 << iota
	Bool
	Number
	String
	Array
	Object
)

// A Fact is what is true of one path, or claimed to be.
type Fact struct {
	Types    Types
	Optional bool            // some objects lack the key
	Values   map[string]bool // all strings, where they are few
}

func (f *Fact) addValue(v string) {
	if f.Values == nil {
		f.Values = map[string]bool{}
	}
	f.Values[v] = true
}

// Facts are those of all paths. A path is a row of keys, quoted behind a dot, of [] for the elements of arrays and
// of {} for the values of maps, whose keys are data; the root is empty.
type Facts map[string]*Fact

const (
	maxValues    = 12 // distinct strings that are few
	maxValueSize = 64 // bytes of each
)

// seen counts the values at one path.
type seen struct {
	types   Types
	objects int
	present int // objects above that have the key
	strings int
	values  map[string]int // nil once they are too many or too long
}

// Truth reads all documents of a set.
func Truth(set Set) (Facts, error) {
	all := map[string]*seen{}
	d := json.NewDecoder(strings.NewReader(set.Data))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the data: %w", err)
		}
		set.look(v, "", all)
	}
	facts := Facts{}
	for path, s := range all {
		f := &Fact{Types: s.types}
		if above, isKey := parent(path); isKey {
			f.Optional = s.present < all[above].objects
		}
		if n := len(s.values); n > 0 && s.strings >= 2*n {
			for v := range s.values {
				f.addValue(v)
			}
		}
		facts[path] = f
	}
	return facts, nil
}

func (set Set) look(v any, path string, all map[string]*seen) {
	s := all[path]
	if s == nil {
		s = &seen{values: map[string]int{}}
		all[path] = s
	}
	switch v := v.(type) {
	case nil:
		s.types |= Null
	case bool:
		s.types |= Bool
	case json.Number:
		s.types |= Number
	case string:
		s.types |= String
		s.addString(v)
	case []any:
		s.types |= Array
		for _, e := range v {
			set.look(e, set.below(path, "[]"), all)
		}
	case map[string]any:
		s.types |= Object
		s.objects++
		for k, e := range v {
			below := set.below(path, keySegment(k))
			set.look(e, below, all)
			all[below].present++
		}
	}
}

// below is the path of what is reached from path by a segment.
func (set Set) below(path, seg string) string {
	if seg[0] == '.' && slices.Contains(set.Maps, path) {
		seg = "{}"
	}
	if again, ok := set.Again[path+seg]; ok {
		return again
	}
	return path + seg
}

func (s *seen) addString(v string) {
	s.strings++
	if s.values == nil {
		return
	}
	s.values[v]++
	if len(v) > maxValueSize || len(s.values) > maxValues {
		s.values = nil
	}
}

func keySegment(key string) string { return "." + strconv.Quote(key) }

// parent cuts the last segment off and reports whether it is a key.
func parent(path string) (above string, isKey bool) {
	if above, ok := strings.CutSuffix(path, "[]"); ok {
		return above, false
	}
	if above, ok := strings.CutSuffix(path, "{}"); ok {
		return above, false
	}
	above = ""
	for _, seg := range segments(path) {
		if len(above)+len(seg) < len(path) {
			above += seg
		}
	}
	return above, path != ""
}

// segments cuts a path in pieces.
func segments(path string) (list []string) {
	for path != "" {
		n := 2
		if path[0] == '.' {
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil {
				return append(list, path)
			}
			n = 1 + len(quoted)
		}
		list = append(list, path[:n])
		path = path[n:]
	}
	return list
}
