package clients

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Server is an entry of our configuration.
type Server struct {
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

// Summary says how a server is reached, and shows nothing that may be secret.
func (s *Server) Summary() string {
	words := []string{"http"}
	if s.Command != "" {
		words = []string{filepath.Base(s.Command)}
	}
	for _, part := range []struct {
		n          int
		one, other string
	}{{len(s.Env), "variable", "variables"}, {len(s.Headers), "header", "headers"}} {
		switch part.n {
		case 0:
		case 1:
			words = append(words, "1 "+part.one)
		default:
			words = append(words, strconv.Itoa(part.n)+" "+part.other)
		}
	}
	if s.Disabled {
		words = append(words, "disabled")
	}
	return strings.Join(words, ", ")
}

// translator makes entries of ours out of those of one file.
type translator struct {
	variant   int
	workspace string
	project   bool // the file belongs to the project: its programs run there
}

// setter takes the value of a member; the error says what was expected, and never shows a value.
type setter func(t translator, s *Server, v any) error

// members are the keys that clients have, by what they mean.
var members = map[string]setter{
	"type": setType, "transport": setType, "transportType": setType,
	"command": setCommand, "cmd": setCommand, "args": setArgs,
	"env": setEnv, "environment": setEnv, "envs": setEnv, "env_vars": setEnvNames,
	"envFile": setEnvFile, "cwd": text(func(s *Server) *string { return &s.Dir }),
	"url": setURL, "httpUrl": setURL, "serverUrl": setURL, "uri": setURL,
	"headers": setHeaders, "http_headers": setHeaders, "env_http_headers": setHeaderNames, "bearer_token_env_var": setBearer,
	"disabled": func(_ translator, s *Server, v any) error { return flag(&s.Disabled, v, false) },
	"enabled":  func(_ translator, s *Server, v any) error { return flag(&s.Disabled, v, true) },
	"tools":    setTools, "includeTools": setTools, "enabled_tools": setTools,
	"excludeTools": setDenied, "disabledTools": setDenied, "disabled_tools": setDenied,
	"sandboxEnabled": refuseSandbox, "timeout": setTimeout, "tool_timeout_sec": setTimeout,
}

// quiet are notes that clients make for themselves: nobody misses them.
var quiet = []string{"name", "title", "description", "icon", "version", "gallery", "source", "note", "metadata", "startup_timeout_sec", "startup_timeout_ms"}

// server translates one entry.
func (t translator) server(v any) Found {
	entry, ok := v.(map[string]any)
	if !ok {
		return Found{Err: errors.New("want an object")}
	}
	var f Found
	s := &Server{}
	for _, key := range sortedNames(entry) {
		set, known := members[key]
		switch {
		case known:
			if err := set(t, s, entry[key]); err != nil {
				return Found{Err: fmt.Errorf("%s: %w", key, err)}
			}
		case !slices.Contains(quiet, key):
			f.LeftOut = append(f.LeftOut, key)
		}
	}
	switch {
	case s.Command == "" && s.URL == "":
		return Found{Err: errors.New("it says neither command nor url")}
	case s.Command != "" && s.URL != "":
		return Found{Err: errors.New("it says command and url")}
	case isOurs(s):
		return Found{Err: errOurs}
	}
	if s.Command != "" && s.Dir == "" && t.project {
		s.Dir = t.workspace
	}
	if s.Type == "stdio" || s.Type == "local" || s.Type != "" && s.Type != "sse" {
		s.Type = "" // the rest says it
	}
	f.Server = s
	return f
}

// errOurs is why an entry that starts this gateway is not taken into its own configuration.
var errOurs = errors.New("it is this gateway itself")

func isOurs(s *Server) bool {
	return strings.TrimSuffix(filepath.Base(s.Command), ".exe") == "mcsh" && slices.Contains(s.Args, "serve")
}

func setType(_ translator, s *Server, v any) error {
	kind, ok := v.(string)
	if !ok {
		return errors.New("want a string")
	}
	s.Type = kind
	return nil
}

// setCommand takes a program, a program with its arguments, or an object of both.
func setCommand(t translator, s *Server, v any) error {
	switch v := v.(type) {
	case string:
		s.Command = t.adapt(v)
		return nil
	case []any:
		words, err := t.strings(v)
		if err != nil || len(words) == 0 {
			return errors.New("want a program and its arguments")
		}
		s.Command, s.Args = words[0], append(words[1:], s.Args...)
		return nil
	case map[string]any:
		for _, key := range sortedNames(v) {
			set := map[string]setter{"path": setCommand, "command": setCommand, "args": setArgs, "env": setEnv}[key]
			if set == nil {
				continue
			}
			if err := set(t, s, v[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	}
	return errors.New("want a string")
}

func setArgs(t translator, s *Server, v any) error {
	words, err := t.strings(v)
	s.Args = append(s.Args, words...)
	return err
}

func setEnv(t translator, s *Server, v any) error { return t.into(&s.Env, v) }

func setHeaders(t translator, s *Server, v any) error { return t.into(&s.Headers, v) }

// setEnvNames takes names of variables that are handed on.
func setEnvNames(_ translator, s *Server, v any) error {
	names, ok := v.([]any)
	if !ok {
		return errors.New("want an array of names")
	}
	for _, name := range names {
		n, ok := name.(string)
		if !ok {
			return errors.New("want an array of names")
		}
		put(&s.Env, n, "${"+n+"}")
	}
	return nil
}

// setHeaderNames takes headers whose values are in variables.
func setHeaderNames(_ translator, s *Server, v any) error {
	names, ok := v.(map[string]any)
	if !ok {
		return errors.New("want an object of names of variables")
	}
	for header, name := range names {
		n, ok := name.(string)
		if !ok {
			return errors.New("want an object of names of variables")
		}
		put(&s.Headers, header, "${"+n+"}")
	}
	return nil
}

func setBearer(_ translator, s *Server, v any) error {
	name, ok := v.(string)
	if !ok {
		return errors.New("want the name of a variable")
	}
	put(&s.Headers, "Authorization", "Bearer ${"+name+"}")
	return nil
}

func put(m *map[string]string, name, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = value
}

func setEnvFile(t translator, s *Server, v any) error {
	if err := text(func(s *Server) *string { return &s.EnvFile })(t, s, v); err != nil {
		return err
	}
	if !filepath.IsAbs(s.EnvFile) && !strings.HasPrefix(s.EnvFile, "${") {
		s.EnvFile = filepath.Join(t.workspace, s.EnvFile)
	}
	return nil
}

func setURL(t translator, s *Server, v any) error {
	if s.URL != "" {
		return errors.New("there is an address already")
	}
	return text(func(s *Server) *string { return &s.URL })(t, s, v)
}

func flag(to *bool, v any, inverted bool) error {
	b, ok := v.(bool)
	if !ok {
		return errors.New("want true or false")
	}
	*to = *to || b != inverted
	return nil
}

func setTools(t translator, s *Server, v any) error {
	if s.Tools == nil {
		s.Tools = &Tools{}
	}
	if o, ok := v.(map[string]any); ok {
		for _, key := range sortedNames(o) {
			to := map[string]*[]string{"allow": &s.Tools.Allow, "deny": &s.Tools.Deny}[key]
			if to == nil {
				return fmt.Errorf("want allow and deny, not %q", key)
			}
			words, err := t.strings(o[key])
			if err != nil {
				return err
			}
			*to = append(*to, words...)
		}
		return nil
	}
	words, err := t.strings(v)
	s.Tools.Allow = append(s.Tools.Allow, words...)
	return err
}

func setDenied(t translator, s *Server, v any) error {
	if s.Tools == nil {
		s.Tools = &Tools{}
	}
	words, err := t.strings(v)
	s.Tools.Deny = append(s.Tools.Deny, words...)
	return err
}

// refuseSandbox refuses what would run with more rights here than there.
func refuseSandbox(_ translator, _ *Server, v any) error {
	if on, ok := v.(bool); ok && !on {
		return nil
	}
	return errors.New("it would run here without the sandbox")
}

// setTimeout takes seconds, or milliseconds from 1000 on, as our own files do.
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

func text(to func(*Server) *string) setter {
	return func(t translator, s *Server, v any) error {
		words, ok := v.(string)
		if !ok {
			return errors.New("want a string")
		}
		*to(s) = t.adapt(words)
		return nil
	}
}

func (t translator) strings(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("want an array of strings")
	}
	var words []string
	for _, one := range list {
		word, ok := one.(string)
		if !ok {
			return nil, errors.New("want an array of strings")
		}
		words = append(words, t.adapt(word))
	}
	return words, nil
}

// into adds an object of strings. Numbers and booleans are taken as they are written.
func (t translator) into(to *map[string]string, v any) error {
	o, ok := v.(map[string]any)
	if !ok {
		return errors.New("want an object of strings")
	}
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
	return nil
}

// bare is a variable as shells write it.
var bare = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// adapt writes a string so that it means to us what it means to the client.
func (t translator) adapt(text string) string {
	if t.variant == literal {
		return strings.NewReplacer("$$", "$$$$", "${", "$${").Replace(text)
	}
	text = strings.ReplaceAll(text, "$$", "$$$$")
	if t.variant == dollars {
		text = bare.ReplaceAllString(text, "$${$1}")
	}
	text = strings.ReplaceAll(text, "${workspaceFolder}", t.workspace)
	return strings.ReplaceAll(text, "${workspaceFolderBasename}", filepath.Base(t.workspace))
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
