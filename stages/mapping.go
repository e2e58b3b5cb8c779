package stages

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Mapping holds the choices of a for_each that do not depend on what it runs.
type Mapping struct {
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64" jsonschema_description:"Items in flight. Default 8 where everything only reads, else 1."`
	OnError     string `json:"on_error,omitempty" jsonschema:"enum=fail,enum=skip,enum=collect" jsonschema_description:"fail (default): stop at the first failed item. skip: leave it out. collect: put {\"error\": {code, message, attempts, index, item}} in its place; index counts from 1."`
	Retries     int    `json:"retries,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"Extra attempts per item, with growing waits. Only calls that never arrived, 429, 503, and tools that only read or are idempotent are tried again."`
	RetryOn     string `json:"retry_on,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"Regular expression (RE2): only errors whose message or code matches are tried again."`
	Distinct    *bool  `json:"distinct,omitempty" jsonschema_description:"Make calls with equal arguments once and share the result. Default true for tools that only read, where nothing in the for_each changes anything."`
	WithItem    bool   `json:"with_item,omitempty" jsonschema_description:"Each result becomes {\"item\": ITEM, \"result\": RESULT}."`
	Collect     string `json:"collect,omitempty" jsonschema:"enum=array,enum=lines" jsonschema_description:"array: one JSON array. lines: one result a line (default for commands)."`
}

// The values of on_error.
const (
	onErrorFail    = "fail"
	onErrorSkip    = "skip"
	onErrorCollect = "collect"
)

// The values of collect.
const (
	collectArray = "array"
	collectLines = "lines"
)

const (
	maxConcurrency = 64   // items in flight (pipeline.md §4)
	maxRetries     = 100  // extra attempts of an item
	maxPattern     = 1000 // bytes of retry_on
)

// check refuses what the engine cannot do, also for callers without a schema, and returns how items are tried again.
func (o Mapping) check() (tries, error) {
	var errs []error
	wrong := func(field, hint, format string, args ...any) {
		errs = append(errs, fielded(field, Errorf(InvalidPipeline, hint, format, args...)))
	}
	oneOf := func(field, got string, values ...string) {
		for _, v := range append(values, "") {
			if got == v {
				return
			}
		}
		last := len(values) - 1
		wrong(field, "", "%s must be %s or %s, got %s", field, strings.Join(values[:last], ", "), values[last], quoted(got))
	}
	if o.Concurrency < 0 || o.Concurrency > maxConcurrency {
		wrong("concurrency", "", "concurrency must be 1 to %d, got %d", maxConcurrency, o.Concurrency)
	}
	if o.Retries < 0 || o.Retries > maxRetries {
		wrong("retries", "", "retries must be 0 to %d, got %d", maxRetries, o.Retries)
	}
	oneOf("on_error", o.OnError, onErrorFail, onErrorSkip, onErrorCollect)
	oneOf("collect", o.Collect, collectArray, collectLines)
	if o.RetryOn != "" && o.Retries == 0 {
		wrong("retry_on", `add "retries": 3, or leave retry_on out`, "retry_on has no meaning without retries")
	}
	on, err := pattern(o.RetryOn)
	return tries{more: o.Retries, on: on}, errors.Join(append(errs, err)...)
}

// pattern compiles retry_on. Empty: nil.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	const hint = `write a regular expression as RE2 takes it, such as "(?i)rate limit|timed? out|^5\\d\\d"`
	if len(text) > maxPattern {
		return nil, fielded("retry_on", Errorf(InvalidPipeline, hint, "retry_on has %d bytes, more than %d", len(text), maxPattern))
	}
	re, err := regexp.Compile(text)
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return nil, fielded("retry_on", Errorf(InvalidPipeline, hint, "retry_on is not a regular expression: %s at character %d: %s",
			bad.Code, mistakeAt(text, bad), quoted(bad.Expr)))
	}
	return re, err
}

// mistakeAt returns which character of a pattern a mistake begins at, counted from 1.
func mistakeAt(text string, bad *syntax.Error) int {
	at := max(0, strings.Index(text, bad.Expr))
	if bad.Expr == text {
		at = oddParenthesis(text)
	}
	return utf8.RuneCountInString(text[:at]) + 1
}

// oddParenthesis returns the offset of a parenthesis that has no other, or 0: the mistakes for which the regexp
// package names the whole pattern.
func oddParenthesis(text string) int {
	var open []int
	class := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) == 0:
			return i
		case c == ')':
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return 0
}

// withoutFlag refuses the fields of a mapping where nothing is mapped: they would silently do nothing.
func (o EachOptions) withoutFlag() error {
	var errs []error
	refuse := func(name string, present bool) {
		if present {
			errs = append(errs, fielded(name, Errorf(InvalidPipeline, `add "for_each": true, or leave `+name+` out`,
				"%s has no meaning without for_each", name)))
		}
	}
	refuse("concurrency", o.Concurrency != 0)
	refuse("on_error", o.OnError != "")
	refuse("retries", o.Retries != 0)
	refuse("retry_on", o.RetryOn != "")
	refuse("distinct", o.Distinct != nil)
	refuse("with_item", o.WithItem)
	refuse("collect", o.Collect != "")
	return errors.Join(errs...)
}

// notes says in the plan what the choices come to for the stages of body.
func (o Mapping) notes(body []*Step) string {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch o.OnError {
	case onErrorSkip:
		note("items that fail are left out")
	case onErrorCollect:
		note("items that fail become error objects")
	}
	if o.Retries > 0 {
		note("%s", retryNote(o.Retries, toolsOf(body)))
	}
	if o.Distinct != nil {
		switch {
		case len(toolsOf(body)) == 0:
			note("distinct has no effect: no stage of it calls a tool")
		case *o.Distinct:
			note("calls with equal arguments are made once")
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return "; " + strings.Join(notes, "; ")
}

// retryNote says what is tried again, and what is not.
func retryNote(n int, tools []*Step) string {
	if len(tools) == 0 {
		return "retries have no effect: only calls of tools are tried again"
	}
	var once []string
	for _, s := range tools {
		if !s.repeats {
			once = append(once, strings.TrimPrefix(s.Label, "tool "))
		}
	}
	text := fmt.Sprintf("an item whose call fails is tried up to %d more times", n)
	if n == 1 {
		text = "an item whose call fails is tried once more"
	}
	if len(once) > 0 {
		names := strings.Join(once, ", ")
		text += fmt.Sprintf(", but not once a call of %s may have taken effect: then retries have no effect", names)
	}
	return text
}

// toolsOf returns the tool stages among steps and within them, but for those of named inputs, which run once.
func toolsOf(steps []*Step) []*Step {
	var tools []*Step
	for _, s := range steps {
		if s.mapped != nil {
			s = s.mapped
		}
		if s.tool != nil {
			tools = append(tools, s)
		}
		for _, n := range s.Nested {
			if !n.Input {
				tools = append(tools, toolsOf(n.Steps)...)
			}
		}
	}
	return tools
}
