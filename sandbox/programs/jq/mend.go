package jq

import (
	"slices"

	"github.com/itchyny/gojq"
)

// parsed is a piece of a filter that is put into another.
func parsed(text string) *gojq.Query {
	q, err := gojq.Parse(text)
	if err != nil {
		panic("jq: internal error: " + err.Error())
	}
	return q
}

// before puts text and a | before q.
func before(q *gojq.Query, text string) {
	body := *q
	body.FuncDefs = nil
	*q = gojq.Query{FuncDefs: q.FuncDefs, Left: parsed(text), Op: gojq.OpPipe, Right: &body}
}

// insert applies text to what the step at a term is applied to.
func insert(t *gojq.Term, at int, scope *gojq.Query, text string) {
	if at < 0 {
		before(scope, text)
		return
	}
	function := parsed(text)
	if t.Type == gojq.TermTypeIdentity && at == 0 && function.Term != nil {
		function.Term.SuffixList = append(function.Term.SuffixList, t.SuffixList...)
		*t = *function.Term
		return
	}
	head := *t
	head.SuffixList = t.SuffixList[:at:at]
	*t = gojq.Term{
		Type:       gojq.TermTypeQuery,
		Query:      &gojq.Query{Left: &gojq.Query{Term: &head}, Op: gojq.OpPipe, Right: function},
		SuffixList: slices.Clone(t.SuffixList[at:]),
	}
}

// insertSuffix is insert for .name and .[].
func insertSuffix(t *gojq.Term, at int, scope *gojq.Query, s *gojq.Suffix) {
	if at < 0 {
		text := ".[]"
		if s.Index != nil {
			text = (&gojq.Term{Type: gojq.TermTypeIndex, Index: s.Index}).String()
		}
		before(scope, text)
		return
	}
	if t.Type == gojq.TermTypeIdentity && at == 0 && s.Index != nil {
		t.Type, t.Index = gojq.TermTypeIndex, s.Index
		return
	}
	t.SuffixList = slices.Insert(slices.Clone(t.SuffixList), at, s)
}

func member(name string) *gojq.Suffix {
	if IsName(name) {
		return &gojq.Suffix{Index: &gojq.Index{Name: name}}
	}
	return &gojq.Suffix{Index: &gojq.Index{Str: &gojq.String{Str: name}}}
}

func everyItem() *gojq.Suffix { return &gojq.Suffix{Iter: true} }

// rename puts another name for that of the step at a term.
func rename(t *gojq.Term, at int, name string) {
	if at < 0 {
		t.Index = member(name).Index
		return
	}
	t.SuffixList[at] = member(name)
}

// drop leaves the step at a term out.
func drop(t *gojq.Term, at int) {
	if at < 0 {
		t.Type, t.Index, t.Func = gojq.TermTypeIdentity, nil, nil
		return
	}
	t.SuffixList = slices.Delete(slices.Clone(t.SuffixList), at, at+1)
}

// replace puts text in the place of the term; suffixes stay.
func replace(t *gojq.Term, text string) {
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: parsed(text), SuffixList: t.SuffixList}
}

// wrap applies text to the result of q.
func wrap(q *gojq.Query, text string) *gojq.Query {
	inner := *q
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: &gojq.Query{Left: &inner, Op: gojq.OpPipe, Right: parsed(text)}}}
}

// terms calls f with every term of q. What f puts in the place of a term is not looked into.
func terms(q *gojq.Query, f func(t *gojq.Term)) {
	visit(q, func(node any) {
		if t, ok := node.(*gojq.Term); ok {
			f(t)
		}
	})
}

// simplified leaves out what a | . and . | a hold too much.
func simplified(q *gojq.Query) {
	visit(q, func(node any) {
		q, ok := node.(*gojq.Query)
		if !ok || q.Op != gojq.OpPipe || len(q.Patterns) > 0 || q.Left == nil || q.Right == nil {
			return
		}
		switch {
		case isIdentity(q.Left) && len(q.Right.FuncDefs) == 0:
			*q = with(*q.Right, q.FuncDefs)
		case isIdentity(q.Right):
			*q = with(*q.Left, q.FuncDefs)
		}
	})
}

func with(q gojq.Query, defs []*gojq.FuncDef) gojq.Query {
	q.FuncDefs = defs
	return q
}

func isIdentity(q *gojq.Query) bool {
	return q.Term != nil && q.Term.Type == gojq.TermTypeIdentity && len(q.Term.SuffixList) == 0 && len(q.FuncDefs) == 0
}
