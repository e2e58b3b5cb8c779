package jq

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
)

// A Filter is a compiled program with its options. It may be run many times and concurrently.
type Filter struct {
	options Options
	query   *gojq.Query
	names   []string
	values  []any
	calls   map[string]bool // the functions that the program names, and "label" if it has one

	code    *gojq.Code // nil if the program has to be compiled for each run, because it reads or reports by itself
	each    *gojq.Code // runs on the elements of arrays; nil if the program needs a whole array at once
	inArray bool       // the results of each are the elements of an array
}

// An Error says why a filter cannot be compiled.
type Error struct {
	Msg  string // what and where; a second and third line show the place
	Hint string // functions of a similar name, or empty
}

func (e *Error) Error() string { return e.Msg }

// Compile parses and compiles a filter. It runs nothing.
func Compile(o Options) (*Filter, *Error) {
	query, err := gojq.Parse(o.Filter)
	if err != nil {
		return nil, syntaxMistake(o.Filter, err)
	}
	f := &Filter{options: o, query: query, calls: map[string]bool{}}
	findCalls(reflect.ValueOf(query), f.calls)
	if f.names, f.values, err = o.variables(nil); err != nil {
		return nil, &Error{Msg: err.Error()}
	}
	query.FuncDefs = append(f.prelude(), query.FuncDefs...)
	code, err := f.compile(query, &run{})
	if err != nil {
		return nil, f.meaningMistake(err)
	}
	if !f.callsAny("input", "_input", "inputs", "input_line_number", "debug", "stderr") {
		f.code = code
		if err := f.compileElements(); err != nil {
			return nil, f.meaningMistake(err)
		}
	}
	return f, nil
}

// StopsEarly says whether the program may end before it has read its input.
func (f *Filter) StopsEarly() bool {
	if f.callsAny("halt", "halt_error") {
		return true
	}
	if !f.options.NullInput {
		return false
	}
	return !f.callsAny("inputs") || f.callsAny("first", "limit", "nth", "until", "isempty", "any", "all", "label")
}

// AsksTime says whether the program may look at the clock.
func (f *Filter) AsksTime() bool { return f.callsAny("now") }

func (f *Filter) callsAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f.calls[name] })
}

// definitions are functions of jq that gojq leaves out or has otherwise: input with another message at the end of the
// inputs, ltrimstr and rtrimstr with an error where jq 1.7 returns what is no string. Keys are always sorted, so
// keys_unsorted is keys.
var definitions = map[string]string{
	"input":                "def input: _input; .",
	"keys_unsorted":        "def keys_unsorted: keys; .",
	"ascii":                "def ascii: [.] | implode; .",
	"toarray":              "def toarray: if type == \"array\" then . else [.] end; .",
	"leaf_paths":           "def leaf_paths: paths(scalars); .",
	"date":                 "def date: todate; .",
	"pow10":                "def pow10: exp10; .",
	"have_literal_numbers": "def have_literal_numbers: true; .",
	"ltrimstr":             "def ltrimstr($x): if (try startswith($x) catch false) then .[($x | length):] else . end; .",
	"rtrimstr":             "def rtrimstr($x): if (try endswith($x) catch false) then .[:length - ($x | length)] else . end; .",
}

// prelude returns the definitions that the program uses.
func (f *Filter) prelude() (defs []*gojq.FuncDef) {
	for name, text := range definitions {
		if f.calls[name] {
			query, err := gojq.Parse(text)
			if err != nil {
				panic("jq: internal error: " + err.Error())
			}
			defs = append(defs, query.FuncDefs...)
		}
	}
	return defs
}

// compile binds a query to the run that it reads its inputs from.
func (f *Filter) compile(query *gojq.Query, r *run) (*gojq.Code, error) {
	return gojq.Compile(query,
		gojq.WithVariables(f.names),
		gojq.WithEnvironLoader(func() []string { return nil }),
		gojq.WithInputIter(r),
		gojq.WithFunction("_input", 0, 0, r.input),
		gojq.WithFunction("debug", 0, 0, r.debug),
		gojq.WithFunction("stderr", 0, 0, r.stderr),
		gojq.WithFunction("input_line_number", 0, 0, func(any, []any) any { return r.source.line() }),
		gojq.WithFunction("fromcsv", 0, 1, fromCSV),
		gojq.WithFunction("fromtsv", 0, 0, fromTSV),
		gojq.WithFunction("frompy", 0, 0, fromPython),
	)
}

// syntaxMistake shows where a program cannot be parsed.
func syntaxMistake(text string, err error) *Error {
	offset := len(text)
	if parse, ok := errors.AsType[*gojq.ParseError](err); ok {
		offset = min(max(parse.Offset-len(parse.Token), 0), len(text))
	}
	return &Error{Msg: "syntax error in the filter: " + err.Error() + at(text, offset)}
}

// at shows a place in a program: its line and column, the line itself, and a caret below.
func at(text string, offset int) string {
	const before, after = 50, 30
	line := 1 + strings.Count(text[:offset], "\n")
	begin := strings.LastIndexByte(text[:offset], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	column := utf8.RuneCountInString(text[begin:offset]) + 1
	from, to := max(begin, offset-before), min(end, offset+after)
	shown := strings.ToValidUTF8(text[from:offset], "")
	rest := strings.ToValidUTF8(text[offset:to], "")
	return fmt.Sprintf(" at line %d, column %d\n    %s%s\n    %s^", line, column, tabless(shown), tabless(rest),
		strings.Repeat(" ", utf8.RuneCountInString(shown)))
}

func tabless(s string) string { return strings.ReplaceAll(s, "\t", " ") }

// undefined matches what gojq says of a function, with the number of its arguments, or of a variable that there is not.
var undefined = lazy.Regexp(`^(?:function|variable) not defined: (.+?)(/\d+)?$`)

// meaningMistake shows where a program uses what does not exist.
func (f *Filter) meaningMistake(err error) *Error {
	e := &Error{Msg: err.Error()}
	if m := undefined().FindStringSubmatch(e.Msg); m != nil {
		e.Msg += place(f.options.Filter, m[1])
		if m[2] != "" {
			e.Hint = similar(m[1])
		}
	}
	return e
}

// Names of other lengths, in bytes, are not compared with those of functions.
const (
	minSimilar = 4
	maxSimilar = 40
)

// similar proposes functions that are called almost like name.
func similar(name string) string {
	if len(name) < minSimilar || len(name) > maxSimilar {
		return ""
	}
	query, err := gojq.Parse(`builtins | map(sub("/.*"; "")) | unique | map(select(startswith("_") | not))`)
	if err != nil {
		return ""
	}
	v, _ := query.Run(nil).Next()
	list, _ := v.([]any)
	if slices.Contains(list, any(name)) {
		return "" // it is there, with another number of arguments
	}
	var names []string
	for _, v := range list {
		names = append(names, fmt.Sprint(v))
	}
	if near := nearest.List(name, names, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// place is at for the first place where a name stands in a program.
func place(text, name string) string {
	re, err := regexp.Compile(`(^|[^\w.$])` + regexp.QuoteMeta(name) + `($|\W)`)
	if err != nil {
		return ""
	}
	if m := re.FindStringSubmatchIndex(text); m != nil {
		return at(text, m[3])
	}
	return ""
}
