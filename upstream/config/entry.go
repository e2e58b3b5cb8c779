package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A spec is everything that an entry says of its server, with variables replaced. Two specs that are equal as JSON are
// the same server.
type spec struct {
	Kind, Command, Dir, URL, Builtin string

	Args        []string
	Env         map[string]string
	Headers     map[string]string
	Options     map[string]json.RawMessage // a builtin's own
	Timeout     time.Duration
	Concurrency int
	ReadOnly    []string
	Allow, Deny []string
	With        map[string]json.RawMessage
	Probe       bool
	TLS         upstream.TLS
	OAuth       *upstream.OAuth
	Files       [][sha256.Size]byte // what the files of TLS hold
}

// entry is one server as it is written.
type entry struct {
	spec
	reader *reader
	name   string
	offset int // of its name
	errs   int // how many mistakes there were before it

	fileEnv map[string]string // of envFile
	set     map[string]int    // the members that are set, and where
	unknown []hujson.ObjectMember
	secrets secrets
	dial    func(context.Context) (mcp.Transport, error) // of a builtin
}

// server reads one server.
func (r *reader) server(name string, m hujson.ObjectMember) {
	e := &entry{
		reader: r, name: name, offset: m.Name.StartOffset, errs: len(r.errs),
		set: map[string]int{}, spec: spec{Options: map[string]json.RawMessage{}},
	}
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		r.fail(m.Value.StartOffset, name, "want an object with command, url or builtin")
		return
	}
	if isDisabled(object) {
		return // it may well hold variables that are not set
	}
	for _, field := range object.Members {
		e.field(field)
	}
	e.leftovers()
	e.settle()
	if len(r.errs) == e.errs {
		r.entries = append(r.entries, e)
		return
	}
	for i, err := range r.errs[e.errs:] {
		r.errs[e.errs+i] = errors.New(e.secrets.hide(err.Error()))
	}
}

func isDisabled(object *hujson.Object) bool {
	for _, m := range object.Members {
		if l, ok := m.Value.Value.(hujson.Literal); ok {
			if nameOf(m) == "disabled" && l.Kind() == 't' || nameOf(m) == "enabled" && l.Kind() == 'f' {
				return true
			}
		}
	}
	return false
}

// field reads one member of a server.
func (e *entry) field(m hujson.ObjectMember) {
	key := nameOf(m)
	if _, twice := e.set[key]; twice {
		e.fail(m.Name.StartOffset, key, "is there twice")
		return
	}
	e.set[key] = m.Name.StartOffset
	f, ok := fields[key]
	switch {
	case !ok:
		e.unknown = append(e.unknown, m)
	case f.refuse != "":
		e.fail(m.Name.StartOffset, key, "%s", f.refuse)
	case f.read != nil:
		errs := len(e.reader.errs)
		value := e.expand(m.Value, key)
		if len(e.reader.errs) > errs {
			return
		}
		if err := f.read(e, value); err != nil {
			e.fail(m.Value.StartOffset, key, "%v", err)
		}
	}
}

func (e *entry) fail(offset int, key, format string, args ...any) {
	where := e.name
	if key != "" {
		where += "." + key
	}
	e.reader.fail(offset, where, format, args...)
}

// leftovers are members that no server has in common: a builtin's options, or mistakes.
func (e *entry) leftovers() {
	for _, m := range e.unknown {
		key := nameOf(m)
		if e.Builtin != "" {
			e.Options[key] = e.expand(m.Value, key)
			continue
		}
		if near := nearest.Name(key, offered()); near != "" {
			e.fail(m.Name.StartOffset, "", "unknown key %q; did you mean %q?", key, near)
		} else {
			e.fail(m.Name.StartOffset, "", "unknown key %q; there are %s", key, strings.Join(offered(), ", "))
		}
	}
}

// settle checks what the members say together.
func (e *entry) settle() {
	switch ways := e.ways(); {
	case strings.TrimSpace(e.name) == "":
		e.fail(e.offset, "", "a server needs a name")
	case strings.ContainsRune(e.name, '/'):
		e.fail(e.offset, "", "the name of a server holds no slash, so that SERVER/TOOL can be told apart")
	case len(ways) == 0 && len(e.reader.errs) == e.errs:
		e.fail(e.offset, "", "say how to reach it: command, url or builtin")
	case len(ways) > 1:
		e.fail(e.offset, "", "has %s; want one of them", strings.Join(ways, " and "))
	case len(ways) == 1:
		e.conflicts(ways[0])
	}
	if e.Builtin != "" && len(e.reader.errs) == e.errs {
		var err error
		if e.dial, err = e.dialBuiltin(); err != nil {
			e.fail(e.set["builtin"], "builtin", "%v", err)
		}
	}
	for name, value := range e.fileEnv {
		if _, own := e.Env[name]; !own {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = value
		}
	}
	e.secrets.ofSpec(&e.spec)
}

