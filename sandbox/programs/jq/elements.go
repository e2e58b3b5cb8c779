package jq

import (
	"reflect"
	"slices"

	"github.com/itchyny/gojq"
)

// compileElements takes the program apart, if it can, for arrays too large to hold: f.each runs on every element by itself,
// and with f.inArray the results are the elements of one array again. These programs are such, and pipes of them:
//
//	.    map(f)    [.[] | f]    .[] | f    .[].a.b | f
//
// This gives what the whole program gives as long as f sees nothing but its element and does not end the run: programs
// that read further inputs or halt are not taken apart.
func (f *Filter) compileElements() (err error) {
	o := f.options
	if o.NullInput || o.Slurp || o.RawInput || o.Stream || f.callsAny("halt", "halt_error") {
		return nil
	}
	each, inArray := apart(f.query)
	if f.inArray = inArray; each != nil {
		f.each, err = f.compile(each, &run{})
	}
	return err
}

// apart returns the query to run on each element, nil if there is none, and whether the results are the elements of an
// array again.
func apart(q *gojq.Query) (each *gojq.Query, inArray bool) {
	redefined := slices.ContainsFunc(q.FuncDefs, func(d *gojq.FuncDef) bool { return d.Name == "map" })
	switch {
	case redefined || len(q.Patterns) > 0:
		return nil, false
	case q.Term != nil:
		each, inArray = apartTerm(q.Term)
	case q.Op == gojq.OpPipe:
		left, inner := apart(q.Left)
		right, still := q.Right, false
		if inner {
			right, still = apart(q.Right)
		}
		if left != nil && right != nil {
			each, inArray = &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}, still
		}
	}
	if each == nil || len(q.FuncDefs) == 0 {
		return each, inArray
	}
	return &gojq.Query{FuncDefs: q.FuncDefs, Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: each}}, inArray
}

func apartTerm(t *gojq.Term) (each *gojq.Query, inArray bool) {
	switch suffixes := t.SuffixList; {
	case t.Type == gojq.TermTypeIdentity && len(suffixes) == 0:
		return &gojq.Query{Term: t}, true
	case t.Type == gojq.TermTypeIdentity && suffixes[0].Iter && plain(suffixes[1:]):
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: suffixes[1:]}}, false
	case len(suffixes) > 0:
		return nil, false
	case t.Type == gojq.TermTypeFunc && t.Func.Name == "map" && len(t.Func.Args) == 1:
		return t.Func.Args[0], true
	case t.Type == gojq.TermTypeArray && t.Array.Query != nil:
		if each, inArray = apart(t.Array.Query); !inArray {
			return each, true
		}
	}
	return nil, false
}

// plain says whether suffixes see nothing but what is before them. A "?" would catch the errors of an iteration before
// it too, and a query in brackets sees the whole input.
func plain(suffixes []*gojq.Suffix) bool {
	return !slices.ContainsFunc(suffixes, func(s *gojq.Suffix) bool {
		return s.Optional || s.Index != nil && (s.Index.Start != nil || s.Index.End != nil || s.Index.Str != nil)
	})
}

// findCalls adds the functions and labels of a part of a query to names. gojq's tree has some thirty types, of which these
// two count.
func findCalls(v reflect.Value, names map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		switch x := v.Interface().(type) {
		case *gojq.Func:
			names[x.Name] = true
		case *gojq.Label:
			names["label"] = true
		}
		findCalls(v.Elem(), names)
	case reflect.Struct:
		for _, field := range v.Fields() {
			findCalls(field, names)
		}
	case reflect.Slice:
		for i := range v.Len() {
			findCalls(v.Index(i), names)
		}
	}
}
