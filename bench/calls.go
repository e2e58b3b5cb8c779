package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream/outward"
)

// The eras of the protocol, by their versions. An empty version is the newest.
const (
	sessionEra   = "2025-11-25"
	statelessEra = "2026-07-28"
)

// connect makes a session of a plain client. It is ended with the stack.
func connect(ctx context.Context, s *stack, t mcp.Transport, version string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	s.push(session.Close)
	return session, nil
}

// inMemory connects a plain client to a server in this process.
func inMemory(ctx context.Context, s *stack, server *mcp.Server) (*mcp.ClientSession, error) {
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, far, nil); err != nil {
		return nil, err
	}
	return connect(ctx, s, near, sessionEra)
}

// caller calls a tool and checks that the answer is the one wanted, or, if that is empty, that there is one.
func caller(session *mcp.ClientSession, want string, params *mcp.CallToolParams) func(context.Context) error {
	return func(ctx context.Context) error {
		result, err := session.CallTool(ctx, params)
		if err != nil {
			return err
		}
		var got string
		if n := len(result.Content); n > 0 { // the output is behind the note
			if text, ok := result.Content[n-1].(*mcp.TextContent); ok {
				got = text.Text
			}
		}
		got = strings.TrimSpace(got)
		if result.IsError || got == "" || want != "" && got != want {
			return fmt.Errorf("%s answered %.400q, want %.200q", params.Name, got, want)
		}
		return nil
	}
}

// tool is a direct call.
func tool(name string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}
}

// piped is the same call through execute_pipeline, with commands behind it.
func piped(name string, commands ...step) *mcp.CallToolParams {
	list := append([]step{{"type": "tool", "server": serverName, "name": name}}, commands...)
	return &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": list}}
}

// oneCall compares a small call.
func (b *bench) oneCall(s *stack, through, server *mcp.ClientSession) pair {
	return pair{
		ours:  repeated(b.sizes.calls, caller(through, hello, piped("hello"))),
		base:  repeated(b.sizes.calls, caller(server, hello, tool("hello"))),
		close: s.close,
	}
}

// readOver compares the reading of a small resource over a way to reach a gateway and a server.
func readOver(w way) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		return pair{
			ours:  repeated(b.sizes.calls, reader(e.through, outward.URI(serverName, helloURI))),
			base:  repeated(b.sizes.calls, reader(e.server, helloURI)),
			close: s.close,
		}, nil
	}
}

// exposedOver compares a small call of a tool by a name of its own.
func exposedOver(w way) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		return pair{
			ours:  repeated(b.sizes.calls, caller(e.through, hello, tool(serverName+"__hello"))),
			base:  repeated(b.sizes.calls, caller(e.server, hello, tool("hello"))),
			close: s.close,
		}, nil
	}
}

// reader reads a resource and checks it.
func reader(session *mcp.ClientSession, uri string) func(context.Context) error {
	return func(ctx context.Context) error {
		result, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return err
		}
		if len(result.Contents) != 1 || result.Contents[0].Text != hello {
			return fmt.Errorf("%s has %d contents", uri, len(result.Contents))
		}
		return nil
	}
}

// callInMemory has everything in this process.
func callInMemory(ctx context.Context, b *bench) (pair, error) {
	s := new(stack)
	u := newUpstream(0)
	pool := newPool(u)
	s.push(pool.Close)
	g := gateway.New(gateway.Options{Upstream: pool})
	s.push(func() error { return g.Close(ctx) })
	through, err := inMemory(ctx, s, g.Server())
	if err != nil {
		return pair{}, errors.Join(err, s.close())
	}
	server, err := inMemory(ctx, s, u.MCP())
	if err != nil {
		return pair{}, errors.Join(err, s.close())
	}
	return b.oneCall(s, through, server), nil
}

// writeConfig writes the configuration of the gateway with one server, given as JSON.
func (b *bench) writeConfig(format string, args ...any) (string, error) {
	f, err := os.CreateTemp(b.dir, "config-*.json")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `{"mcpServers": {%q: %s}}`, serverName, fmt.Sprintf(format, args...))
	return f.Name(), errors.Join(err, f.Close())
}

// callOver compares a small call over a way to reach a gateway and a server.
func callOver(w way) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := w(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		return b.oneCall(s, e.through, e.server), nil
	}
}

