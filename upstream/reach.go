package upstream

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/stdio"
)

// The two ways to reach servers outside of this process, by the names of this package.
type (
	// A Command is a local program that speaks MCP on its standard streams.
	Command = stdio.Command

	// An Endpoint is an MCP server that is reached over HTTP.
	Endpoint = remote.Endpoint

	// TLS says whom an endpoint's connections trust and as whom they appear.
	TLS = remote.TLS

	// OAuth signs in to an endpoint as a program.
	OAuth = remote.OAuth
)

// Stdio reaches a program: see [stdio.Dial].
func Stdio(c Command) func(context.Context) (mcp.Transport, error) { return stdio.Dial(c) }

// HTTP reaches a server over HTTP: see [remote.Dial].
func HTTP(e Endpoint) func(context.Context) (mcp.Transport, error) { return remote.Dial(e) }

// shorten cuts text to n bytes, at a character.
func shorten(s string, n int) string { return rpc.Shorten(s, n) }
