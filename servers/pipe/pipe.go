// Package pipe is an MCP server that runs shell pipelines over the files of a workspace, without a shell: it parses a line,
// accepts one pipeline of simple commands with literal words, and gives it to an engine of its host. tee is the one command
// that writes. The package knows the form of lines and sessions; it knows nothing of sandboxes and of the options of
// programs.
package pipe

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

// Options are the settings of the server. The zero value serves the current directory.
type Options struct {
	Root   string `json:"root" usage:"the directory (default: the current one)"`
	Backup bool   `json:"backup" usage:"keep every version of every saved file, for undo_file and redo_file of the filesystem server"`

	Start   Start `json:"-"` // nil: no command runs, and nothing is saved
	Alone   bool  `json:"-"` // the process serves one client: it is the session
	Results int64 `json:"-"` // bytes that a result may have; 0: [defaultStdout] of standard output

	Added []string `json:"-"` // commands of the operator, which run like the others
}

const instructions = `Shell pipelines over the files of one directory, without a shell: ` +
	`tail -n 100 app.log | rg ERROR | awk '{print $3}' | sort -u. ` +
	`tee is the one command that writes; cd alone changes the directory.`

// New makes the server. The directory stays open as long as the server is in use.
func New(o Options) (*tool.Opened, error) {
	dir, err := workspace.Open(o.Root)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, sessions: sessions{alone: o.Alone}, results: o.Results, programs: slices.Concat(programs, o.Added)}
	if o.Start != nil {
		s.engine = o.Start(dir, o.Backup)
	}
	srv, err := tool.Open(tool.Server{
		Name: "pipe", Title: "Pipelines over a directory", Instructions: instructions, Tools: []tool.Tool{s.pipe(), s.write()},
		Aliases: map[string]string{"shelpa_pipe": "pipe", "shelpa_write": "write"},
	})
	if err != nil {
		dir.Close()
		return nil, err
	}
	if s.engine != nil {
		srv.Begin = s.engine.Begin
	}
	return srv, nil
}

// server serves one root.
type server struct {
	dir      *workspace.Dir
	engine   Engine // nil: there is none
	sessions sessions
	results  int64
	programs []string // the commands that run in the sandbox

	parsing sync.Mutex // one line at a time: the parser may take 64 MiB of stack for one
}

// failed is the result of a failure.
func failed(err error) (*mcp.CallToolResult, error) {
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		return nil, err
	}
	res, err := tool.JSON(map[string]*Failure{"error": f})
	if err == nil {
		res.IsError = true
	}
	return res, err
}

// noEngine is the failure where no engine is.
var noEngine = &Failure{
	Code: Unavailable, Detail: "no command can run here, and nothing can be saved: the server was started without a sandbox.",
	Use: "Start it with mcsh server pipe, or through a gateway.",
}

// directory returns the directory of a call: the argument, or that of the session.
func (s *server) directory(session *mcp.ServerSession, argument string) (string, *Failure) {
	rel, err := s.dir.Directory(cmp.Or(argument, s.sessions.get(session)))
	if err == nil {
		return rel, nil
	}
	f := placed(err)
	if argument == "" {
		f.Use = `The directory of the session is gone: call cd with "cwd": ".".`
	}
	return "", f
}
