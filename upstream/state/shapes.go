package state

import (
	"github.com/mcsh-dev/mcsh/preview/shape"
)

// Shapes are the shapes of the results of a server's tools, by the tool's name.
type Shapes map[string]Learned

// Learned is the shape of a tool's results, and the schema that the tool had when it was learned.
type Learned struct {
	Schema string        `json:"schema"` // a hash
	Result *shape.Result `json:"result"`
}

// Shapes reads what is known of a server. It may be empty.
func (d *Dir) Shapes(k Key) Shapes {
	s := Shapes{}
	if !d.read("shapes", k, maxShapes, &s) {
		return Shapes{}
	}
	for name, l := range s {
		if !l.Result.Known() {
			delete(s, name)
		}
	}
	return s
}

// SaveShapes puts what a gateway has learned together with what others have written meanwhile; of a tool whose schema
// differs there, what is given counts. keep tells whether a tool that others wrote of is still there; known tells
// the words that may be names of fields (see [shape.Result.Writable]).
func (d *Dir) SaveShapes(k Key, s Shapes, keep func(tool, schema string) bool, known func(tool string) func(word string) bool) error {
	all := Shapes{}
	for name, l := range d.Shapes(k) {
		if _, ours := s[name]; !ours && keep(name, l.Schema) {
			all[name] = Learned{l.Schema, l.Result.Writable(known(name))}
		} else if ours && l.Schema == s[name].Schema {
			all[name] = l
		}
	}
	for name, l := range s {
		result := l.Result
		if other, ok := all[name]; ok {
			result = shape.MergeResults(other.Result, result)
			result.Calls = max(other.Result.Calls, l.Result.Calls)
		}
		all[name] = Learned{l.Schema, result.Writable(known(name))}
	}
	return d.write("shapes", k, maxShapes, all)
}
