package jq

import (
	"slices"

	"github.com/itchyny/gojq"
)

// A walker follows a filter over a sample of its input, to find the step that an error is about. It runs nothing: it
// only takes values apart, knows of functions what they take and give, and gives up where it cannot know.
type walker struct {
	said     string // the beginning of the error's message, without values; empty: any
	specials map[string]special
	steps    int
	fault    *fault
}

// walkSteps bounds the work.
const walkSteps = 50_000

// A value flows through the filter.
type value struct {
	n     *node       // nil: unknown
	scope *gojq.Query // the query that it is the input of
	from  *step       // where it comes from: out of an object by .[], or from a name that the object has not
}

// A step is a part of the filter and what it was applied to.
type step struct {
	obj   *node
	term  *gojq.Term
	at    int         // index of the suffix; -1: the term itself
	scope *gojq.Query // the query that obj is the input of, where at is -1
	name  string      // of the member that is missing, or null; empty: a member was there
}

// A fault is a step that fails.
type fault struct {
	said  string
	in    value       // what it was applied to
	term  *gojq.Term  // the step: the term itself, or one of its suffixes
	at    int         // index of the suffix; -1: the term itself
	query *gojq.Query // of an operator, the step
	left  *node       // its operands
	right *node
	key   *gojq.ObjectKeyVal // of an object's key
}

// find returns the step of q that fails with a message that begins with said, or nil.
func find(q *gojq.Query, docs []*node, said string) *fault {
	w := &walker{said: said, specials: specials()}
	for _, doc := range docs {
		w.query(q, value{n: doc, scope: q})
	}
	return w.fault
}

// fail notes a step that fails, if that is the failure that is looked for.
func (w *walker) fail(f fault) []value {
	if w.fault == nil && (w.said == "" || f.said == w.said) {
		w.fault = &f
	}
	return nil
}

func (w *walker) over() bool {
	w.steps++
	return w.fault != nil || w.steps > walkSteps
}

// scoped returns values as the input of q.
func scoped(list []value, q *gojq.Query) []value {
	for i := range list {
		list[i].scope = q
	}
	return list
}

// each walks q over every value.
func (w *walker) each(q *gojq.Query, list []value) (out []value) {
	for _, v := range scoped(list, q) {
		if w.over() {
			return nil
		}
		out = append(out, w.query(q, v)...)
	}
	return out
}

// query returns what q makes of in; in.scope stays the query whose input in is.
func (w *walker) query(q *gojq.Query, in value) []value {
	switch {
	case q == nil || w.over() || len(q.FuncDefs) > 0 || q.Term == nil && (q.Left == nil || q.Right == nil):
		return nil
	case q.Term != nil:
		return w.term(q.Term, in)
	}
	switch q.Op {
	case gojq.OpPipe:
		left := w.query(q.Left, in)
		if len(q.Patterns) > 0 {
			return w.query(q.Right, in)
		}
		return w.each(q.Right, left)
	case gojq.OpComma:
		return append(w.query(q.Left, in), w.query(q.Right, in)...)
	case gojq.OpAlt:
		w.quietly(func() { w.query(q.Left, in) })
		return unknown
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		return w.arithmetic(q, in)
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAnd, gojq.OpOr:
		w.query(q.Left, in)
		w.query(q.Right, in)
		return of("boolean")
	}
	w.query(q.Left, in) // the paths of an assignment
	return unknown
}

var unknown = []value{{}}

func of(kind string) []value { return []value{{n: &node{kind: kind, cut: true}}} }

// quietly does what may fail without notice.
func (w *walker) quietly(f func()) {
	before := w.fault
	f()
	w.fault = before
}

// term returns what a term makes of in, suffixes included.
func (w *walker) term(t *gojq.Term, in value) []value {
	list := []value{in}
	begin := 0
	skip := func(at int) bool { return at < len(t.SuffixList) && t.SuffixList[at].Optional }
	apply := func(at int, step func(v value) []value) {
		var out []value
		for _, v := range list {
			if skip(at + 1) {
				w.quietly(func() { out = append(out, step(v)...) })
				continue
			}
			out = append(out, step(v)...)
		}
		list = out
	}
	apply(-1, func(v value) []value { return w.base(t, v) })
	for i := begin; i < len(t.SuffixList); i++ {
		s := t.SuffixList[i]
		switch {
		case w.over():
			return nil
		case s.Index != nil:
			apply(i, func(v value) []value { return w.index(s.Index, v, t, i) })
		case s.Iter:
			apply(i, func(v value) []value { return w.iterate(v, t, i) })
		}
	}
	return list
}

