package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A field is a member that a server's entry may have. A field without read is taken note of and otherwise ignored.
type field struct {
	way    string // command or url, if it belongs to one of them
	read   func(e *entry, value json.RawMessage) error
	refuse string // why it is not accepted
	hidden bool   // not offered when another key is wrong
}

// entryFields are all members that are known: ours, and those that clients write into their files.
var entryFields = map[string]field{
	"type":    {read: (*entry).readKind},
	"command": {way: "command", read: into(func(e *entry) *string { return &e.command })},
	"args":    {way: "command", read: into(func(e *entry) *[]string { return &e.args })},
	"env":     {way: "command", read: (*entry).readEnv},
	"cwd":     {way: "command", read: into(func(e *entry) *string { return &e.cwd })},

	"url":       {way: "url", read: (*entry).readURL},
	"httpUrl":   {way: "url", read: (*entry).readURL, hidden: true},
	"serverUrl": {way: "url", read: (*entry).readURL, hidden: true},
	"uri":       {way: "url", read: (*entry).readURL, hidden: true},
	"headers":   {way: "url", read: into(func(e *entry) *map[string]string { return &e.headers })},

	"builtin":     {read: into(func(e *entry) *string { return &e.builtin })},
	"disabled":    {read: into(func(e *entry) *bool { return &e.disabled })},
	"enabled":     {read: func(*entry, json.RawMessage) error { return nil }, hidden: true},
	"timeout":     {read: (*entry).readTimeout},
	"concurrency": {read: (*entry).readConcurrency},
	"readOnly":    {read: into(func(e *entry) *[]string { return &e.readOnly })},
	"tools":       {read: (*entry).readTools},

	"includeTools": {read: into(func(e *entry) *[]string { return &e.allow }), hidden: true}, // Gemini
	"excludeTools": {read: into(func(e *entry) *[]string { return &e.deny }), hidden: true},  // Gemini

	// What clients note for themselves.
	"name": {hidden: true}, "title": {hidden: true}, "description": {hidden: true}, "icon": {hidden: true},
	"version": {hidden: true}, "gallery": {hidden: true}, "trust": {hidden: true}, "autoApprove": {hidden: true},
	"alwaysAllow": {hidden: true}, "dev": {hidden: true}, "metadata": {hidden: true},

	// What would be a lie to ignore.
	"envFile":        {refuse: "is not supported yet; put the variables into env", hidden: true},
	"with":           {refuse: "is not supported yet", hidden: true},
	"probe":          {refuse: "is not supported yet", hidden: true},
	"oauth":          {refuse: "is not supported yet; set headers", hidden: true},
	"sandbox":        {refuse: "is not supported: the server would run without a sandbox", hidden: true},
	"sandboxEnabled": {refuse: "is not supported: the server would run without a sandbox", hidden: true},
	"disabledTools":  {refuse: `write "tools": {"deny": [...]} instead`, hidden: true},
}

// entryKeys are the members offered in messages.
func entryKeys() []string {
	keys := sortedKeys(entryFields)
	return slices.DeleteFunc(keys, func(key string) bool { return entryFields[key].hidden })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// kinds are the words for a type, and the member that such a server has.
var kinds = map[string]string{
	"stdio": "command", "local": "command",
	"http": "url", "streamable-http": "url", "streamableHttp": "url", "streamable_http": "url", "remote": "url", "sse": "url",
}

// into decodes a value into a field of the entry.
func into[T any](target func(e *entry) *T) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		var v T
		if err := json.Unmarshal(value, &v); err != nil || isNull(value) {
			return fmt.Errorf("want %s, got %s", wantOf(v), kindOf(value))
		}
		*target(e) = v
		return nil
	}
}

// wantOf says in words what a value should be.
func wantOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []string:
		return "an array of strings"
	case map[string]string:
		return "an object of strings"
	}
	return "another type"
}

// kindOf says what a value is, without showing it: it may hold a secret.
func kindOf(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object of something else"
	case '[':
		return "an array of something else"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (e *entry) readKind(value json.RawMessage) error {
	if err := into(func(e *entry) *string { return &e.kind })(e, value); err != nil {
		return err
	}
	if kinds[e.kind] == "" {
		kind := e.kind
		e.kind = ""
		return fmt.Errorf("unknown type %q; want stdio, http or sse", kind)
	}
	return nil
}

func (e *entry) readURL(value json.RawMessage) error {
	if e.url != "" {
		return fmt.Errorf("there is an address already")
	}
	if err := into(func(e *entry) *string { return &e.url })(e, value); err != nil {
		return err
	}
	_, err := parseEndpoint(e.url)
	return err
}

// readEnv takes numbers and booleans too, as other clients do.
func (e *entry) readEnv(value json.RawMessage) error {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil || isNull(value) {
		return fmt.Errorf("want an object of strings, got %s", kindOf(value))
	}
	e.env = map[string]string{}
	for name, v := range members {
		switch v := v.(type) {
		case string, json.Number, bool:
			e.env[name] = fmt.Sprint(v)
		default:
			return fmt.Errorf("%s: want a string", name)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(e.env[name], 0) {
			return fmt.Errorf("%q cannot be a variable", name)
		}
	}
	return nil
}

// maxSeconds is below every timeout that clients write for themselves, which is in milliseconds.
const maxSeconds = 1000

// readTimeout takes seconds, as everything here does, or a duration such as "90s". Other clients mean milliseconds by
// a number: one that cannot be seconds is refused rather than taken for a quarter of an hour or more.
func (e *entry) readTimeout(value json.RawMessage) error {
	var seconds float64
	var text string
	switch {
	case json.Unmarshal(value, &seconds) == nil && !isNull(value):
		if seconds >= maxSeconds {
			return fmt.Errorf(`a number is in seconds, and %s is too many; write "60s" for a minute, "20m" for more`, shorten(string(value), 60))
		}
		e.timeout = time.Duration(seconds * float64(time.Second))
	case json.Unmarshal(value, &text) == nil && !isNull(value):
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`%q is no duration; want one such as "90s", or a number of seconds`, text)
		}
		e.timeout = d
	default:
		return fmt.Errorf(`want a duration such as "90s", or a number of seconds`)
	}
	if e.timeout <= 0 || e.timeout > 24*time.Hour {
		return fmt.Errorf("want more than 0 and at most 24h, got %s", shorten(string(value), 60))
	}
	return nil
}

func (e *entry) readConcurrency(value json.RawMessage) error {
	if err := json.Unmarshal(value, &e.concurrency); err != nil || e.concurrency < 1 || e.concurrency > 1024 {
		return fmt.Errorf("want a whole number from 1 to 1024, got %s", shorten(string(value), 60))
	}
	return nil
}

// readTools takes {"allow": [globs], "deny": [globs]}.
func (e *entry) readTools(value json.RawMessage) error {
	var t struct {
		Allow []string `json:"allow"`
		Deny  []string `json:"deny"`
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil || isNull(value) {
		return fmt.Errorf(`want {"allow": [globs], "deny": [globs]}, got %s`, kindOf(value))
	}
	e.allow, e.deny = append(e.allow, t.Allow...), append(e.deny, t.Deny...)
	return nil
}
