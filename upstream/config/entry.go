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
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A spec is everything that an entry says about its server, with variables replaced. Two specs that are equal as JSON
// are the same server.
type spec struct {
	upstream.Server // without what depends on where the entry stands, and on how the server is reached

	Kind, Command, Dir, URL, Builtin string

	Args    []string
	Env     map[string]string
	Headers map[string]string
	Options map[string]json.RawMessage // a builtin's own
	TLS     upstream.TLS
	OAuth   *upstream.OAuth
	SignIn  upstream.SignIn
	Files   [][sha256.Size]byte // checksums of the files of TLS
}

// entry is one server as it is written.
type entry struct {
	spec
	reader *reader
	name   string
	offset int // of its name
	errs   int // the number of mistakes before it

	fileEnv map[string]string // of envFile
	set     map[string]int    // the members that are set, with their offsets
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
	if string(literal(object, "disabled")) == "true" || string(literal(object, "enabled")) == "false" {
		return // its variables may be unset
	}
	options := r.file.Options[literal(object, "builtin").String()]
	for _, field := range object.Members {
		e.field(field, slices.Contains(options, nameOf(field)))
	}
	e.unknownKeys()
	e.validate()
	if len(r.errs) == e.errs {
		r.entries = append(r.entries, e)
		return
	}
	for i, err := range r.errs[e.errs:] {
		r.errs[e.errs+i] = errors.New(e.secrets.hide(err.Error()))
	}
}

// literal returns the literal that a member of an object is; nil: it is none.
func literal(object *hujson.Object, name string) hujson.Literal {
	for _, m := range object.Members {
		if l, ok := m.Value.Value.(hujson.Literal); ok && nameOf(m) == name {
			return l
		}
	}
	return nil
}

// callGrace is how much longer than a builtin's own timeout a call of it may take, so that its own answer comes.
const callGrace = 10 * time.Second

// field reads one member of a server, which may be an option of a builtin. A timeout of one bounds the calls of the server too.
func (e *entry) field(m hujson.ObjectMember, option bool) {
	key := nameOf(m)
	if _, twice := e.set[key]; twice {
		e.fail(m.Name.StartOffset, key, "is set twice")
		return
	}
	e.set[key] = m.Name.StartOffset
	f, ok := fields[key]
	switch {
	case !ok, option && key != "timeout":
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
		} else if option {
			e.Options[key] = json.RawMessage(strconv.Quote(e.Timeout.String()))
			e.Timeout += callGrace
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

// unknownKeys handles members that are not common to all servers: a builtin's options, or mistakes.
func (e *entry) unknownKeys() {
	for _, m := range e.unknown {
		key := nameOf(m)
		if e.Builtin != "" {
			e.Options[key] = e.expand(m.Value, key)
		} else {
			e.fail(m.Name.StartOffset, "", "%v", unknownKey(key, offered()))
		}
	}
}

// validate checks the members together.
func (e *entry) validate() {
	switch ways := e.ways(); {
	case strings.TrimSpace(e.name) == "":
		e.fail(e.offset, "", "a server needs a name")
	case strings.ContainsRune(e.name, '/'):
		e.fail(e.offset, "", "the name of a server has no slash, because SERVER/TOOL names a tool")
	case len(ways) == 0 && len(e.reader.errs) == e.errs:
		e.fail(e.offset, "", "say how to reach it: command, url or builtin")
	case len(ways) > 1:
		e.fail(e.offset, "", "has %s; want one of them", strings.Join(ways, " and "))
	case len(ways) == 1:
		e.conflicts(ways[0])
	}
	if _, given := e.set["sticky"]; !given {
		e.Sticky = e.URL == ""
	}
	if e.Builtin != "" && len(e.reader.errs) == e.errs {
		var err error
		if e.dial, err = e.dialBuiltin(); err != nil {
			e.fail(e.set["builtin"], "builtin", "%v", err)
		}
	}
	if len(e.fileEnv) > 0 {
		maps.Copy(e.fileEnv, e.Env)
		e.Env = e.fileEnv
	}
	e.secrets.ofSpec(&e.spec)
}

// ways lists the members that say how the server is reached.
func (e *entry) ways() []string {
	var ways []string
	for _, w := range []struct{ name, value string }{{"command", e.Command}, {"url", e.URL}, {"builtin", e.Builtin}} {
		if w.value != "" {
			ways = append(ways, w.name)
		}
	}
	return ways
}

// conflicts reports members that do not fit the way in which the server is reached.
func (e *entry) conflicts(way string) {
	for _, key := range slices.Sorted(maps.Keys(e.set)) {
		if f := fields[key]; f.way != "" && f.way != way && e.Options[key] == nil {
			e.fail(e.set[key], key, "belongs to a server with %s, and this one has %s", f.way, way)
		}
	}
	if want := kinds[e.Kind]; e.Kind != "" && want != way {
		key := "type"
		for _, other := range []string{"transportType", "transport"} {
			if _, ok := e.set[other]; ok {
				key = other
			}
		}
		e.fail(e.set[key], key, "%q belongs to a server with %s, and this one has %s", e.Kind, want, way)
	}
}

// upstream makes the server that the entry describes.
func (e *entry) upstream() upstream.Server {
	file := e.reader.file
	s := e.Server
	s.Name, s.Where, s.Secrets = e.name, e.reader.where(e.offset), e.secrets.words()
	s.Version, s.Identity = hashOf(e.spec), e.spec.identity()
	switch {
	case e.Builtin != "":
		s.Dial, s.InProcess = e.dial, true
	case e.Command != "":
		s.Dial = upstream.Stdio(upstream.Command{
			Name: e.Command, Args: e.Args, Dir: e.Dir, Env: e.Env, Lookup: file.Lookup, Where: s.Where,
		})
	default:
		endpoint := e.endpoint()
		s.Dial, s.Endpoint = upstream.HTTP(endpoint), &endpoint
	}
	return s
}

func (e *entry) endpoint() upstream.Endpoint {
	headers := http.Header{}
	for name, value := range e.Headers {
		headers.Set(name, value)
	}
	file, signIn := e.reader.file, e.SignIn
	signIn.ClientMetadataURL = file.ClientMetadataURL
	return upstream.Endpoint{
		Name: e.name, SignIn: signIn, Logins: file.Logins,
		URL: e.URL, Headers: headers, Proxy: file.Proxy, LegacySSE: e.Kind == "sse", Either: e.Kind == "",
		TLS: e.TLS, OAuth: e.OAuth, Where: e.reader.where(e.offset),
	}
}

// hashOf is a hash of settings, which may hold secrets.
func hashOf(settings any) string {
	data, err := json.Marshal(settings)
	if err != nil { // strings, numbers and JSON that was read
		panic("mcsh: internal error: encoding a server: " + err.Error())
	}
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// identity is a text for the server that is reached: settings of calls and credentials do not change it. What is kept of a
// server depends on it, so a new setting must not change it.
func (s *spec) identity() string {
	return hashOf(struct {
		Kind, Command, Dir, URL, Builtin string

		Args    []string
		Options map[string]json.RawMessage
	}{s.Kind, s.Command, s.Dir, s.URL, s.Builtin, s.Args, s.Options})
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

// resolvePath makes a path relative to the directory of the configuration.
func (f *File) resolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}
