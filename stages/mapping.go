package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
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

// retriedErrors returns what retry_on matches; nil: all errors.
func (o Mapping) retriedErrors() (*regexp.Regexp, error) {
	var idle error
	if o.RetryOn != "" && o.Retries == 0 {
		idle = fielded("retry_on", Errorf(InvalidPipeline, `add "retries": 3, or leave retry_on out`, "retry_on has no meaning without retries"))
	}
	on, err := pattern(o.RetryOn)
	return on, errors.Join(idle, err)
}

// withoutFlag refuses the fields of a mapping where nothing is mapped: they would silently do nothing.
func (o EachOptions) withoutFlag() error {
	given, _ := json.Marshal(o.Mapping) // has only plain values
	members, _ := readObject(given)
	var errs []error
	for _, m := range members {
		errs = append(errs, fielded(m.key, Errorf(InvalidPipeline, `add "for_each": true, or leave `+m.key+` out`,
			"%s has no meaning without for_each", m.key)))
	}
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
		if !s.tool.repeats {
			once = append(once, s.Label.Called())
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
