package jq

import (
	"strings"

	"github.com/itchyny/gojq"
)

// A signature says what kinds of input a function takes, by their first letters, and what it gives. Kinds: array,
// object, string, number, boolean, - null.
type signature struct {
	takes string
	gives string // a kind, "same" or empty where it depends
}

// signatures are those of functions whose errors name them, by what they are called in errors.
var signatures = map[string]signature{
	"length": {"aosn-", "number"}, "keys": {"ao", "array"}, "keys_unsorted": {"ao", "array"}, "has": {"ao", "boolean"},
	"tonumber": {"sn", "number"}, "tostring": {"aosnb-", "string"}, "tojson": {"aosnb-", "string"}, "type": {"aosnb-", "string"},
	"fromjson": {"s", ""}, "ascii_downcase": {"s", "string"}, "ascii_upcase": {"s", "string"},
	"startswith": {"s", "boolean"}, "endswith": {"s", "boolean"}, "ltrimstr": {"s", "string"}, "rtrimstr": {"s", "string"},
	"trim": {"s", "string"}, "ltrim": {"s", "string"}, "rtrim": {"s", "string"}, "explode": {"s", "array"},
	"split": {"s", "array"}, "join": {"a", "string"}, "test": {"s", "boolean"}, "match": {"s", "object"}, "capture": {"s", ""}, "scan": {"s", ""},
	"sub": {"s", "string"}, "gsub": {"s", "string"}, "splits": {"s", "string"}, "ascii": {"n", "string"}, "implode": {"a", "string"},
	"sort": {"a", "same"}, "unique": {"a", "same"}, "reverse": {"as-", "same"}, "flatten": {"ao", "array"}, "min": {"a", ""}, "max": {"a", ""},
	"transpose": {"a", "array"}, "floor": {"n", "number"}, "ceil": {"n", "number"}, "round": {"n", "number"}, "sqrt": {"n", "number"}, "fabs": {"n", "number"}, "abs": {"n-", "number"},
	"strptime": {"s", "array"}, "mktime": {"a", "number"}, "strftime": {"na", "string"}, "todate": {"n", "string"}, "gmtime": {"n", "array"},
	"now": {"aosnb-", "number"}, "not": {"aosnb-", "boolean"}, "index": {"sa-", ""}, "contains": {"aosnb-", "boolean"}, "inside": {"aosnb-", "boolean"},
	"from_entries": {"ao", ""},
}

// spoken is what errors call a function, where that is not its name.
var spoken = map[string]string{
	"capture": "match", "scan": "match", "splits": "match", "sub": "match", "gsub": "match", "keys_unsorted": "keys",
	"to_entries": "keys", "with_entries": "keys", "todate": "strftime", "fromdate": "strptime", "date": "strftime",
}

// call is a function.
func (w *walker) call(t *gojq.Term, in value) []value {
	name, args := t.Func.Name, t.Func.Args
	if f := w.specials[name]; f != nil {
		if list, ok := f(w, t, in, args); ok {
			return list
		}
	}
	s, ok := signatures[name]
	if !ok || in.n == nil {
		return unknown
	}
	if !strings.Contains(s.takes, letter(in.n.kind)) {
		return w.refuse(t, in)
	}
	switch s.gives {
	case "":
		return unknown
	case "same":
		return []value{{n: in.n}}
	}
	return of(s.gives)
}

// refuse is the failure of a function that does not take its input.
func (w *walker) refuse(t *gojq.Term, in value) []value {
	name := t.Func.Name
	if s := spoken[name]; s != "" {
		name = s
	}
	return w.fail(fault{said: name + " cannot be applied to: " + in.n.kind, in: in, term: t, at: -1})
}

func letter(kind string) string {
	if kind == "null" {
		return "-"
	}
	return kind[:1]
}

// A special is a function that is followed into its arguments. It reports false where it is like others.
type special func(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool)

