package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/upstream"
)

// A field is a member that a server's entry may have. A field without read is taken note of and otherwise ignored.
type field struct {
	way    string // command or url, if it belongs to one of them
	read   func(e *entry, value json.RawMessage) error
	refuse string // why it is not accepted
	hidden bool   // not offered when another key is wrong
}

// fields are all members that are known: ours, and those that clients write into their files.
var fields = map[string]field{
	"type":    {read: (*entry).readKind},
	"command": {way: "command", read: into(func(e *entry) *string { return &e.Command })},
	"args":    {way: "command", read: into(func(e *entry) *[]string { return &e.Args })},
	"env":     {way: "command", read: (*entry).readEnv},
	"envFile": {way: "command", read: (*entry).readEnvFile},
	"cwd":     {way: "command", read: (*entry).readDir},

	"url":       {way: "url", read: (*entry).readURL},
	"httpUrl":   {way: "url", read: (*entry).readURL, hidden: true},
	"serverUrl": {way: "url", read: (*entry).readURL, hidden: true},
	"uri":       {way: "url", read: (*entry).readURL, hidden: true},
	"headers":   {way: "url", read: (*entry).readHeaders},

	"tls":   {way: "url", read: (*entry).readTLS},
	"oauth": {way: "url", read: (*entry).readOAuth},

	"builtin":     {read: into(func(e *entry) *string { return &e.Builtin })},
	"disabled":    {read: into(func(*entry) *bool { return new(bool) })},
	"enabled":     {read: into(func(*entry) *bool { return new(bool) }), hidden: true},
	"timeout":     {read: (*entry).readTimeout},
	"concurrency": {read: (*entry).readConcurrency},
	"readOnly":    {read: globs(func(e *entry) *[]string { return &e.ReadOnly })},
	"tools":       {read: (*entry).readTools},
	"with":        {read: (*entry).readWith},
	"probe":       {read: into(func(e *entry) *bool { return &e.Probe })},

	"transport":     {read: (*entry).readKind, hidden: true},                                   // FastMCP
	"transportType": {read: (*entry).readKind, hidden: true},                                   // Cline
	"includeTools":  {read: globs(func(e *entry) *[]string { return &e.Allow }), hidden: true}, // Gemini
	"excludeTools":  {read: globs(func(e *entry) *[]string { return &e.Deny }), hidden: true},  // Gemini
	"disabledTools": {read: globs(func(e *entry) *[]string { return &e.Deny }), hidden: true},  // Kiro, Windsurf

	// What clients note for themselves.
	"name": {hidden: true}, "title": {hidden: true}, "description": {hidden: true}, "icon": {hidden: true},
	"version": {hidden: true}, "gallery": {hidden: true}, "trust": {hidden: true}, "autoApprove": {hidden: true},
	"alwaysAllow": {hidden: true}, "dev": {hidden: true}, "metadata": {hidden: true}, "watchPaths": {hidden: true},
	"note": {hidden: true}, "source": {hidden: true},

	// What would be a lie to ignore.
	"auth":             {refuse: "is not supported; set headers or oauth", hidden: true},
	"authProviderType": {refuse: "is not supported; set headers or oauth", hidden: true},
	"headersHelper":    {refuse: "is not supported: no program is run for headers; set headers, with ${VAR} or ${file:PATH} for what changes", hidden: true},
	"sandbox":          {refuse: "is not supported: the server would run without a sandbox", hidden: true},
	"sandboxEnabled":   {refuse: "is not supported: the server would run without a sandbox", hidden: true},
}

// offered are the members that messages offer.
func offered() []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !fields[key].hidden {
			keys = append(keys, key)
		}
	}
	return keys
}

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
	if err := into(func(e *entry) *string { return &e.Kind })(e, value); err != nil {
		return err
	}
	if kinds[e.Kind] == "" {
		kind := e.Kind
		e.Kind = ""
		return fmt.Errorf("unknown type %q; want stdio, http or sse", kind)
	}
	return nil
}

func (e *entry) readURL(value json.RawMessage) error {
	if e.URL != "" {
		return fmt.Errorf("there is an address already")
	}
	if err := into(func(e *entry) *string { return &e.URL })(e, value); err != nil {
		return err
	}
	return upstream.Endpoint{URL: e.URL}.Check()
}

// readEnv takes numbers and booleans too, as other clients do.
func (e *entry) readEnv(value json.RawMessage) error {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil || isNull(value) {
		return fmt.Errorf("want an object of strings, got %s", kindOf(value))
	}
	e.Env = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch v := members[name].(type) {
		case string, json.Number, bool:
			e.Env[name] = fmt.Sprint(v)
		default:
			return fmt.Errorf("%s: want a string", name)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(e.Env[name], 0) {
			return fmt.Errorf("%q cannot be a variable", name)
		}
	}
	return nil
}

