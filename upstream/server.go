package upstream

import (
	"context"
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

	Timeout     time.Duration // one tool call; 0: the pool's
	Concurrency int           // calls in flight; 0: the pool's

	ReadOnly []string // globs of tools that the operator declares read-only, whatever the server says
	Allow    []string // globs of tools that may be called; empty: all
	Deny     []string // globs of tools that may not be called, also where Allow has them
}

// A Source tells which servers there are.
type Source interface {
	// Servers returns the servers. It is called once; the error tells a person what to mend.
	Servers(ctx context.Context) ([]Server, error)
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
}

func newPolicy(s Server, onlyReading bool) policy {
	return policy{compileGlobs(s.ReadOnly), compileGlobs(s.Allow), compileGlobs(s.Deny), onlyReading}
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
