package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tailscale/hujson"
)

// A Builtin makes the dial function of a server inside this program. The options are the members of its
// configuration that are not common to all servers, as a JSON object; the error names the wrong one.
type Builtin func(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error)

// A Config is a [Source] of servers from a configuration file as MCP clients have them: JSON with comments, the
// servers under "mcpServers" or "servers".
type Config struct {
	Path string // for messages, and the directory that ${workspaceFolder} stands for
	Data []byte // the file

	// Lookup gives the values of environment variables that the file names. Nil: none is set.
	Lookup func(name string) (string, bool)

	Builtins   map[string]Builtin // what "builtin" may name
	Proxy      func(*http.Request) (*url.URL, error)
	MaxMessage int // bytes of one message from a server, 0: 64 MiB
}

// Servers reads the file. All that is wrong in it comes in one error, a line each: file:line: key: message. The
// servers without mistakes are returned all the same.
func (c Config) Servers(context.Context) ([]Server, error) {
	r := &configReader{config: c}
	root, err := hujson.Parse(c.Data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.Path, err)
	}
	r.file(root)
	return r.servers, errors.Join(r.errs...)
}

// configReader reads one file.
type configReader struct {
	config  Config
	servers []Server
	errs    []error
}

// where is a place in the file.
func (r *configReader) where(offset int) string {
	line := 1 + bytes.Count(r.config.Data[:min(offset, len(r.config.Data))], []byte("\n"))
	return fmt.Sprintf("%s:%d", filepath.Base(r.config.Path), line)
}

func (r *configReader) fail(offset int, key, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if key != "" {
		msg = key + ": " + msg
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %s", r.where(offset), msg))
}

// serverKeys are the members of a file that hold servers.
var serverKeys = []string{"mcpServers", "servers"}

// file reads the whole file. Clients keep other settings beside the servers, which are none of our business.
func (r *configReader) file(root hujson.Value) {
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		r.fail(root.StartOffset, "", `want an object with "mcpServers"`)
		return
	}
	found := false
	var near string
	for _, m := range object.Members {
		key := nameOf(m)
		switch {
		case key == serverKeys[0] || key == serverKeys[1]:
			found = true
			r.list(m)
		case near == "":
			if near = nearest.Name(key, serverKeys); near != "" {
				near = fmt.Sprintf("%s: unknown key %q; did you mean %q?", r.where(m.Name.StartOffset), key, near)
			}
		}
	}
	switch {
	case !found && near != "":
		r.errs = append(r.errs, errors.New(near))
	case !found:
		r.fail(root.StartOffset, "", `there is neither "mcpServers" nor "servers"`)
	}
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// list reads the servers under one key.
func (r *configReader) list(m hujson.ObjectMember) {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		r.fail(m.Value.StartOffset, nameOf(m), "want an object with a member per server")
		return
	}
	seen := map[string]bool{}
	for _, s := range object.Members {
		name := nameOf(s)
		if seen[name] {
			r.fail(s.Name.StartOffset, name, "the server is there twice")
			continue
		}
		seen[name] = true
		r.server(name, s)
	}
}

// entry is one server as it is written.
type entry struct {
	reader *configReader
	name   string
	offset int // of its name
	errs   int // how many mistakes there were before it

	kind, command, cwd, url, builtin string

	args        []string
	env         map[string]string
	headers     map[string]string
	disabled    bool
	timeout     time.Duration
	concurrency int
	readOnly    []string
	allow, deny []string

	set     map[string]int             // the members that are set, and where
	options map[string]json.RawMessage // members that are a builtin's
	unknown []hujson.ObjectMember
}

// server reads one server.
func (r *configReader) server(name string, m hujson.ObjectMember) {
	e := &entry{
		reader: r, name: name, offset: m.Name.StartOffset, errs: len(r.errs),
		set: map[string]int{}, options: map[string]json.RawMessage{},
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
	if s, ok := e.server(); ok && len(r.errs) == e.errs {
		r.servers = append(r.servers, s)
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
	f, ok := entryFields[key]
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
		if e.builtin != "" {
			e.options[key] = e.expand(m.Value, key)
			continue
		}
		if near := nearest.Name(key, entryKeys()); near != "" {
			e.fail(m.Name.StartOffset, "", "unknown key %q; did you mean %q?", key, near)
		} else {
			e.fail(m.Name.StartOffset, "", "unknown key %q; there are %s", key, strings.Join(entryKeys(), ", "))
		}
	}
}

// server makes a server of what was read.
func (e *entry) server() (Server, bool) {
	s := Server{
		Name: e.name, Timeout: e.timeout, Concurrency: e.concurrency,
		ReadOnly: e.readOnly, Allow: e.allow, Deny: e.deny,
	}
	where := e.reader.where(e.offset)
	config := e.reader.config
	switch ways := e.ways(); {
	case strings.TrimSpace(e.name) == "":
		e.fail(e.offset, "", "a server needs a name")
	case len(ways) == 0:
		e.fail(e.offset, "", "say how to reach it: command, url or builtin")
	case len(ways) > 1:
		e.fail(e.offset, "", "has %s; want one of them", strings.Join(ways, " and "))
	case e.conflicts(ways[0]):
	case e.builtin != "":
		dial, err := e.dialBuiltin()
		if err != nil {
			e.fail(e.set["builtin"], "builtin", "%v", err)
		}
		s.Dial = dial
	case e.command != "":
		s.Dial = Stdio(Command{
			Name: e.command, Args: e.args, Dir: e.cwd, Env: e.env, Lookup: config.Lookup,
			MaxMessage: config.MaxMessage, Where: where,
		})
	default:
		headers := http.Header{}
		for name, value := range e.headers {
			headers.Set(name, value)
		}
		s.Dial = HTTP(Endpoint{
			URL: e.url, Headers: headers, Proxy: config.Proxy, LegacySSE: e.kind == "sse",
			MaxMessage: config.MaxMessage, Where: where,
		})
	}
	return s, s.Dial != nil
}

// ways lists how the entry says that the server is reached.
func (e *entry) ways() []string {
	var ways []string
	for _, w := range []struct{ name, value string }{{"command", e.command}, {"url", e.url}, {"builtin", e.builtin}} {
		if w.value != "" {
			ways = append(ways, w.name)
		}
	}
	return ways
}

// conflicts reports members that do not fit the way the server is reached.
func (e *entry) conflicts(way string) bool {
	errs := len(e.reader.errs)
	for key, offset := range e.set {
		if f := entryFields[key]; f.way != "" && f.way != way {
			e.fail(offset, key, "belongs to a server with %s, and this one has %s", f.way, way)
		}
	}
	if want := kinds[e.kind]; e.kind != "" && want != way {
		e.fail(e.set["type"], "type", "%q belongs to a server with %s, and this one has %s", e.kind, want, way)
	}
	return len(e.reader.errs) > errs
}

func (e *entry) dialBuiltin() (func(context.Context) (mcp.Transport, error), error) {
	table := e.reader.config.Builtins
	make, ok := table[e.builtin]
	if !ok {
		names := sortedKeys(table)
		if near := nearest.Name(e.builtin, names); near != "" {
			return nil, fmt.Errorf("there is no builtin server %q; did you mean %q?", e.builtin, near)
		}
		return nil, fmt.Errorf("there is no builtin server %q; there are: %s", e.builtin, strings.Join(names, ", "))
	}
	options, err := json.Marshal(e.options)
	if err != nil {
		return nil, fmt.Errorf("reading its options: %w", err)
	}
	return make(options)
}
