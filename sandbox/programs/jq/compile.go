package jq

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// A Filter is a compiled program with its options. It may be run many times and concurrently.
type Filter struct {
	options Options
	query   *gojq.Query
	names   []string
	values  []any
	calls   map[string]bool // the functions that the program names

	code     *gojq.Code // nil if the program has to be compiled for each run, because it reads or reports by itself
	elements *elements  // nil if the program needs a whole array at once
	readers  *sync.Pool // of lines
	spares   *sync.Pool // of runs that are over, see [Filter.again]
}

// An Error says why a filter cannot be compiled.
type Error struct {
	Msg   string // what and where; a second and third line show the place
	Hint  string // what to do, or empty
	Fixed string // the filter without its mistake, where that can be derived, or empty

	offset int // where parsing stopped; -1 if it did not
}

func (e *Error) Error() string { return e.Msg }

// Compile parses and compiles a filter. It runs nothing.
func Compile(o Options) (*Filter, *Error) {
	f, err := compile(o)
	if err != nil {
		if fixed, hint := o.repaired(); fixed != "" {
			err.Fixed, err.Hint = fixed, hint
		}
	}
	return f, err
}

func compile(o Options) (*Filter, *Error) {
	query, err := gojq.Parse(o.Filter)
	if err != nil {
		return nil, syntaxMistake(o.Filter, err)
	}
	f := &Filter{readers: new(sync.Pool), spares: new(sync.Pool), options: o, query: query, calls: calls(query)}
	if f.names, f.values, err = o.variables(); err != nil {
		return nil, &Error{Msg: err.Error(), offset: -1}
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
	for _, name := range names {
		if f.calls[name] {
			return true
		}
	}
	return false
}

// definitions are functions of jq that gojq leaves out, or has with another message at the end of the inputs. Keys are
// always sorted, so keys_unsorted is what it says.
var definitions = map[string]string{
	"input":                "def input: _input; .",
	"keys_unsorted":        "def keys_unsorted: keys; .",
	"ascii":                "def ascii: [.] | implode; .",
	"toarray":              "def toarray: if type == \"array\" then . else [.] end; .",
	"leaf_paths":           "def leaf_paths: paths(scalars); .",
	"date":                 "def date: todate; .",
	"pow10":                "def pow10: exp10; .",
	"have_literal_numbers": "def have_literal_numbers: true; .",
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
	)
}

// syntaxMistake shows where a program cannot be parsed.
func syntaxMistake(text string, err error) *Error {
	offset := len(text)
	var parse *gojq.ParseError
	if errors.As(err, &parse) {
		offset = min(max(parse.Offset-len(parse.Token), 0), len(text))
	}
	e := &Error{Msg: "syntax error in the filter: " + err.Error() + at(text, offset), offset: offset}
	for _, h := range syntaxHints {
		if h.in().MatchString(text) {
			e.Hint = h.hint
			break
		}
	}
	return e
}

var syntaxHints = []struct {
	in   func() *regexp.Regexp
	hint string
}{
	{lazy.Regexp(`&&|\|\|`), "write and, or, not instead of &&, ||, !"},
	{lazy.Regexp(`(^|[^=!<>])!([^=]|$)`), "write (… | not) instead of !"},
	{lazy.Regexp(`'`), "strings stand in double quotes"},
	{lazy.Regexp(`[({\[]\s*$|\bif\b[^|]*$`), "something is not closed: every ( [ { needs its end, if needs then and end"},
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

var (
	noFunction = lazy.Regexp(`^function not defined: (.+)/(\d+)$`)
	noVariable = lazy.Regexp(`^variable not defined: (\$.+)$`)
)

// absent are functions of jq that are not offered.
var absent = map[string]string{
	"input_filename":  "there are no files; to tell sources apart, let an earlier stage put a name into the data",
	"get_search_list": "there are no modules",
	"$__loc__":        "leave it out",
	"getpath":         "it takes one argument, a path: getpath([\"a\", 0])",
	"to_json":         "use tojson", "from_json": "use fromjson", "to_number": "use tonumber", "to_string": "use tostring",
	"lower": "use ascii_downcase", "upper": "use ascii_upcase", "lowercase": "use ascii_downcase", "uppercase": "use ascii_upcase",
	"sum": "use add", "count": "use length", "len": "use length", "size": "use length", "avg": "use add / length",
	"substr": "use slices: .[0:10]", "substring": "use slices: .[0:10]", "filter": "use map(select(…))", "sort_desc": "use sort | reverse",
	"distinct": "use unique", "uniq": "use unique", "concat": "use + or add", "replace": "use gsub(\"old\"; \"new\")",
	"strip": "use trim", "includes": "use contains or index", "typeof": "use type", "merge": "use +, or * for nested objects",
}

// meaningMistake shows where a program uses what does not exist.
func (f *Filter) meaningMistake(err error) *Error {
	text, msg := f.options.Filter, err.Error()
	if m := noFunction().FindStringSubmatch(msg); m != nil {
		return &Error{Msg: msg + place(text, m[1]), Hint: f.functionHint(text, m[1], m[2]), offset: -1}
	}
	if m := noVariable().FindStringSubmatch(msg); m != nil {
		hint := "give its value with --arg " + m[1][1:] + " TEXT or --argjson " + m[1][1:] + " JSON, or of a named input with --slurpfile " + m[1][1:] + " @NAME"
		if use, ok := absent[m[1]]; ok {
			hint = use
		}
		return &Error{Msg: msg + place(text, m[1]), Hint: hint, offset: -1}
	}
	if strings.HasPrefix(msg, "cannot load module") {
		return &Error{Msg: msg, Hint: "there are no modules; define functions in the filter: def f: …; …", offset: -1}
	}
	return &Error{Msg: msg, offset: -1}
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

func (f *Filter) functionHint(text, name, arity string) string {
	if use, ok := absent[name]; ok {
		return use
	}
	if regexp.MustCompile(`\.[\w]+(-\w+)*-` + regexp.QuoteMeta(name)).MatchString(text) {
		return `a name with a dash stands in quotes: ."first-name"`
	}
	if arity != "0" {
		return "there is no such function with " + arity + " arguments: define it, def " + name + "(f): …; …, or write it with those that there are"
	}
	if regexp.MustCompile(`(^|[:{(,\s=|])` + regexp.QuoteMeta(name) + `($|\W)`).MatchString(text) {
		return "a field is written ." + name + ", a string \"" + name + "\""
	}
	return ""
}
