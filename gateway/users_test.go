package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/runs"
)

// guarded is a gateway that asks who its callers are.
type guarded struct {
	*world
	url    string
	path   string
	tokens map[string]string // by names
	log    *observer.ObservedLogs
}

// newGuarded serves a gateway to alice and bob.
func newGuarded(t *testing.T, o gateway.Options) *guarded {
	t.Helper()
	g := &guarded{world: newWorld(t), path: filepath.Join(t.TempDir(), "tokens"), tokens: map[string]string{}}
	var data []byte
	for _, name := range []string{"alice", "bob"} {
		token, entry, err := tokens.New(name, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		data = tokens.Add(data, entry)
		g.tokens[name] = token
	}
	if err := os.WriteFile(g.path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Upstream, o.Sandbox = g.pool, ready{sharedSandbox(t)}
	o.Kept = runs.New(runs.Options{Dir: t.TempDir(), TTL: time.Hour, Head: 1 << 20, Output: 1 << 20, Total: 1 << 24})
	t.Cleanup(func() { o.Kept.Close() })
	core, log := observer.New(zapcore.DebugLevel)
	o.Log, o.NameOf, g.log = zap.New(core), auth.NameOf, log
	g.gateway = gateway.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.gateway.Close(ctx)
	})
	file, err := tokens.Open(g.path, tokens.Options{Ended: g.gateway.EndUser})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() { file.Follow(ctx); close(followed) }()
	t.Cleanup(func() { stop(); <-followed })
	guard := auth.Guard{Verifiers: []auth.Verifier{file}, Open: []string{"/healthz"}}
	server := httptest.NewServer(guard.Protect(g.gateway.Handler()))
	t.Cleanup(server.Close)
	g.url = server.URL + "/mcp"
	return g
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// as connects the SDK's client as a caller.
func (g *guarded) as(t *testing.T, name, version string) *mcp.ClientSession {
	t.Helper()
	session, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: g.url, HTTPClient: &http.Client{Transport: bearer(g.tokens[name])}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// pipe runs a pipeline and returns its text and its run.
func pipe(t *testing.T, agent *mcp.ClientSession, pipeline string) (text, run string) {
	t.Helper()
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(`{"pipeline":` + pipeline + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	report, _ := result.Meta["mcsh/report"].(map[string]any)
	run, _ = report["run"].(string)
	return result.Content[len(result.Content)-1].(*mcp.TextContent).Text, run // behind the note
}

var eras = []string{"2025-11-25", "2026-07-28"}

// TestUsersApart: a run belongs to who made it, in whatever session and era, and to nobody else.
func TestUsersApart(t *testing.T) {
	g := newGuarded(t, gateway.Options{})
	for i, era := range eras {
		other := eras[1-i]
		alice, again, bob := g.as(t, "alice", era), g.as(t, "alice", other), g.as(t, "bob", era)
		text, run := pipe(t, alice, `[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}}]`)
		if run == "" || !strings.Contains(text, "item 1") {
			t.Fatalf("%s: got %q of run %q", era, text, run)
		}
		from := `[{"type":"from","run":"` + run + `"},{"type":"command","command":"jq","args":["-r",".name"]}]`
		if text, _ := pipe(t, again, from); text != "item 1\n" {
			t.Errorf("%s: in another session the same caller has %q", era, text)
		}
		if text, _ := pipe(t, bob, from); !strings.Contains(text, "UNKNOWN_RUN") {
			t.Errorf("%s: another caller has %q", era, text)
		}
		uri := "mcsh://runs/" + run + "/output"
		if page, err := again.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || !strings.Contains(page.Contents[0].Text, "item 1") {
			t.Errorf("%s: the caller reads %+v, %v", era, page, err)
		}
		if page, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: another caller reads %+v", era, page)
		}
	}
	said := ""
	for _, line := range g.log.All() {
		said += fmt.Sprintln(line.Message, line.ContextMap())
	}
	if !strings.Contains(said, "caller:alice") || strings.Contains(said, "mcsh_") {
		t.Errorf("the log says %s", said)
	}
}

// send sends a message in a session.
func (g *guarded) send(t *testing.T, method, name, session, message string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Authorization", "Bearer "+g.tokens[name])
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	if method == http.MethodGet && w.StatusCode == http.StatusOK {
		return w.StatusCode, "a stream"
	}
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(body)
}

// TestSessionOfAnother: a session is there for who has made it alone, whatever is asked of it, on both ways of a message.
func TestSessionOfAnother(t *testing.T) {
	g := newGuarded(t, gateway.Options{})
	session := g.as(t, "alice", eras[0]).ID()
	const direct = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_available_shell_commands","arguments":{}}}`
	const bySDK = `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`
	for _, test := range []struct{ method, message string }{{"POST", direct}, {"POST", bySDK}, {"GET", ""}, {"DELETE", ""}} {
		if status, text := g.send(t, test.method, "bob", session, test.message); status != http.StatusNotFound || strings.TrimSpace(text) != "session not found" {
			t.Errorf("%s %s as another: got %d, %s", test.method, test.message, status, text)
		}
		if status, text := g.send(t, test.method, "nobody", session, test.message); status != http.StatusUnauthorized {
			t.Errorf("%s %s as nobody: got %d, %s", test.method, test.message, status, text)
		}
	}
	for _, message := range []string{direct, bySDK} {
		if status, text := g.send(t, "POST", "alice", session, message); status != http.StatusOK || !strings.Contains(text, `"result"`) {
			t.Errorf("%s as its own: got %d, %s", message, status, text)
		}
	}
}

// stream opens a stream of a session for what the gateway says unasked. It ends after a while.
func (g *guarded) stream(t *testing.T, name, session string) io.Reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*awhile)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	w, err := (&http.Client{Transport: bearer(g.tokens[name])}).Do(r)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("got %+v, %v", w, err)
	}
	t.Cleanup(func() { w.Body.Close() })
	return w.Body
}

