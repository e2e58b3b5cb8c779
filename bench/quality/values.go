package quality

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Shown returns what can be claimed from values alone, with gaps between them: the beginning of
// JSON documents, or a sample. It is generous: a type counts as known when the values shown have it, and a key as
// optional when an object that is shown whole lacks it.
func Shown(text string) Facts {
	r := &valueReader{rest: text, facts: Facts{}, objects: map[string][]shownObject{}}
	for r.skip() && r.value("") {
	}
	for path, objects := range r.objects {
		for _, o := range objects {
			for _, other := range objects {
				for key := range other.keys {
					if f := r.facts[path+key]; !o.keys[key] && o.whole && f != nil {
						f.Optional = true
					}
				}
			}
		}
	}
	return r.facts
}

// valueReader reads JSON that may end anywhere and have comments, dots and cut strings in it.
type valueReader struct {
	rest    string
	facts   Facts
	objects map[string][]shownObject
}

type shownObject struct {
	keys  map[string]bool // as segments
	whole bool
}

var (
	leftOut = regexp.MustCompile(`^(?:/\*.*?\*/|…)`)
	aString = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)
	aWord   = regexp.MustCompile(`^(?:null|true|false|-?[0-9][0-9.eE+-]*)`)
)

// skip skips white space and commas and reports whether there is more.
func (r *valueReader) skip() bool {
	r.rest = strings.TrimLeft(r.rest, " \t\r\n,:")
	return r.rest != ""
}

// marks skips what says that something is left out.
func (r *valueReader) marks() (any bool) {
	for r.skip() {
		mark := leftOut.FindString(r.rest)
		if mark == "" {
			return any
		}
		any = true
		r.rest = r.rest[len(mark):]
	}
	return any
}

// value reads a value and reports whether more may follow.
func (r *valueReader) value(path string) bool {
	r.marks()
	if r.rest == "" {
		return false
	}
	switch c := r.rest[0]; {
	case c == '{':
		r.rest = r.rest[1:]
		r.facts.add(path, &Fact{Types: Object})
		return r.object(path)
	case c == '[':
		r.rest = r.rest[1:]
		r.facts.add(path, &Fact{Types: Array})
		for {
			r.marks()
			if r.rest == "" {
				return false
			}
			if r.rest[0] == ']' {
				r.rest = r.rest[1:]
				return true
			}
			if !r.value(path + "[]") {
				return false
			}
		}
	case c == '"':
		return r.str(path)
	}
	word := aWord.FindString(r.rest)
	if word == "" || word == r.rest { // a number may go on behind the end
		return false
	}
	r.rest = r.rest[len(word):]
	types := Number
	switch word[0] {
	case 'n':
		types = Null
	case 't', 'f':
		types = Bool
	}
	r.facts.add(path, &Fact{Types: types})
	return true
}

func (r *valueReader) str(path string) bool {
	f := &Fact{Types: String}
	quoted := aString.FindString(r.rest)
	r.rest = r.rest[len(quoted):]
	var text string
	if quoted != "" && json.Unmarshal([]byte(quoted), &text) == nil && !strings.HasSuffix(text, "…") {
		f.addValue(text)
	}
	r.facts.add(path, f)
	return quoted != ""
}

func (r *valueReader) object(path string) bool {
	o := shownObject{keys: map[string]bool{}, whole: true}
	defer func() { r.objects[path] = append(r.objects[path], o) }()
	for {
		if r.marks() {
			o.whole = false
		}
		if strings.HasPrefix(r.rest, "}") {
			r.rest = r.rest[1:]
			return true
		}
		key := aString.FindString(r.rest)
		if key == "" {
			o.whole = false
			return false
		}
		r.rest = r.rest[len(key):]
		seg := "." + quoted(key)
		o.keys[seg] = true
		if !r.value(path + seg) {
			o.whole = false
			return false
		}
	}
}