// base returns what the term gives without its suffixes.
func (w *walker) base(t *gojq.Term, in value) []value {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return []value{in}
	case gojq.TermTypeIndex:
		return w.index(t.Index, in, t, -1)
	case gojq.TermTypeFunc:
		return w.call(t, in)
	case gojq.TermTypeObject:
		return w.object(t.Object, in)
	case gojq.TermTypeArray:
		return w.array(t.Array, in)
	case gojq.TermTypeNumber:
		return []value{{n: &node{kind: "number", text: t.Number}}}
	case gojq.TermTypeString, gojq.TermTypeFormat:
		return w.text(t, in)
	case gojq.TermTypeQuery:
		return w.query(t.Query, in)
	case gojq.TermTypeIf:
		w.query(t.If.Cond, in)
	case gojq.TermTypeReduce:
		w.query(t.Reduce.Query, in)
	case gojq.TermTypeForeach:
		w.query(t.Foreach.Query, in)
	case gojq.TermTypeNull:
		return of("null")
	case gojq.TermTypeTrue, gojq.TermTypeFalse:
		return of("boolean")
	}
	return unknown
}

// text walks the parts of a string, or formats.
func (w *walker) text(t *gojq.Term, in value) []value {
	if t.Str == nil {
		return w.format(t, in)
	}
	for _, q := range t.Str.Queries {
		if q.Term == nil || q.Term.Type != gojq.TermTypeString {
			w.query(q, in)
		}
	}
	if len(t.Str.Queries) == 0 {
		return []value{{n: &node{kind: "string", text: t.Str.Str}}}
	}
	return of("string")
}

// format walks @csv and the like.
func (w *walker) format(t *gojq.Term, in value) []value {
	row := t.Format == "@csv" || t.Format == "@tsv" || t.Format == "@sh"
	if in.n == nil || !row {
		return of("string")
	}
	if in.n.kind != "array" {
		if t.Format == "@sh" {
			return of("string")
		}
		return w.fail(fault{said: t.Format + " cannot be applied to: " + in.n.kind, in: in, term: t, at: -1})
	}
	for _, item := range in.n.items {
		if item.kind == "array" || item.kind == "object" {
			return w.fail(fault{said: t.Format + " cannot format an array including: " + item.kind, in: in, term: t, at: -1})
		}
	}
	return of("string")
}

// index is .name, .[0] or .[1:2].
func (w *walker) index(x *gojq.Index, in value, t *gojq.Term, at int) []value {
	if in.n == nil {
		return unknown
	}
	name, isName := indexName(x)
	at0 := fault{in: in, term: t, at: at}
	switch {
	case in.n.kind == "null":
		return []value{{n: in.n, scope: in.scope}}
	case isName && in.n.kind != "object":
		at0.said = "expected an object but got: " + in.n.kind
		return w.fail(at0)
	case isName:
		f := in.n.fields[name]
		switch {
		case f == nil && in.n.cut:
			return unknown
		case f == nil:
			f = &node{kind: "null"}
		case f.kind != "null":
			return []value{{n: f, scope: in.scope}}
		}
		return []value{{n: f, scope: in.scope, from: &step{in.n, t, at, in.scope, name}}}
	case x.Str != nil || x.Start != nil && !number(x.Start) && !x.IsSlice:
		return unknown
	case in.n.kind == "array" && x.IsSlice:
		return []value{{n: in.n, scope: in.scope}}
	case in.n.kind == "array":
		if len(in.n.items) == 0 {
			return unknown
		}
		return []value{{n: in.n.items[0], scope: in.scope}}
	case in.n.kind == "string":
		return of("string")
	}
	at0.said = "expected an array but got: " + in.n.kind
	return w.fail(at0)
}

// indexName returns the name of an index that is one: .name, ."name", .["name"].
func indexName(x *gojq.Index) (string, bool) {
	switch {
	case x.Name != "":
		return x.Name, true
	case x.Str != nil && len(x.Str.Queries) == 0:
		return x.Str.Str, true
	case x.Start != nil && !x.IsSlice && x.Start.Term != nil && x.Start.Term.Str != nil && len(x.Start.Term.Str.Queries) == 0 && len(x.Start.Term.SuffixList) == 0:
		return x.Start.Term.Str.Str, true
	}
	return "", false
}

