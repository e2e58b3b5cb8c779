package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Server is one MCP server: how to reach it and what the operator allows it.
type Server struct {
	// Name is how pipelines call the server. It is not empty, and unique in a [Pool].
	Name string

	// Dial makes a transport to the server, for one session. It is called again for every new session, never twice at
	// the same time, and must not wait for the server to be ready: that is Connect's part. See [Stdio], [HTTP] and
	// [InProcess]; any other transport of the go-sdk works too.
	Dial func(ctx context.Context) (mcp.Transport, error)

	// Identity tells servers of one name apart in what is kept on disk, such as by a hash of the URL. It is the same
	// over restarts; empty: the name says enough.
	Identity string

	// Probe lets the pool call each tool once that only reads and needs no argument, as soon as it knows the tools, so
	// that the shapes of their results are known before the first agent asks.
	Probe bool

	Timeout     time.Duration // one tool call; 0: the pool's
	Concurrency int           // calls in flight; 0: the pool's

	ReadOnly []string // globs of tools that the operator declares read-only, whatever the server says
	Allow    []string // globs of tools that may be called; empty: all
	Deny     []string // globs of tools that may not be called, also where Allow has them

	// With are arguments that every call gets, by name. Agents neither see nor give them.
	With map[string]json.RawMessage

	Where   string   // where it is configured, such as "mcp.json:7", for messages; may be empty
	Secrets []string // words that no message about the server may show, such as the values of its headers

	// Found marks a server that nobody has configured. It gives way to one of the same name that is configured.
	Found bool

	// Version differs when anything of the server differs. A [Pool] that reads a source again leaves servers alone
	// whose version is what it was; an empty one never is.
	Version string
}

// A Source tells which servers there are.
type Source interface {
	// Servers returns the servers. It is called once, and by a pool that follows its sources again whenever they
	// have changed; never twice at the same time. The error tells a person what to mend.
	Servers(ctx context.Context) ([]Server, error)
}

// A Watcher is a [Source] that knows when its servers may have changed.
type Watcher interface {
	Source

	// Watch calls changed when the servers may not be those that Servers has returned last, and returns when ctx is
	// done. An error says why nothing can be watched.
	Watch(ctx context.Context, changed func()) error
}

// Static is a [Source] of servers that are known beforehand.
type Static []Server

// Servers returns the list itself.
func (s Static) Servers(context.Context) ([]Server, error) { return s, nil }

// check refuses a server that cannot work.
func (s *Server) check() error {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return fmt.Errorf("a server has no name")
	case s.Dial == nil:
		return fmt.Errorf("server %q has no way to reach it", s.Name)
	}
	return nil
}

// globs matches tool names. A star stands for any run of characters and a question mark for one; a name is opaque, so
// no character in it is a separator.
type globs []*regexp.Regexp

func compileGlobs(patterns []string) globs {
	var g globs
	for _, p := range patterns {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
		g = append(g, regexp.MustCompile(`(?s)^(?:`+quoted+`)$`)) // quoted: it always compiles
	}
	return g
}

func (g globs) match(name string) bool {
	return slices.ContainsFunc(g, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// policy is what the operator allows of one server.
type policy struct {
	readOnly, allow, deny globs
	onlyReading           bool // refuse every tool that may change something
	fixed                 fixed
}

func newPolicy(s Server, onlyReading bool) policy {
	return policy{compileGlobs(s.ReadOnly), compileGlobs(s.Allow), compileGlobs(s.Deny), onlyReading, s.With}
}

// refusal says why a tool may not be called, or nothing.
func (p policy) refusal(name string, readOnly bool) string {
	switch {
	case p.deny.match(name):
		return "the operator denies it"
	case len(p.allow) > 0 && !p.allow.match(name):
		return "it is not among the tools that the operator allows"
	case p.onlyReading && !readOnly:
		return "only tools that read are allowed, and this one is not annotated read-only"
	}
	return ""
}