// ways lists how the entry says that the server is reached.
func (e *entry) ways() []string {
	var ways []string
	for _, w := range []struct{ name, value string }{{"command", e.Command}, {"url", e.URL}, {"builtin", e.Builtin}} {
		if w.value != "" {
			ways = append(ways, w.name)
		}
	}
	return ways
}

// conflicts reports members that do not fit the way the server is reached.
func (e *entry) conflicts(way string) {
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		if f := fields[key]; f.way != "" && f.way != way {
			e.fail(e.set[key], key, "belongs to a server with %s, and this one has %s", f.way, way)
		}
	}
	if want := kinds[e.Kind]; e.Kind != "" && want != way {
		key := e.kindKey()
		e.fail(e.set[key], key, "%q belongs to a server with %s, and this one has %s", e.Kind, want, way)
	}
}

// kindKey is the member that says the type.
func (e *entry) kindKey() string {
	for _, key := range []string{"transport", "transportType"} {
		if _, ok := e.set[key]; ok {
			return key
		}
	}
	return "type"
}

// upstream makes the server that the entry describes.
func (e *entry) upstream() upstream.Server {
	file := e.reader.file
	s := upstream.Server{
		Name: e.name, Timeout: e.Timeout, Concurrency: e.Concurrency,
		ReadOnly: e.ReadOnly, Allow: e.Allow, Deny: e.Deny, With: e.With,
		Where: e.reader.where(e.offset), Secrets: e.secrets.words(), Version: e.spec.version(),
		Probe: e.Probe, Identity: e.spec.identity(),
	}
	switch {
	case e.Builtin != "":
		s.Dial = e.dial
	case e.Command != "":
		s.Dial = upstream.Stdio(upstream.Command{
			Name: e.Command, Args: e.Args, Dir: e.Dir, Env: e.Env, Lookup: file.Lookup,
			MaxMessage: file.MaxMessage, Where: s.Where,
		})
	default:
		s.Dial = upstream.HTTP(e.endpoint())
	}
	return s
}

func (e *entry) endpoint() upstream.Endpoint {
	headers := http.Header{}
	for name, value := range e.Headers {
		headers.Set(name, value)
	}
	file := e.reader.file
	return upstream.Endpoint{
		URL: e.URL, Headers: headers, Proxy: file.Proxy, LegacySSE: e.Kind == "sse", Either: e.Kind == "",
		TLS: e.TLS, OAuth: e.OAuth,
		MaxMessage: file.MaxMessage, Where: e.reader.where(e.offset),
	}
}

// version is a word that differs where anything differs. It is a hash because a spec holds secrets.
func (s *spec) version() string {
	data, err := json.Marshal(s)
	if err != nil { // strings, numbers and JSON that was read
		panic("mcsh: internal error: encoding a server: " + err.Error())
	}
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// identity is a word for what is reached, whatever the settings of calls and the credentials are.
func (s *spec) identity() string {
	reached := spec{Kind: s.Kind, Command: s.Command, Dir: s.Dir, URL: s.URL, Builtin: s.Builtin, Args: s.Args, Options: s.Options}
	return reached.version()
}

func (e *entry) dialBuiltin() (func(context.Context) (mcp.Transport, error), error) {
	table := e.reader.file.Builtins
	dial, ok := table[e.Builtin]
	if !ok {
		names := slices.Sorted(maps.Keys(table))
		if near := nearest.Name(e.Builtin, names); near != "" {
			return nil, fmt.Errorf("there is no builtin server %q; did you mean %q?", e.Builtin, near)
		}
		return nil, fmt.Errorf("there is no builtin server %q; there are: %s", e.Builtin, strings.Join(names, ", "))
	}
	options, err := json.Marshal(e.Options)
	if err != nil {
		return nil, fmt.Errorf("reading its options: %w", err)
	}
	return dial(options)
}

// beside makes a path that is relative to the directory of the configuration.
func (f *File) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}