// readDir takes a directory, relative to the project that the file belongs to.
func (e *entry) readDir(value json.RawMessage) error {
	if err := into(func(e *entry) *string { return &e.Dir })(e, value); err != nil || filepath.IsAbs(e.Dir) || e.Dir == "" {
		return err
	}
	workspace, err := e.reader.file.workspace()
	e.Dir = filepath.Join(workspace, e.Dir)
	return err
}

// readEnvFile reads the file of variables that is named, relative to the configuration. Those of env win.
func (e *entry) readEnvFile(value json.RawMessage) error {
	var path string
	if err := json.Unmarshal(value, &path); err != nil || path == "" {
		return fmt.Errorf("want the path of a file, got %s", kindOf(value))
	}
	path = e.reader.file.beside(path)
	data, err := e.reader.readFile(path)
	if err != nil {
		return err
	}
	e.fileEnv, err = parseEnv(path, data)
	return err
}

// readHeaders takes an object of strings that can be sent.
func (e *entry) readHeaders(value json.RawMessage) error {
	if err := into(func(e *entry) *map[string]string { return &e.Headers })(e, value); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("%q cannot be the name of a header", name)
		case !httpguts.ValidHeaderFieldValue(e.Headers[name]):
			return fmt.Errorf("%s: the value has characters that no header may hold, such as a line break", name)
		}
	}
	return nil
}

// globs adds patterns of tool names to a list.
func globs(target func(e *entry) *[]string) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		var list []string
		if err := json.Unmarshal(value, &list); err != nil || isNull(value) {
			return fmt.Errorf("want an array of patterns, got %s", kindOf(value))
		}
		if slices.Contains(list, "") {
			return fmt.Errorf("an empty pattern matches no tool")
		}
		*target(e) = append(*target(e), list...)
		return nil
	}
}

// readWith takes the arguments that every call gets.
func (e *entry) readWith(value json.RawMessage) error {
	if err := json.Unmarshal(value, &e.With); err != nil || isNull(value) {
		return fmt.Errorf("want an object of arguments, got %s", kindOf(value))
	}
	return nil
}

// maxSeconds is where numbers begin that are milliseconds: no client writes a timeout of less than a second, and none
// that counts in seconds one of more than a quarter of an hour.
const maxSeconds = 1000

// readTimeout takes seconds, as everything here does, a duration such as "90s", or milliseconds as other clients write
// them.
func (e *entry) readTimeout(value json.RawMessage) error {
	var number float64
	var text string
	switch {
	case json.Unmarshal(value, &number) == nil && !isNull(value):
		unit := time.Second
		if number >= maxSeconds {
			unit = time.Millisecond
		}
		e.Timeout = time.Duration(number * float64(unit))
	case json.Unmarshal(value, &text) == nil && !isNull(value):
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`%q is no duration; want one such as "90s", or a number of seconds`, cut(text))
		}
		e.Timeout = d
	default:
		return fmt.Errorf(`want a duration such as "90s", or a number of seconds`)
	}
	if e.Timeout <= 0 || e.Timeout > 24*time.Hour {
		return fmt.Errorf("want more than 0 and at most 24h, got %s", cut(string(value)))
	}
	return nil
}

func (e *entry) readConcurrency(value json.RawMessage) error {
	if err := json.Unmarshal(value, &e.Concurrency); err != nil || e.Concurrency < 1 || e.Concurrency > 1024 {
		return fmt.Errorf("want a whole number from 1 to 1024, got %s", cut(string(value)))
	}
	return nil
}

// readTools takes {"allow": [globs], "deny": [globs]}, or an array of what is allowed, as the Copilot CLI writes it. A
// list that allows nothing is taken for a mistake: it would be all or nothing, and nobody could tell which.
func (e *entry) readTools(value json.RawMessage) error {
	allow := globs(func(e *entry) *[]string { return &e.Allow })
	if value[0] == '[' {
		if err := allow(e, value); err != nil {
			return err
		}
		return allowsNothing(value)
	}
	var t struct {
		Allow json.RawMessage `json:"allow"`
		Deny  json.RawMessage `json:"deny"`
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil || isNull(value) {
		return fmt.Errorf(`want {"allow": [patterns], "deny": [patterns]}, got %s`, kindOf(value))
	}
	if t.Allow != nil {
		if err := allow(e, t.Allow); err != nil {
			return fmt.Errorf("allow: %w", err)
		}
		if err := allowsNothing(t.Allow); err != nil {
			return err
		}
	}
	if t.Deny != nil {
		if err := globs(func(e *entry) *[]string { return &e.Deny })(e, t.Deny); err != nil {
			return fmt.Errorf("deny: %w", err)
		}
	}
	return nil
}

func allowsNothing(list json.RawMessage) error {
	if string(bytes.Join(bytes.Fields(list), nil)) == "[]" {
		return fmt.Errorf(`allows no tool at all; write "disabled": true for that, or leave it out to allow all`)
	}
	return nil
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// cut shortens what a message shows of a value.
func cut(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
