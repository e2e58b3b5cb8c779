package jq

import "github.com/itchyny/gojq"

// elements is a program taken apart for arrays too large to hold: f runs on every element by itself, and with inArray
// the results are the elements of one array again.
//
//	.[] | f      map(f)      [.[] | f]      map(f) | map(g)      map(f) | .[] | g
//
// This gives what the whole program gives as long as f sees nothing but its element and does not end the run: programs
// that read further inputs or halt are not taken apart.
type elements struct {
	code    *gojq.Code
	inArray bool
}

// compileElements sets f.elements if the program can be taken apart.
func (f *Filter) compileElements() error {
	o := f.options
	if o.NullInput || o.Slurp || o.RawInput || o.Stream || f.callsAny("halt", "halt_error") {
		return nil
	}
	query, inArray := perElement(f.query)
	if query == nil {
		return nil
	}
	code, err := f.compile(query, &run{})
	if err != nil {
		return err
	}
	f.elements = &elements{code, inArray}
	return nil
}

// perElement returns the query to run on each element, nil if there is none.
func perElement(q *gojq.Query) (each *gojq.Query, inArray bool) {
	for _, def := range q.FuncDefs {
		if def.Name == "map" {
			return nil, false
		}
	}
	if len(q.Imports) > 0 || q.Meta != nil {
		return nil, false
	}
	body := *q
	body.FuncDefs = nil
	each = &gojq.Query{FuncDefs: q.FuncDefs, Term: &gojq.Term{Type: gojq.TermTypeIdentity}}
	inArray = true
	for _, stage := range pipeline(&body) {
		if !inArray {
			each = pipe(each, stage)
			continue
		}
		steps, still, ok := elementwise(stage)
		if !ok {
			return nil, false
		}
		for _, step := range steps {
			each = pipe(each, step)
		}
		inArray = still
	}
	return each, inArray
}

// pipe appends a stage to a query whose definitions hold for the stage too.
func pipe(q, stage *gojq.Query) *gojq.Query {
	left := *q
	left.FuncDefs = nil
	return &gojq.Query{FuncDefs: q.FuncDefs, Left: &left, Op: gojq.OpPipe, Right: stage}
}

// pipeline returns the stages of a query of the form a | b | c.
func pipeline(q *gojq.Query) (stages []*gojq.Query) {
	for q.Op == gojq.OpPipe && len(q.Patterns) == 0 && len(q.FuncDefs) == 0 {
		stages = append(stages, pipeline(q.Left)...)
		q = q.Right
	}
	return append(stages, q)
}

// elementwise takes a stage that gets an array apart: into what runs on each element, and whether the results are the
// elements of an array again. ok is false if it is not of a form that can be taken apart.
func elementwise(q *gojq.Query) (steps []*gojq.Query, inArray, ok bool) {
	t := q.Term
	if t == nil || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return nil, false, false
	}
	switch {
	case t.Type == gojq.TermTypeIdentity && len(t.SuffixList) == 0: // .
		return nil, true, true
	case t.Type == gojq.TermTypeIdentity && t.SuffixList[0].Iter && plain(t.SuffixList[1:]): // .[].a.b
		rest := &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: t.SuffixList[1:]}
		return []*gojq.Query{{Term: rest}}, false, true
	case t.Type == gojq.TermTypeFunc && t.Func.Name == "map" && len(t.Func.Args) == 1 && len(t.SuffixList) == 0:
		return t.Func.Args, true, true
	case t.Type == gojq.TermTypeArray && t.Array.Query != nil && len(t.SuffixList) == 0: // [.[] | f]
		return iterated(t.Array.Query)
	}
	return nil, false, false
}

// iterated takes the inside of [.[] | f] apart.
func iterated(q *gojq.Query) (steps []*gojq.Query, inArray, ok bool) {
	stages := pipeline(q)
	steps, inArray, ok = elementwise(stages[0])
	if !ok || inArray {
		return nil, false, false
	}
	return append(steps, stages[1:]...), true, true
}

// plain says whether there is no "?" among suffixes: it would catch the errors of the iteration before it too.
func plain(suffixes []*gojq.Suffix) bool {
	for _, s := range suffixes {
		if s.Optional || s.Index != nil && (s.Index.Start != nil || s.Index.End != nil || s.Index.Str != nil) {
			return false
		}
	}
	return true
}
