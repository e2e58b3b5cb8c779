package servers

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
	"github.com/mcsh-dev/mcsh/servers/pipe"
	"github.com/mcsh-dev/mcsh/servers/shell"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

// A Builtin is a server in the binary.
type Builtin struct {
	Name    string
	Summary string // one line for people

	// Open makes a new server with options, a JSON object; empty options are the defaults. The error for an unknown
	// option names the nearest known one.
	Open func(options json.RawMessage, host Host) (*tool.Opened, error)

	// Writes reports whether the server with these options, which Open accepts, may change this machine: its files, or what
	// its programs reach. It is not served over HTTP to callers who do not authenticate.
	Writes func(options json.RawMessage) bool

	Options []strictjson.Field // that Open accepts

	Commands bool // its tools run commands, by [Host.Pipes]

	Help string // more for people; empty: the summary says all
}

// A Host provides functions of the process to servers. The zero value works.
type Host struct {
	Markdown fetch.Markdown // see [fetch.Options]
	Pipes    pipe.Start     // see [pipe.Options]
	Commands []string       // that the operator has added, see [pipe.Options]
	Results  int64          // bytes that the result of a call may have; 0: a server has a bound of its own
	Remote   bool           // callers come over HTTP
	Alone    bool           // the process serves one client

	Environ map[string]string                      // the variables of the process, see [shell.Options]
	Log     io.Writer                              // standard error; nil: nowhere
	Contain func(dir string) (shell.Runner, error) // runs programs in containers that see dir; nil: not here
}

// Builtins returns the servers, by name.
func Builtins() []Builtin {
	return []Builtin{
		builtin(Builtin{Name: "demo", Summary: "a made-up shop to try things with: orders, customers, pages, slow and failing tools"}, newDemo, never),
		builtin(Builtin{Name: "fetch", Summary: "HTTP requests: pages as Markdown, JSON as it is; public addresses only, unless allowed"}, newFetch, never),
		builtin(Builtin{Name: "filesystem", Summary: "the files below one root, or many: read, list, edit, move, delete and restore"}, newFilesystem, filesystem.Options.Writes),
		builtin(Builtin{Name: "pipe", Summary: "shell pipelines over the files below one root, without a shell; tee saves", Commands: true}, newPipe, always),
		builtin(Builtin{Name: "shell", Summary: "a shell that runs command lines, within patterns or in a container if you want", Help: shell.Help}, newShell, always),
	}
}

// builtin completes a row of the table with the constructor of a server, and with whether it writes.
func builtin[O any](b Builtin, create func(O, Host) (*tool.Opened, error), writes func(O) bool) Builtin {
	b.Options = strictjson.Fields[O]()
	b.Open = func(options json.RawMessage, host Host) (*tool.Opened, error) {
		var o O
		err := strictjson.Decode("option", options, &o)
		var server *tool.Opened
		if err == nil {
			server, err = create(o, host)
		}
		if err != nil {
			return nil, fmt.Errorf("built-in server %q: %w", b.Name, err)
		}
		return server, nil
	}
	b.Writes = func(options json.RawMessage) bool {
		var o O
		return strictjson.Decode("option", options, &o) == nil && writes(o)
	}
	return b
}

func newPipe(o pipe.Options, host Host) (*tool.Opened, error) {
	o.Start, o.Alone, o.Results, o.Added = host.Pipes, host.Alone, host.Results, host.Commands
	return pipe.New(o)
}

func never[O any](O) bool  { return false }
func always[O any](O) bool { return true }

func newDemo(o demo.Options, _ Host) (*tool.Opened, error) { return demo.New(o) }

func newFilesystem(o filesystem.Options, host Host) (*tool.Opened, error) {
	o.Remote = host.Remote
	return filesystem.New(o)
}

func newFetch(o fetch.Options, host Host) (*tool.Opened, error) {
	o.Markdown = host.Markdown
	return fetch.New(o)
}

func newShell(o shell.Options, host Host) (*tool.Opened, error) {
	o.Environ, o.Log, o.Contain = host.Environ, host.Log, host.Contain
	return shell.New(o)
}
