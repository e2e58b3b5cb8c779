package servers

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

// A Builtin is a server in the binary.
type Builtin struct {
	Name    string
	Summary string // one line for people

	// Open makes a new server with options, a JSON object; empty options are the defaults. The error for an unknown
	// option names the nearest known one.
	Open func(options json.RawMessage, host Host) (*mcp.Server, error)

	// Writes reports whether the server with these options, which Open accepts, may change this machine: its files, or what
	// its programs reach. It is not served over HTTP to callers who do not authenticate.
	Writes func(options json.RawMessage) bool

	Options []strictjson.Field // that Open accepts
}

// A Host provides functions of the process to servers. The zero value works.
type Host struct {
	Markdown fetch.Markdown // see [fetch.Options]
	Remote   bool           // callers come over HTTP
}

// Builtins returns the servers, by name.
func Builtins() []Builtin {
	return []Builtin{
		builtin("demo", "a made-up shop to try things with: orders, customers, pages, slow and failing tools", shop, never),
		builtin("fetch", "HTTP requests: pages as Markdown, JSON as it is; public addresses only, unless allowed", fetching, never),
		builtin("filesystem", "the files below one root, or many: read, list, edit, move, delete and restore", files, filesystem.Options.Writes),
	}
}

// builtin makes a row of the table from the constructor of a server, and from whether it writes.
func builtin[O any](name, summary string, create func(O, Host) (*mcp.Server, error), writes func(O) bool) Builtin {
	decode := func(options json.RawMessage) (o O, err error) { return o, strictjson.Decode("option", options, &o) }
	open := func(options json.RawMessage, host Host) (*mcp.Server, error) {
		o, err := decode(options)
		if err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		server, err := create(o, host)
		if err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		return server, nil
	}
	return Builtin{name, summary, open, func(options json.RawMessage) bool {
		o, err := decode(options)
		return err == nil && writes(o)
	}, strictjson.Fields[O]()}
}

func never[O any](O) bool { return false }

func shop(o demo.Options, _ Host) (*mcp.Server, error) { return demo.New(o) }

func files(o filesystem.Options, host Host) (*mcp.Server, error) {
	o.Remote = host.Remote
	return filesystem.New(o)
}

func fetching(o fetch.Options, host Host) (*mcp.Server, error) {
	o.Markdown = host.Markdown
	return fetch.New(o)
}
