//go:build linux

package e2e

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// versions are the newest versions of the protocol with a handshake and without.
var versions = []string{"2025-11-25", "2026-07-28"}

// A gateway is an mcsh serve with a client.
type gateway struct {
	*process
	*mcp.ClientSession
	input io.Closer
}

// serveStdio starts mcsh serve on standard input and output. The test's end closes it and checks that nothing is left.
func serveStdio(t *testing.T, servers object, version string, o *mcp.ClientOptions, args ...string) *gateway {
	t.Helper()
	p := mcsh(t, servers, append([]string{"serve"}, args...)...)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	g := &gateway{process: p, input: in}
	t.Cleanup(func() {
		if g.ClientSession != nil {
			g.look(t)
			_ = g.Close() // that of a server that was killed fails
		}
		_ = in.Close()
		if p.ProcessState == nil {
			p.ends(t, patience)
		}
		p.leftNothing(t)
	})
	g.ClientSession = connect(t, &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, version, o)
	return g
}

// serveHTTP starts mcsh serve on a free port and returns it with its address. The test's end terminates it.
func serveHTTP(t *testing.T, servers object, args ...string) (*process, string) {
	t.Helper()
	p := mcsh(t, servers, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.listening(t)
}

// listening starts a server over HTTP and returns its address. The test's end terminates it.
func (p *process) listening(t *testing.T) string {
	t.Helper()
	url := p.greeted(t)
	t.Cleanup(func() {
		p.look(t)
		if p.ProcessState == nil {
			_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
		}
		status := p.ends(t, patience)
		p.leftNothing(t)
		until(t, "nobody holds its standard error", p.silent)
		if status != 0 {
			t.Errorf("mcsh ended with status %d: %s", status, p.stderr.String())
		}
	})
	return url
}

func connect(t *testing.T, transport mcp.Transport, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, o)
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return session
}

func connectHTTP(t *testing.T, url, version string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}}, version, o)
	t.Cleanup(func() { session.Close() })
	return session
}

// pipelineCall is a call of execute_pipeline.
func pipelineCall(pipeline any) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "execute_pipeline", Arguments: object{"pipeline": pipeline}}
}

// called runs a pipeline and returns the reply.
func called(t *testing.T, session *mcp.ClientSession, pipeline ...object) *mcp.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := session.CallTool(ctx, pipelineCall(pipeline))
	if err != nil {
		t.Fatalf("calling execute_pipeline: %v", err)
	}
	return res
}

// execute runs a pipeline and returns the text of the reply, and whether it is an error.
func execute(t *testing.T, session *mcp.ClientSession, pipeline ...object) (string, bool) {
	t.Helper()
	res := called(t, session, pipeline...)
	return textOf(res), res.IsError
}

// runNote is a note that says no more than the names of the run and which tools were called.
var runNote = regexp.MustCompile(`^([^\n;]*: \d+ calls?, ok; )*run r_[a-z2-7]{26} \(q_[a-z2-7]{12} in logs\)\n`)

// textOf is the text of a reply, without a note that says no more than the usual.
func textOf(res *mcp.CallToolResult) string {
	var text strings.Builder
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	return runNote.ReplaceAllString(text.String(), "")
}

// mustExecute is the text of a pipeline that succeeds.
func mustExecute(t *testing.T, session *mcp.ClientSession, pipeline ...object) string {
	t.Helper()
	text, failed := execute(t, session, pipeline...)
	if failed {
		t.Fatalf("the pipeline failed: %s", text)
	}
	return text
}