// specials returns the functions that are followed.
func specials() map[string]special {
	return map[string]special{
		"map": mapped, "map_values": mapped, "sort_by": ordered, "group_by": ordered, "unique_by": ordered, "min_by": ordered, "max_by": ordered,
		"select": selected, "add": added, "any": quantified, "all": quantified, "first": ended, "last": ended, "to_entries": entries, "with_entries": entries,
		"empty": nothingMore, "error": nothingMore,
	}
}

func nothingMore(*walker, *gojq.Term, value, []*gojq.Query) ([]value, bool) { return nil, true }

func mapped(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	list := w.each(args[0], w.iterate(in, t, -1))
	if t.Func.Name != "map" || in.n == nil {
		return unknown, true
	}
	return []value{{n: gathered(list)}}, true
}

// gathered is the array of list.
func gathered(list []value) *node {
	n := &node{kind: "array"}
	for _, v := range list {
		if v.n == nil {
			n.cut = true
			continue
		}
		n.items = append(n.items, v.n)
	}
	return n
}

func ordered(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	if len(args) != 1 || in.n == nil {
		return unknown, true
	}
	w.each(args[0], w.iterate(in, t, -1))
	if w.over() {
		return nil, true
	}
	if in.n.kind != "array" {
		return w.refuse(t, in), true
	}
	switch t.Func.Name {
	case "group_by":
		group := *in.n
		group.group = true
		return []value{{n: &node{kind: "array", items: []*node{&group}, cut: true}}}, true
	case "min_by", "max_by":
		if len(in.n.items) == 0 {
			return unknown, true
		}
		return []value{{n: in.n.items[0]}}, true
	}
	return []value{{n: in.n}}, true
}

// selected passes its input on, unless the condition may be about what kind of value it is.
func selected(w *walker, _ *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	w.query(args[0], in)
	names := calls(args[0])
	if names["type"] || names["has"] || names["not"] || strings.Contains(args[0].String(), "null") {
		return unknown, true
	}
	return []value{in}, true
}

func added(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	if len(args) != 0 || in.n == nil {
		return unknown, true
	}
	if in.n.kind != "array" && in.n.kind != "object" && in.n.kind != "null" {
		return w.refuse(t, in), true
	}
	list := w.iterate(in, t, -1)
	sum := (*node)(nil)
	for _, v := range list {
		switch {
		case v.n == nil || v.n.kind == "null":
		case sum == nil:
			sum = v.n
		case sum.kind != v.n.kind:
			return w.fail(fault{said: "cannot add: " + sum.kind + " and " + v.n.kind, in: in, term: t, at: -1}), true
		}
	}
	if sum == nil {
		return unknown, true
	}
	return of(sum.kind), true
}

func quantified(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	switch len(args) {
	case 0:
		w.iterate(in, t, -1)
	case 1:
		w.each(args[0], w.iterate(in, t, -1))
	case 2:
		w.each(args[1], w.query(args[0], in))
	}
	return of("boolean"), true
}

func ended(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	switch {
	case len(args) == 1:
		return w.query(args[0], in), true
	case in.n == nil || len(args) > 1:
		return unknown, true
	case in.n.kind == "array" && len(in.n.items) > 0:
		return []value{{n: in.n.items[0]}}, true
	case in.n.kind == "array" || in.n.kind == "null":
		return unknown, true
	}
	return w.fail(fault{said: "expected an array but got: " + in.n.kind, in: in, term: t, at: -1}), true
}

func entries(w *walker, t *gojq.Term, in value, args []*gojq.Query) ([]value, bool) {
	if in.n == nil {
		return unknown, true
	}
	if in.n.kind != "object" && in.n.kind != "array" {
		return w.refuse(t, in), true
	}
	all := &node{kind: "array"}
	for _, key := range in.n.keys {
		all.items = append(all.items, &node{kind: "object", keys: []string{"key", "value"}, fields: map[string]*node{
			"key": {kind: "string", text: key}, "value": in.n.fields[key],
		}})
	}
	if len(args) == 1 {
		w.each(args[0], w.iterate(value{n: all}, t, -1))
		return unknown, true
	}
	return []value{{n: all}}, true
}