func number(q *gojq.Query) bool {
	return q.Term != nil && (q.Term.Type == gojq.TermTypeNumber || q.Term.Type == gojq.TermTypeUnary)
}

// iterate is .[]; at is -1 where a function iterates.
func (w *walker) iterate(in value, t *gojq.Term, at int) (out []value) {
	if in.n == nil {
		return unknown
	}
	switch in.n.kind {
	case "array":
		for _, item := range in.n.items {
			out = append(out, value{n: item, scope: in.scope})
		}
		return out
	case "object":
		for _, key := range in.n.keys {
			out = append(out, value{n: in.n.fields[key], scope: in.scope, from: &step{in.n, t, at, in.scope, ""}})
		}
		return out
	}
	return w.fail(fault{said: "cannot iterate over: " + in.n.kind, in: in, term: t, at: at})
}

func (w *walker) object(o *gojq.Object, in value) []value {
	n := &node{kind: "object", fields: map[string]*node{}}
	for _, kv := range o.KeyVals {
		if kv.KeyQuery != nil {
			for _, v := range w.query(kv.KeyQuery, in) {
				if v.n != nil && v.n.kind != "string" {
					w.fail(fault{said: "expected a string for object key but got: " + v.n.kind, in: in, key: kv})
				}
			}
			n.cut = true
		}
		name := kv.Key
		if kv.KeyString != nil {
			name = kv.KeyString.Str
		}
		var list []value
		switch {
		case kv.Val != nil:
			list = w.query(kv.Val, in)
		case kv.Key != "" && kv.Key[0] != '$' && in.n != nil && kv.KeyQuery == nil:
			shorthand := &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Name: name}}
			list = w.term(shorthand, in)
		}
		if len(list) == 0 || list[0].n == nil || name == "" {
			n.cut = true
			continue
		}
		if n.fields[name] == nil {
			n.keys = append(n.keys, name)
		}
		n.fields[name] = list[0].n
	}
	return []value{{n: n}}
}

func (w *walker) array(a *gojq.Array, in value) []value {
	n := &node{kind: "array"}
	if a.Query != nil {
		in.scope = a.Query
		for _, v := range w.query(a.Query, in) {
			if v.n == nil {
				n.cut = true
				continue
			}
			n.items = append(n.items, v.n)
		}
	}
	return []value{{n: n}}
}

// sums says which kinds an operator takes on both sides, and how errors call it.
var sums = map[gojq.Operator]struct {
	verb  string
	kinds []string
}{
	gojq.OpAdd: {"add", []string{"number", "string", "array", "object"}},
	gojq.OpSub: {"subtract", []string{"number", "array"}},
	gojq.OpMul: {"multiply", []string{"number", "object"}},
	gojq.OpDiv: {"divide", []string{"number", "string"}},
	gojq.OpMod: {"modulo", []string{"number"}},
}

func (w *walker) arithmetic(q *gojq.Query, in value) []value {
	lefts, rights := w.query(q.Left, in), w.query(q.Right, in)
	sum := sums[q.Op]
	for _, l := range lefts {
		for _, r := range rights {
			if w.over() || l.n == nil || r.n == nil {
				continue
			}
			same := l.n.kind == r.n.kind && slices.Contains(sum.kinds, l.n.kind)
			null := q.Op == gojq.OpAdd && (l.n.kind == "null" || r.n.kind == "null")
			repeat := q.Op == gojq.OpMul && (l.n.kind == "string" && r.n.kind == "number" || l.n.kind == "number" && r.n.kind == "string")
			if !same && !null && !repeat {
				w.fail(fault{said: "cannot " + sum.verb + ": " + l.n.kind + " and " + r.n.kind, in: in, query: q, left: l.n, right: r.n})
			}
			if same && l.n.kind == "number" && (q.Op == gojq.OpDiv || q.Op == gojq.OpMod) && isZero(r.n.text) {
				w.fail(fault{said: "cannot " + sum.verb + " number by: number", in: in, query: q, left: l.n, right: r.n})
			}
		}
	}
	if len(lefts) == 0 || lefts[0].n == nil || lefts[0].n.kind == "null" {
		return unknown
	}
	return of(lefts[0].n.kind)
}

func isZero(text string) bool { return text == "0" || text == "0.0" || text == "-0" }
