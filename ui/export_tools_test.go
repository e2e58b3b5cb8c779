package ui

import (
	"encoding/json"
	"io"
	"net/url"
)

// ReadForm returns what a form made from a schema reads, and whether a value cannot be sent.
func ReadForm(schema json.RawMessage, entered url.Values) (args json.RawMessage, wrong bool) {
	f, _ := formOf(schema)
	f.enter(entered)
	args = f.json()
	return args, f.Any()
}

// Refilled reports whether a form shows some arguments as they are.
func Refilled(schema, args json.RawMessage) bool {
	f, _ := formOf(schema)
	return f.fill(args)
}

// FieldKinds returns the kinds of the fields of a form by their paths.
func FieldKinds(schema json.RawMessage) map[string]string {
	f, _ := formOf(schema)
	all := map[string]string{}
	var collect func(*Field)
	collect = func(f *Field) {
		for _, one := range f.Fields {
			all[one.Path] = one.Kind
			collect(one)
		}
	}
	collect(f)
	return all
}

// Blamed returns the sentences of a check by the paths of the fields that show them; those of none have the path "".
func Blamed(schema json.RawMessage, sentences ...string) map[string]string {
	f, _ := formOf(schema)
	all := map[string]string{}
	for _, rest := range f.blame(sentences) {
		all[""] = rest
	}
	var collect func(*Field)
	collect = func(f *Field) {
		for _, one := range f.Fields {
			if one.Wrong != "" {
				all[one.Path] = one.Wrong
			}
			collect(one)
		}
	}
	collect(f)
	return all
}

// Walk opens every value in some JSON, window by window, and returns how many there are.
func Walk(data io.ReaderAt, size int64, most int) (n int, err error) {
	w, err := values(data, 0, size, 0, most, maxCell)
	for {
		if err != nil {
			return n, err
		}
		for _, one := range w.Nodes {
			inner, err := walkNode(data, one, most)
			if n += 1 + inner; err != nil {
				return n, err
			}
		}
		if w.Next == 0 {
			return n, nil
		}
		w, err = values(data, w.Next, size, w.NextAt, most, maxCell)
	}
}

func walkNode(data io.ReaderAt, of Node, most int) (n int, err error) {
	if !of.Holds() {
		return 0, nil
	}
	w := NodeWindow{}
	for {
		if w, err = window(data, of.At, of.At+of.Size, w.Next, w.NextAt, most, maxCell); err != nil {
			return n, err
		}
		for _, one := range w.Nodes {
			inner, err := walkNode(data, one, most)
			if n += 1 + inner; err != nil {
				return n, err
			}
		}
		if w.Next == 0 {
			return n, nil
		}
	}
}

// FirstWindow reads what the page of a result reads of JSON.
func FirstWindow(data io.ReaderAt, size int64) error {
	root, err := values(data, 0, size, 0, 2, maxScalar)
	if err == nil {
		(&ResultView{}).structure(io.NewSectionReader(data, 0, size), root)
	}
	return err
}
