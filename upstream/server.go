package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/inprocess"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/stdio"
	"github.com/mcsh-dev/mcsh/upstream/toollist"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Server is one MCP server: how to reach it and what the operator allows it.
type Server struct {
	// Name is how pipelines call the server. It is not empty, and unique in a [Pool].
	Name string

	// Dial makes a transport to the server, for one session: one of [Stdio], [HTTP] or [InProcess]. Those of the go-sdk
	// are refused: they neither bound nor count the memory of messages. It is called again for every new session, never
	// twice at the same time, and must not wait for the server: Connect does that. ctx ends before the session does.
	Dial func(ctx context.Context) (mcp.Transport, error) `json:"-"`

	// Endpoint is what Dial reaches, where that is an address; nil: another kind of server. [remote.Endpoint.SignInServer] needs it.
	Endpoint *Endpoint

	// Identity distinguishes servers of one name on disk, for example by a hash of the URL. It stays the same over
	// restarts; empty: the name is enough.
	Identity string

	// InProcess marks a server of this process. Asking it costs nothing, so its tool list is not saved.
	InProcess bool

	// Probe makes the pool call each tool once that only reads and needs no argument, as soon as it knows the tools, so
	// that the shapes of their results are known early.
	Probe bool

	Timeout      time.Duration // one tool call; 0: the pool's
	StartTimeout time.Duration // a start; 0: the pool's
	Concurrency  int           // calls in flight; 0: the pool's
	Rate         pace.Rate     // of calls and of requests for resources and prompts, of all callers together

	Protocol Protocol

	// Sticky says that calls of one run belong to one process of ours: the server keeps something between them, or is about this
	// machine. Then no worker elsewhere makes some of them.
	Sticky bool

	Asks  Asking   // whether it asks its callers something
	Roots []string // URIs of the directories that it may use: the answer when it asks for them; empty: it may not ask

	ReadOnly []string // globs of tools that the operator declares read-only, against the server too
	Allow    []string // globs of tools that may be called; empty: all
	Deny     []string // globs of tools that may not be called, also where Allow has them

	Resources, Prompts Filter // what of its resources and prompts is offered and read

	// Expose are globs of tools that clients of a gateway call by names of their own. Overrides are what the operator says about
	// tools, by the names that the server has for them. So are the names that the globs here match.
	Expose    []string
	Overrides map[string]toollist.Override

	// With are arguments that every call gets, by name. Agents neither see nor give them.
	With map[string]json.RawMessage

	Where   string   // where it is configured, such as "mcp.json:7", for messages; may be empty
	Secrets []string // words that no message about the server may show, such as the values of its headers

	// Found marks a server that nobody has configured. A configured one of the same name replaces it.
	Found bool

	// answer answers calls of tools in place of the server; nil: the server does.
	answer func(context.Context, stages.Call) (stages.Result, error)

	// Version changes when anything of the server changes. A [Pool] that reads a source again keeps servers with the
	// same version; an empty version always counts as changed.
	Version string
}

// A Filter says what may be used, by globs: of the URIs of resources and templates, or of the names of prompts. Where
// [Server.Allow] names tools, an empty Allow means nothing: what an operator has not named stays closed. The same holds for
// prompts where [Server.With] has arguments, which prompts do not get.
type Filter struct{ Allow, Deny []string }

// A Protocol says which era of MCP is tried with a server.
type Protocol int

const (
	AnyProtocol Protocol = iota // the newer era, then the older one if there is no answer soon
	OlderFirst                  // the older era, then the newer one if the server refuses
	OnlyOlder                   // the older era, with initialize and sessions: up to 2025-11-25
	NewerFirst                  // the newer era, from 2026-07-28 on, then the older one if the server refuses
)

// A Source lists servers.
type Source interface {
	// Servers returns the servers. It is called once, and for a [Watcher] again after each change and when a user asks for
	// it; never twice at the same time, but later calls may run beside Watch. The error says what to fix.
	Servers(ctx context.Context) ([]Server, error)
}

// A Watcher is a [Source] that reports when its servers may have changed.
type Watcher interface {
	Source

	// Watch calls changed when the result of Servers may have changed, and returns when ctx is done. It is called after the
	// first call of Servers. An error says why changes cannot be seen.
	Watch(ctx context.Context, changed func()) error
}

// Static is a [Source] with a fixed list of servers.
type Static []Server

// Servers returns the list itself.
func (s Static) Servers(context.Context) ([]Server, error) { return s, nil }

// check refuses a server without a name or Dial.
func (s *Server) check() error {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return fmt.Errorf("a server has no name")
	case IsReserved(s.Name):
		where := ""
		if s.Where != "" {
			where = " at " + s.Where
		}
		return fmt.Errorf("the server %q%s has a reserved name: rename it, for example to %q", s.Name, where, s.Name+"-server")
	case s.Dial == nil:
		return fmt.Errorf("server %q has no way to reach it", s.Name)
	}
	return nil
}

// The two ways to reach servers outside this process.
type (
	// A Command is a local program that speaks MCP on its standard streams.
	Command = stdio.Command

	// An Endpoint is an MCP server that is reached over HTTP.
	Endpoint = remote.Endpoint

	// TLS says whom an endpoint's connections trust and as whom they appear.
	TLS = remote.TLS

	// OAuth signs in to an endpoint as a program.
	OAuth = remote.OAuth

	// SignIn is how people sign in to an endpoint.
	SignIn = remote.SignIn

	// Logins keeps the logins of people.
	Logins = remote.Logins
)

// The tools of a server, and what the operator says of one.
type (
	// A CatalogTool is one tool of a server as the server describes it.
	CatalogTool = toollist.CatalogTool

	// An Override is what the operator says about a tool in place of its server.
	Override = toollist.Override
)

// Stdio reaches a program: see [stdio.Dial].
func Stdio(c Command) func(context.Context) (mcp.Transport, error) { return stdio.Dial(c) }

// InProcess reaches a server in this process: see [inprocess.Dial].
func InProcess(s *mcp.Server, handlers map[string]mcp.ToolHandler, begin func() (end func() error)) func(context.Context) (mcp.Transport, error) {
	return inprocess.Dial(s, handlers, begin)
}

// HTTP reaches a server over HTTP: see [remote.Dial].
func HTTP(e Endpoint) func(context.Context) (mcp.Transport, error) { return remote.Dial(e) }