// TestTokenRemoved: with its token a caller loses what runs, its streams and its sessions; others lose nothing.
func TestTokenRemoved(t *testing.T) {
	t.Parallel() // it waits
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, gateway.Options{})
			alice, bob := g.as(t, "alice", era), g.as(t, "bob", era)
			stream := g.stream(t, "alice", g.as(t, "alice", eras[0]).ID())
			calls := make(chan error, 2)
			ctx, cancel := context.WithCancel(t.Context())
			defer within(t, "no call runs", func() bool { return g.shop.Running() == 0 })
			defer cancel()
			slow := func(agent *mcp.ClientSession) {
				result, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(
					`{"pipeline":[{"type":"tool","server":"shop","name":"slow"}]}`)})
				if err == nil && result.IsError {
					err = errors.New(result.Content[0].(*mcp.TextContent).Text)
				}
				calls <- err
			}
			go slow(alice)
			go slow(bob)
			within(t, "two calls run", func() bool { return g.shop.Running() == 2 })
			data, err := os.ReadFile(g.path)
			if err != nil {
				t.Fatal(err)
			}
			left, removed := tokens.Remove(data, "alice", "")
			if len(removed) != 1 {
				t.Fatalf("removed %v", removed)
			}
			if err := errors.Join(os.WriteFile(g.path+".new", left, 0o600), os.Rename(g.path+".new", g.path)); err != nil {
				t.Fatal(err)
			}
			if err := <-calls; err == nil {
				t.Error("the call goes on")
			}
			if _, err := io.Copy(io.Discard, stream); errors.Is(err, context.DeadlineExceeded) {
				t.Error("the stream of another session goes on")
			}
			within(t, "one call runs", func() bool { return g.shop.Running() == 1 })
			if _, err := alice.ListTools(t.Context(), nil); err == nil {
				t.Error("the session goes on")
			}
			if status, text := g.send(t, "POST", "alice", alice.ID(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusUnauthorized {
				t.Errorf("got %d, %s", status, text)
			}
			if text, _ := pipe(t, bob, `[{"type":"command","command":"jq","args":["-n","1"]}]`); text != "1\n" {
				t.Errorf("another caller gets %q", text)
			}
		})
	}
}

// TestUserRuns: the slots of a caller are those of all its sessions, and of no other caller.
func TestUserRuns(t *testing.T) {
	g := newGuarded(t, gateway.Options{CallerRuns: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer within(t, "no call runs", func() bool { return g.shop.Running() == 0 })
	defer cancel()
	slow := func(agent *mcp.ClientSession) {
		_, _ = agent.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(
			`{"pipeline":[{"type":"tool","server":"shop","name":"slow"}]}`)}) // cancelled at the end
	}
	go slow(g.as(t, "alice", eras[0]))
	go slow(g.as(t, "alice", eras[1]))
	within(t, "two calls run", func() bool { return g.shop.Running() == 2 })
	const one = `[{"type":"command","command":"jq","args":["-n","1"]}]`
	for _, era := range eras {
		if text, _ := pipe(t, g.as(t, "alice", era), one); !strings.Contains(text, "you already have 2 pipelines and calls of tools running (limit caller-runs)") {
			t.Errorf("%s: got %q", era, text)
		}
		if text, _ := pipe(t, g.as(t, "bob", era), one); text != "1\n" {
			t.Errorf("%s: another caller gets %q", era, text)
		}
	}
}
