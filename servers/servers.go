package servers

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/pipe"
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

	Commands bool // its tools run commands, by [Host.Pipes]
}

// A Host provides functions of the process to servers. The zero value works.
type Host struct {
	Markdown fetch.Markdown // see [fetch.Options]
	Pipes    pipe.Start     // see [pipe.Options]
	Results  int64          // bytes that the result of a call may have; 0: a server has a bound of its own
	Remote   bool           // callers come over HTTP, and nobody asks who they are
	Alone    bool           // the process serves one client
}

// Builtins returns the servers, by name.
func Builtins() []Builtin {
	return []Builtin{
		builtin("demo", "a made-up shop to try things with: orders, customers, pages, slow and failing tools", func(o demo.Options, _ Host) (*mcp.Server, error) { return demo.New(o) }),
		builtin("fetch", "HTTP requests: pages as Markdown, JSON as it is; public addresses only, unless allowed", fetching),
		builtin("filesystem", "the files below one root, or many: read, list, edit, move, delete and restore", files),
		commands(builtin("pipe", "shell pipelines over the files below one root, without a shell; tee saves", pipes)),
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

// commands marks a server whose tools run commands.
func commands(b Builtin) Builtin {
	b.Commands = true
	return b
}

func pipes(o pipe.Options, host Host) (*mcp.Server, error) {
	o.Start, o.Remote, o.Alone, o.Results = host.Pipes, host.Remote, host.Alone, host.Results
	return pipe.New(o)
}

func files(o filesystem.Options, host Host) (*mcp.Server, error) {
	o.Remote = host.Remote
	return filesystem.New(o)
}

func fetching(o fetch.Options, host Host) (*mcp.Server, error) {
	o.Markdown = host.Markdown
	return fetch.New(o)
}
