package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/pace"
)

// maxShown is how many bytes of a value a message shows.
const maxShown = 60

// A field is a member that a server's entry may have. A field without read is accepted and ignored.
type field struct {
	way    string // command or url, if it belongs to one of them
	read   func(e *entry, value json.RawMessage) error
	refuse string // why it is not accepted
	hidden bool   // not suggested for a wrong key
}

// fields are all known members: ours, and those that clients write into their files.
var fields = map[string]field{
	"type":    {read: (*entry).readKind},
	"command": {way: "command", read: into("a string", func(e *entry) *string { return &e.Command })},
	"args":    {way: "command", read: into("an array of strings", func(e *entry) *[]string { return &e.Args })},
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

	"builtin":     {read: into("a string", func(e *entry) *string { return &e.Builtin })},
	"disabled":    {read: into("true or false", func(*entry) *bool { return new(bool) })},
	"enabled":     {read: into("true or false", func(*entry) *bool { return new(bool) }), hidden: true},
	"timeout":     {read: duration(func(e *entry) *time.Duration { return &e.Timeout })},
	"concurrency": {read: (*entry).readConcurrency},
	"rate":        {read: (*entry).readRate},
	"readOnly":    {read: globs(func(e *entry) *[]string { return &e.ReadOnly })},
	"tools":       {read: allowDeny(`tool at all; write "disabled": true for that, or leave it out to allow all`, func(e *entry) (*[]string, *[]string) { return &e.Allow, &e.Deny })},
	"resources":   {read: allowDeny(`resource at all; write {"deny": ["*"]} for that, or leave it out`, func(e *entry) (*[]string, *[]string) { return &e.Resources.Allow, &e.Resources.Deny })},
	"prompts":     {read: allowDeny(`prompt at all; write {"deny": ["*"]} for that, or leave it out`, func(e *entry) (*[]string, *[]string) { return &e.Prompts.Allow, &e.Prompts.Deny })},
	"expose":      {read: (*entry).readExpose},
	"overrides":   {read: (*entry).readOverrides},
	"with":        {read: into("an object of arguments", func(e *entry) *map[string]json.RawMessage { return &e.With })},
	"sticky":      {read: into("true or false", func(e *entry) *bool { return &e.Sticky })},
	"probe":       {read: into("true or false", func(e *entry) *bool { return &e.Probe })},

	"asks":  {read: (*entry).readAsks},
	"roots": {read: (*entry).readRoots},

	"startTimeout": {read: duration(func(e *entry) *time.Duration { return &e.StartTimeout })},
	"protocol":     {read: (*entry).readProtocol},

	"transport":     {read: (*entry).readKind, hidden: true},                                   // FastMCP
	"transportType": {read: (*entry).readKind, hidden: true},                                   // Cline
	"includeTools":  {read: globs(func(e *entry) *[]string { return &e.Allow }), hidden: true}, // Gemini
	"excludeTools":  {read: globs(func(e *entry) *[]string { return &e.Deny }), hidden: true},  // Gemini
	"disabledTools": {read: globs(func(e *entry) *[]string { return &e.Deny }), hidden: true},  // Kiro, Windsurf

	// Notes of clients for themselves.
	"name": {hidden: true}, "title": {hidden: true}, "description": {hidden: true}, "icon": {hidden: true},
	"version": {hidden: true}, "gallery": {hidden: true}, "trust": {hidden: true}, "autoApprove": {hidden: true},
	"alwaysAllow": {hidden: true}, "dev": {hidden: true}, "metadata": {hidden: true}, "watchPaths": {hidden: true},
	"note": {hidden: true}, "source": {hidden: true},

	// Members that change what the server does, so that they cannot be ignored.
	"auth":             {refuse: "is not supported; set headers or oauth", hidden: true},
	"authProviderType": {refuse: "is not supported; set headers or oauth", hidden: true},
	"headersHelper":    {refuse: "is not supported: no program is run for headers; set headers, with ${VAR} or ${file:PATH} for what changes", hidden: true},
	"sandbox":          {refuse: "is not supported: the server would run without a sandbox", hidden: true},
	"sandboxEnabled":   {refuse: "is not supported: the server would run without a sandbox", hidden: true},
}

// offered are the members that messages suggest.
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

// decode decodes a value, and says what it should be. Numbers in it stay exact.
func decode[T any](value json.RawMessage, want string) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil || isNull(value) {
		return v, fmt.Errorf("want %s, got %s", want, kindOf(value))
	}
	return v, nil
}

// into decodes a value into a field of the entry.
func into[T any](want string, target func(e *entry) *T) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		v, err := decode[T](value, want)
		if err == nil {
			*target(e) = v
		}
		return err
	}
}

// kindOf is the type of a value in words. It does not show the value, which may be a secret.
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
	kind, err := decode[string](value, "a string")
	if err == nil && kinds[kind] == "" {
		return fmt.Errorf("unknown type %q; want stdio, http or sse", kind)
	}
	e.Kind = kind
	return err
}

