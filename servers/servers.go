package servers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

// A Builtin is a server inside of the binary.
type Builtin struct {
	Name    string
	Summary string // one line for people

	// Open makes a server of its own for options, a JSON object; empty options are the defaults. An unknown option
	// is an error that names it and the nearest known one.
	Open func(options json.RawMessage) (*mcp.Server, error)

	Options []strictjson.Field // what Open knows
}

// Builtins returns the servers, by name.
func Builtins() []Builtin {
	return []Builtin{
		builtin("demo", "a made-up shop to try things with: orders, customers, pages, slow and failing tools", demo.New),
		builtin("fetch", "HTTP requests: pages as Markdown, JSON as it is; public addresses only, unless allowed", fetch.New),
		builtin("filesystem", "the text files and directories below one root", filesystem.New),
	}
}

// Find returns the server called name. The error names the nearest one.
func Find(name string) (Builtin, error) {
	var names []string
	for _, b := range Builtins() {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	hint := ""
	if near := nearest.Name(name, names); near != "" {
		hint = fmt.Sprintf(", did you mean %q", near)
	}
	return Builtin{}, fmt.Errorf("unknown built-in server %.60q%s; known: %s", name, hint, strings.Join(names, ", "))
}

// builtin makes a row of the table from the constructor of a server.
func builtin[O any](name, summary string, create func(O) (*mcp.Server, error)) Builtin {
	open := func(options json.RawMessage) (*mcp.Server, error) {
		var o O
		if err := strictjson.Decode("option", options, &o); err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		server, err := create(o)
		if err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", name, err)
		}
		return server, nil
	}
	return Builtin{name, summary, open, strictjson.Fields(new(O))}
}
