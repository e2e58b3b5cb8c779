package servers

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/shell"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

// A Builtin is a server in the binary.
type Builtin struct {
	Name    string
	Summary string // one line for people

	// Open makes a new server with options, a JSON object; empty options are the defaults. The error for an unknown
	// option names the nearest known one.
	Open func(options json.RawMessage, host Host) (*mcp.Server, error)

	Options []strictjson.Field // that Open accepts

	Help string // more for people; empty: the summary says all
}

// A Host provides functions of the process to servers. The zero value works.
type Host struct {
	Markdown fetch.Markdown // see [fetch.Options]
	Remote   bool           // callers come over HTTP, and nobody asks who they are

	Environ map[string]string                      // the variables of the process, see [shell.Options]
	Log     io.Writer                              // standard error; nil: nowhere
	Contain func(dir string) (shell.Runner, error) // runs programs in containers that see dir; nil: not here
}

// Builtins returns the servers, by name.
func Builtins() []Builtin {
	return []Builtin{
		builtin("demo", "a made-up shop to try things with: orders, customers, pages, slow and failing tools", func(o demo.Options, _ Host) (*mcp.Server, error) { return demo.New(o) }),
		builtin("fetch", "HTTP requests: pages as Markdown, JSON as it is; public addresses only, unless allowed", fetching),
		builtin("filesystem", "the files below one root, or many: read, list, edit, move, delete and restore", files),
		explained(shell.Help, builtin("shell", "a shell that runs command lines, within patterns or in a container if you want", shells)),
	}
}

// builtin makes a row of the table from the constructor of a server.
func builtin[O any](name, summary string, create func(O, Host) (*mcp.Server, error)) Builtin {
	open := func(options json.RawMessage, host Host) (*mcp.Server, error) {
		var o O
		if err := strictjson.Decode("option", options, &o); err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		server, err := create(o, host)
		if err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		return server, nil
	}
	return Builtin{Name: name, Summary: summary, Open: open, Options: strictjson.Fields[O]()}
}

func explained(help string, b Builtin) Builtin {
	b.Help = help
	return b
}

func files(o filesystem.Options, host Host) (*mcp.Server, error) {
	o.Remote = host.Remote
	return filesystem.New(o)
}

func fetching(o fetch.Options, host Host) (*mcp.Server, error) {
	o.Markdown = host.Markdown
	return fetch.New(o)
}

func shells(o shell.Options, host Host) (*mcp.Server, error) {
	o.Remote, o.Environ, o.Log, o.Contain = host.Remote, host.Environ, host.Log, host.Contain
	return shell.New(o)
}