func (e *entry) readURL(value json.RawMessage) (err error) {
	if e.URL != "" {
		return fmt.Errorf("there is an address already")
	}
	if e.URL, err = decode[string](value, "a string"); err != nil {
		return err
	}
	return upstream.Endpoint{URL: e.URL}.Check()
}

// readEnv accepts numbers and booleans too, as other clients do.
func (e *entry) readEnv(value json.RawMessage) error {
	members, err := decode[map[string]any](value, "an object of strings")
	if err != nil {
		return err
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

// readDir reads a directory, relative to the project that the file belongs to.
func (e *entry) readDir(value json.RawMessage) error {
	if err := into("a string", func(e *entry) *string { return &e.Dir })(e, value); err != nil || filepath.IsAbs(e.Dir) || e.Dir == "" {
		return err
	}
	workspace, err := e.reader.file.workspace()
	e.Dir = filepath.Join(workspace, e.Dir)
	return err
}

// readEnvFile reads the file of variables, whose path is relative to the configuration. The variables of env win.
func (e *entry) readEnvFile(value json.RawMessage) error {
	path, err := decode[string](value, "the path of a file")
	if err != nil {
		return err
	}
	if path == "" {
		return fmt.Errorf("want the path of a file, got %s", kindOf(value))
	}
	path = e.reader.file.resolvePath(path)
	data, err := e.reader.readFile(path)
	if err != nil {
		return err
	}
	e.fileEnv, err = parseEnv(path, data)
	return err
}

// readHeaders reads an object of headers that can be sent.
func (e *entry) readHeaders(value json.RawMessage) (err error) {
	if e.Headers, err = decode[map[string]string](value, "an object of strings"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("%q cannot be the name of a header", name)
		case !httpguts.ValidHeaderFieldValue(e.Headers[name]):
			return fmt.Errorf("%s: the value has characters that are not allowed in a header, such as a line break", name)
		}
	}
	return nil
}

// patterns reads patterns of tool names.
func patterns(value json.RawMessage) ([]string, error) {
	list, err := decode[[]string](value, "an array of patterns")
	if err == nil && slices.Contains(list, "") {
		return nil, fmt.Errorf("an empty pattern matches no tool")
	}
	return list, err
}

// globs adds patterns of tool names to a list.
func globs(target func(e *entry) *[]string) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		list, err := patterns(value)
		if err == nil {
			*target(e) = append(*target(e), list...)
		}
		return err
	}
}

// maxSeconds is where numbers count as milliseconds: no client writes a timeout below a second, and none that counts in
// seconds writes one above a quarter of an hour.
const maxSeconds = 1000

// duration reads seconds, a duration such as "90s", or milliseconds as other clients write them.
func duration(target func(e *entry) *time.Duration) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		var number float64
		var text string
		var d time.Duration
		switch {
		case json.Unmarshal(value, &number) == nil && !isNull(value):
			unit := time.Second
			if number >= maxSeconds {
				unit = time.Millisecond
			}
			d = time.Duration(number * float64(unit))
		case json.Unmarshal(value, &text) == nil && !isNull(value):
			var err error
			if d, err = time.ParseDuration(text); err != nil {
				return fmt.Errorf(`%q is not a duration; want one such as "90s", or a number of seconds`, texts.Cut(text, maxShown))
			}
		default:
			return fmt.Errorf(`want a duration such as "90s", or a number of seconds`)
		}
		if d <= 0 || d > 24*time.Hour {
			return fmt.Errorf("want more than 0 and at most 24h, got %s", texts.Cut(string(value), maxShown))
		}
		*target(e) = d
		return nil
	}
}

// protocols are the words for an era of the protocol: the newest version of each.
var protocols = map[string]upstream.Protocol{
	"auto": upstream.AnyProtocol, "2025-11-25": upstream.OnlyOlder, "2026-07-28": upstream.NewerFirst,
}

func (e *entry) readProtocol(value json.RawMessage) error {
	var word string
	if err := json.Unmarshal(value, &word); err == nil {
		if p, ok := protocols[word]; ok {
			e.Protocol = p
			return nil
		}
	}
	return fmt.Errorf(`want "auto", "2025-11-25" or "2026-07-28", got %s`, texts.Cut(string(value), maxShown))
}

func (e *entry) readConcurrency(value json.RawMessage) error {
	if err := json.Unmarshal(value, &e.Concurrency); err != nil || e.Concurrency < 1 || e.Concurrency > 1024 {
		return fmt.Errorf("want a whole number from 1 to 1024, got %s", texts.Cut(string(value), maxShown))
	}
	return nil
}

func (e *entry) readRate(value json.RawMessage) error {
	text, err := decode[string](value, `a string such as "10/s", "600/m" or "1000/h"`)
	if err == nil {
		e.Rate, err = pace.ParseRate(text)
	}
	return err
}