// Ends are plain clients: of a gateway with a server behind it, and of such a server alone.
type ends struct {
	through, server *mcp.ClientSession
	gateway         int // the process, over HTTP

	again func(ctx context.Context, s *stack) (*mcp.ClientSession, error) // connects to the server once more
}

// A way is how gateway and server are reached.
type way func(ctx context.Context, b *bench, s *stack) (ends, error)

// join connects both clients.
func join(ctx context.Context, s *stack, gateway mcp.Transport, e ends, version string) (ends, error) {
	var err error
	if e.through, err = connect(ctx, s, gateway, version); err == nil {
		e.server, err = e.again(ctx, s)
	}
	return e, err
}

// overStdio has the gateway and the server as processes: the client speaks stdio with the gateway, and the gateway
// with a server of its own.
func overStdio(ctx context.Context, b *bench, s *stack) (ends, error) {
	config, err := b.writeConfig(`{"command": %q, "args": [%q], "expose": ["hello"]}`, b.self, upstreamArg)
	if err != nil {
		return ends{}, err
	}
	again := func(ctx context.Context, s *stack) (*mcp.ClientSession, error) {
		t, err := program(s, exec.CommandContext(ctx, b.self, upstreamArg))
		if err != nil {
			return nil, err
		}
		return connect(ctx, s, t, "")
	}
	gateway, err := program(s, exec.CommandContext(ctx, b.mcsh, "serve", "--config", config, "--state", "off", "--sandbox", "local", "--limit", fmt.Sprint("caller-runs=", mostCallers)))
	if err != nil {
		return ends{}, err
	}
	return join(ctx, s, gateway, ends{again: again}, "")
}

// program starts a server on standard input and output, whose messages may be of any length. It ends with its input.
func program(s *stack, cmd *exec.Cmd) (mcp.Transport, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.push(func() error {
		_ = in.Close() // the session has closed it, if there was one
		return cmd.Wait()
	})
	return &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, nil
}

// overHTTP has the gateway as a process; client and server are here. All speak the protocol of one era.
func overHTTP(era string) way {
	return func(ctx context.Context, b *bench, s *stack) (ends, error) {
		url, err := b.listenUpstream(s, era)
		if err != nil {
			return ends{}, err
		}
		config, err := b.writeConfig(`{"url": %q, "expose": ["hello"]}`, url)
		if err != nil {
			return ends{}, err
		}
		gatewayURL, pid, err := b.listenGateway(ctx, s, config)
		if err != nil {
			return ends{}, err
		}
		return join(ctx, s, streamable(gatewayURL), ends{gateway: pid, again: func(ctx context.Context, s *stack) (*mcp.ClientSession, error) {
			return connect(ctx, s, streamable(url), era)
		}}, era)
	}
}

// streamable is a transport as the gateway uses it towards its servers.
func streamable(url string) mcp.Transport {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client, DisableStandaloneSSE: true}
}

// listenUpstream serves the upstream server over HTTP.
func (b *bench) listenUpstream(s *stack, era string) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	u := newUpstream(b.sizes.latency)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.MCP() },
		&mcp.StreamableHTTPOptions{Stateless: era == statelessEra})
	web := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() { defer close(served); _ = web.Serve(l) }() // it ends with Close
	s.push(func() error { err := web.Close(); <-served; return err })
	return "http://" + l.Addr().String(), nil
}

// callChain compares a call, a jq program that the gateway has not seen before, and commands behind it, with the call
// alone.
func callChain(era string, commands ...step) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		s := new(stack)
		e, err := overHTTP(era)(ctx, b, s)
		if err != nil {
			return pair{}, errors.Join(err, s.close())
		}
		calls := 0
		ours := func(ctx context.Context) error {
			calls++
			jq := command("jq", "-r", fmt.Sprintf(".[] | select(.id < %d) | .name", rowsCount+calls))
			return caller(e.through, "", piped("rows", slices.Concat([]step{jq}, commands)...))(ctx)
		}
		return pair{
			ours:  repeated(b.sizes.chains, ours),
			base:  repeated(b.sizes.calls, caller(e.server, "", tool("rows"))),
			close: s.close,
		}, nil
	}
}
