package clients

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Server is an entry of our configuration.
type Server struct {
	Builtin  string            `json:"builtin,omitempty"` // the name of one of ours
	Type     string            `json:"type,omitempty"`
	Command  string            `json:"command,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	EnvFile  string            `json:"envFile,omitempty"`
	Dir      string            `json:"cwd,omitempty"`
	URL      string            `json:"url,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Disabled bool              `json:"disabled,omitempty"`
	Tools    *Tools            `json:"tools,omitempty"`
	Timeout  string            `json:"timeout,omitempty"`
}

// Tools are the tools that an entry allows and denies.
type Tools struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Summary says how a server is reached, without anything that may be secret.
func (s *Server) Summary() string {
	words := []string{"http"}
	switch {
	case s.Builtin != "":
		words = []string{"built in"}
	case s.Command != "":
		words = []string{filepath.Base(s.Command)}
	}
	if n := len(s.Env); n > 0 {
		words = append(words, texts.Count(n, "variable"))
	}
	if n := len(s.Headers); n > 0 {
		words = append(words, texts.Count(n, "header"))
	}
	if s.Disabled {
		words = append(words, "disabled")
	}
	return strings.Join(words, ", ")
}

// translator translates the entries of one file into ours.
type translator struct {
	variant   int
	workspace string
	project   bool // the file belongs to the project: its programs run there
}

// setter sets a field from the value of a member; the error names the expected type, and never shows the value.
type setter func(t translator, s *Server, v any) error

// members are the keys of clients, with their meaning.
var members = map[string]setter{
	"type": setType, "transport": setType, "transportType": setType,
	"command": setCommand, "cmd": setCommand, "args": setArgs,
	"env": setEnv, "environment": setEnv, "envs": setEnv, "env_vars": setEnvNames,
	"envFile": setEnvFile, "cwd": setDir,
	"url": setURL, "httpUrl": setURL, "serverUrl": setURL, "uri": setURL,
	"headers": setHeaders, "http_headers": setHeaders, "env_http_headers": setHeaderNames, "bearer_token_env_var": setBearer,
	"disabled": disableIf(true), "enabled": disableIf(false),
	"tools": setTools, "includeTools": setTools, "enabled_tools": setTools,
	"excludeTools": setDenied, "disabledTools": setDenied, "disabled_tools": setDenied,
	"sandboxEnabled": refuseSandbox, "timeout": setTimeout, "tool_timeout_sec": setTimeout,
}

// ignoredKeys are notes of clients for themselves.
var ignoredKeys = []string{"name", "title", "description", "icon", "version", "gallery", "source", "note", "metadata", "startup_timeout_sec", "startup_timeout_ms"}

// server translates one entry.
func (t translator) server(v any) Entry {
	entry, err := as[map[string]any](v, "an object")
	s := &Server{}
	if err == nil {
		err = t.each(s, entry, members)
	}
	switch {
	case err != nil:
		return Entry{Err: err}
	case s.Command == "" && s.URL == "":
		return Entry{Err: errors.New("it has neither command nor url")}
	case s.Command != "" && s.URL != "":
		return Entry{Err: errors.New("it has both command and url")}
	case isOurs(s):
		return Entry{Err: errOurs}
	}
	if s.Command != "" && s.Dir == "" && t.project {
		s.Dir = t.workspace
	}
	if s.Type != "sse" {
		s.Type = "" // the rest says it
	}
	leftOut := slices.DeleteFunc(sortedNames(entry), func(key string) bool {
		return members[key] != nil || slices.Contains(ignoredKeys, key)
	})
	return Entry{Server: s, LeftOut: leftOut}
}