// allowDeny reads {"allow": [globs], "deny": [globs]}, or an array of what is allowed, as the Copilot CLI writes it for
// tools. A list that allows nothing is a mistake, as it might mean all or nothing: the error ends with none.
func allowDeny(none string, of func(*entry) (allow, deny *[]string)) func(*entry, json.RawMessage) error {
	return func(e *entry, value json.RawMessage) error {
		allow, deny := of(e)
		return readAllowDeny(none, value, allow, deny)
	}
}

func readAllowDeny(none string, value json.RawMessage, allow, deny *[]string) error {
	var t struct{ Allow, Deny json.RawMessage }
	where := ""
	if value[0] == '[' {
		t.Allow = value
	} else {
		where = "allow: "
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil || isNull(value) {
			return fmt.Errorf(`want {"allow": [patterns], "deny": [patterns]}, got %s`, kindOf(value))
		}
	}
	if t.Allow != nil {
		list, err := patterns(t.Allow)
		switch {
		case err != nil:
			return fmt.Errorf("%s%w", where, err)
		case len(list) == 0:
			return errors.New("allows no " + none)
		}
		*allow = append(*allow, list...)
	}
	if t.Deny != nil {
		list, err := patterns(t.Deny)
		if err != nil {
			return fmt.Errorf("deny: %w", err)
		}
		*deny = append(*deny, list...)
	}
	return nil
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// readAsks reads whether the server asks its callers something.
func (e *entry) readAsks(value json.RawMessage) error {
	asks, err := decode[bool](value, "true or false")
	if err == nil {
		e.Asks = upstream.NeverAsks
	}
	if asks {
		e.Asks = upstream.Asks
	}
	return err
}

// readRoots reads the directories that the server may use: absolute paths, paths relative to the project of the file, or URIs.
func (e *entry) readRoots(value json.RawMessage) error {
	list, err := decode[[]string](value, "an array of paths or file:// addresses")
	if err != nil {
		return err
	}
	for _, root := range list {
		uri, err := e.rootURI(root)
		if err != nil {
			return err
		}
		e.Roots = append(e.Roots, uri)
	}
	return nil
}

// rootURI is the URI of a root.
func (e *entry) rootURI(root string) (string, error) {
	if scheme, _, ok := strings.Cut(root, "://"); ok {
		u, err := url.Parse(root)
		if err != nil || scheme != "file" || !filepath.IsAbs(u.Path) {
			return "", fmt.Errorf("%s is no file:// address with an absolute path", texts.Quote(texts.Cut(root, maxShown)))
		}
		return root, nil
	}
	if root == "" || strings.ContainsRune(root, 0) {
		return "", fmt.Errorf("%s is no path", texts.Quote(root))
	}
	if !filepath.IsAbs(root) {
		workspace, err := e.reader.file.workspace()
		if err != nil {
			return "", err
		}
		root = filepath.Join(workspace, root)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(root)}).String(), nil
}

// readExpose reads whether clients call the tools of the server by names of their own: true for all, or patterns.
func (e *entry) readExpose(value json.RawMessage) (err error) {
	var all bool
	switch {
	case json.Unmarshal(value, &all) == nil && !isNull(value):
		if all {
			e.Expose = []string{"*"}
		}
		return nil
	case value[0] != '[':
		return fmt.Errorf("want true, false or an array of patterns of tools, got %s", kindOf(value))
	}
	e.Expose, err = patterns(value)
	return err
}

// maxToolName bounds the name that the operator gives a tool, in bytes.
const maxToolName = 128

// readOverrides reads what the operator says about tools in place of the server, by the names that the server has for them.
func (e *entry) readOverrides(value json.RawMessage) error {
	all, err := decode[map[string]json.RawMessage](value, `{"TOOL": {"name": string, "description": string, "readOnly": boolean}}`)
	if err != nil {
		return err
	}
	e.Overrides = map[string]upstream.Override{}
	for _, tool := range slices.Sorted(maps.Keys(all)) {
		if e.Overrides[tool], err = decodeStrict[upstream.Override](all[tool], "name", "description", "readOnly"); err != nil {
			return fmt.Errorf("%q: %w", tool, err)
		}
	}
	renamed := map[string]string{} // by the new name
	for _, tool := range slices.Sorted(maps.Keys(e.Overrides)) {
		o := e.Overrides[tool]
		switch {
		case o == (upstream.Override{}):
			return fmt.Errorf("%q: says nothing; want name, description or readOnly", tool)
		case o.Name == nil:
			continue
		case strings.TrimSpace(*o.Name) == "" || len(*o.Name) > maxToolName || strings.ContainsFunc(*o.Name, func(c rune) bool { return c < ' ' || c == '/' }):
			return fmt.Errorf("%q: %q cannot be the name of a tool: want up to %d bytes on one line, without a slash", tool, texts.Cut(*o.Name, maxShown), maxToolName)
		case renamed[*o.Name] != "":
			return fmt.Errorf("%q and %q have the same name, %q: want different ones", renamed[*o.Name], tool, *o.Name)
		}
		renamed[*o.Name] = tool
	}
	return nil
}