// each sets what the members of an object say, in the order of their names.
func (t translator) each(s *Server, object map[string]any, setters map[string]setter) error {
	for _, key := range sortedNames(object) {
		if set := setters[key]; set != nil {
			if err := set(t, s, object[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// errOurs is the error of an entry that starts this gateway.
var errOurs = errors.New("it is this gateway itself")

func isOurs(s *Server) bool {
	return strings.TrimSuffix(filepath.Base(s.Command), ".exe") == "mcsh" && slices.Contains(s.Args, "serve")
}

// as returns a value as one of a type, which the error names as want.
func as[T any](v any, want string) (T, error) {
	value, ok := v.(T)
	if !ok {
		return value, errors.New("want " + want)
	}
	return value, nil
}

func setType(t translator, s *Server, v any) error { return t.text(&s.Type, v) }

func setDir(t translator, s *Server, v any) error { return t.text(&s.Dir, v) }

// setCommand accepts a program, a program with its arguments, or an object of both.
func setCommand(t translator, s *Server, v any) error {
	switch v := v.(type) {
	case []any:
		var words []string
		if err := t.append(&words, v); err != nil || len(words) == 0 {
			return errors.New("want a program and its arguments")
		}
		s.Command, s.Args = words[0], append(words[1:], s.Args...)
		return nil
	case map[string]any:
		return t.each(s, v, map[string]setter{"path": setCommand, "command": setCommand, "args": setArgs, "env": setEnv})
	}
	return t.text(&s.Command, v)
}

func setArgs(t translator, s *Server, v any) error { return t.append(&s.Args, v) }

func setEnv(t translator, s *Server, v any) error { return t.into(&s.Env, v) }

func setHeaders(t translator, s *Server, v any) error { return t.into(&s.Headers, v) }

// setEnvNames accepts names of variables that are passed on.
func setEnvNames(t translator, s *Server, v any) error {
	var names []string
	err := t.append(&names, v)
	for _, name := range names {
		put(&s.Env, name, "${"+name+"}")
	}
	return err
}

// setHeaderNames accepts headers with the names of variables that hold their values.
func setHeaderNames(t translator, s *Server, v any) error {
	var names map[string]string
	err := t.into(&names, v)
	for header, name := range names {
		put(&s.Headers, header, "${"+name+"}")
	}
	return err
}

func setBearer(_ translator, s *Server, v any) error {
	name, err := as[string](v, "the name of a variable")
	put(&s.Headers, "Authorization", "Bearer ${"+name+"}")
	return err
}

func put(m *map[string]string, name, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = value
}

func setEnvFile(t translator, s *Server, v any) error {
	err := t.text(&s.EnvFile, v)
	if !filepath.IsAbs(s.EnvFile) && !strings.HasPrefix(s.EnvFile, "${") {
		s.EnvFile = filepath.Join(t.workspace, s.EnvFile)
	}
	return err
}

func setURL(t translator, s *Server, v any) error {
	if s.URL != "" {
		return errors.New("there is an address already")
	}
	return t.text(&s.URL, v)
}

// disableIf disables a server whose member has that value.
func disableIf(value bool) setter {
	return func(_ translator, s *Server, v any) error {
		is, err := as[bool](v, "true or false")
		s.Disabled = s.Disabled || is == value
		return err
	}
}

// setTools accepts a list of allowed tools, or our own object.
func setTools(t translator, s *Server, v any) error {
	tools := s.tools()
	o, ok := v.(map[string]any)
	if !ok {
		return t.append(&tools.Allow, v)
	}
	for _, key := range sortedNames(o) {
		to := map[string]*[]string{"allow": &tools.Allow, "deny": &tools.Deny}[key]
		if to == nil {
			return fmt.Errorf("want allow and deny, not %q", key)
		}
		if err := t.append(to, o[key]); err != nil {
			return err
		}
	}
	return nil
}

func setDenied(t translator, s *Server, v any) error { return t.append(&s.tools().Deny, v) }

func (s *Server) tools() *Tools {
	if s.Tools == nil {
		s.Tools = &Tools{}
	}
	return s.Tools
}

// refuseSandbox refuses a server that would have more rights here than there.
func refuseSandbox(_ translator, _ *Server, v any) error {
	if v == false {
		return nil
	}
	return errors.New("it would run here without the sandbox")
}

// setTimeout accepts seconds, or milliseconds from 1000 on, like our own files.
func setTimeout(_ translator, s *Server, v any) error {
	if words, ok := v.(string); ok {
		s.Timeout = words
		return nil
	}
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil || n <= 0 {
		return errors.New("want a number")
	}
	unit := "s"
	if n >= 1000 {
		unit = "ms"
	}
	s.Timeout = strconv.FormatFloat(n, 'f', -1, 64) + unit
	return nil
}

// text sets a string.
func (t translator) text(to *string, v any) error {
	words, err := as[string](v, "a string")
	*to = t.adapt(words)
	return err
}

// append adds an array of strings to a list.
func (t translator) append(to *[]string, v any) error {
	const want = "an array of strings"
	list, err := as[[]any](v, want)
	for _, v := range list {
		word, err := as[string](v, want)
		if err != nil {
			return err
		}
		*to = append(*to, t.adapt(word))
	}
	return err
}

// into adds an object of strings. Numbers and booleans become strings.
func (t translator) into(to *map[string]string, v any) error {
	o, err := as[map[string]any](v, "an object of strings")
	for name, value := range o {
		switch value := value.(type) {
		case string:
			put(to, name, t.adapt(value))
		case map[string]any, []any, nil:
			return fmt.Errorf("%s: want a string", name)
		default:
			put(to, name, fmt.Sprint(value))
		}
	}
	return err
}

// bare matches a variable as shells write it.
var bare = lazy.Regexp(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// adapt writes a string so that it means here what it means to the client.
func (t translator) adapt(text string) string {
	if t.variant == literal {
		return strings.NewReplacer("$$", "$$$$", "${", "$${").Replace(text)
	}
	text = strings.ReplaceAll(text, "$$", "$$$$")
	if t.variant == dollars {
		text = bare().ReplaceAllString(text, "$${$1}")
	}
	text = strings.ReplaceAll(text, "${workspaceFolder}", t.workspace)
	return strings.ReplaceAll(text, "${workspaceFolderBasename}", filepath.Base(t.workspace))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
