package cli

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/signintest"
)

// A hosted server takes the tokens of an issuer, and counts those that it has seen.
type hosted struct {
	URL    string // without the path
	issuer string

	mu   sync.Mutex
	seen map[string]bool // tokens that were good; guarded by mu
}

func newHosted(t *testing.T, o signintest.Options) *hosted {
	t.Helper()
	h := &hosted{seen: map[string]bool{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	endpoint := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	address, issuer := signintest.Protect(t, o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen[r.Header.Get("Authorization")] = true
		h.mu.Unlock()
		endpoint.ServeHTTP(w, r)
	}))
	h.URL, h.issuer = strings.TrimSuffix(address, "/mcp"), issuer
	return h
}

func (h *hosted) tokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen)
}

// gateway starts a gateway of a person, and returns the call of a pipeline with the tool.
func (p *person) gateway() (call func() string) {
	p.t.Helper()
	path, err := exec.LookPath("mcsh")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, "serve")
	cmd.Env = p.env
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(p.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { session.Close() })
	return func() string {
		result, err := session.CallTool(p.t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{
			"pipeline": []any{map[string]any{"type": "tool", "server": "box", "name": "hello"}},
		}})
		if err != nil {
			p.t.Fatal(err)
		}
		var text strings.Builder
		for _, c := range result.Content {
			if block, ok := c.(*mcp.TextContent); ok {
				text.WriteString(block.Text + "\n")
			}
		}
		return text.String()
	}
}

// TestLoginReal signs in to a real authorization server while two gateways run. They use the sign-in without a restart, and go on
// when tokens end, although each refresh token works once: the issuer ends the sign-in if one comes twice.
func TestLoginReal(t *testing.T) {
	t.Parallel() // it waits
	h := newHosted(t, signintest.Options{TTL: 3600, Rotate: true})
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+h.URL+`/mcp"}}}`)
	calls := []func() string{p.gateway(), p.gateway()}
	for _, call := range calls {
		if text := call(); !strings.Contains(text, "mcsh login box") {
			t.Fatalf("before the sign-in: %s", text)
		}
	}
	screen := &watched{seen: make(chan string, 1), last: "\n\n"}
	p.env = append(p.env, "BROWSER=true") // so that it is not the flow of another device
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	alongside(t, func() {
		arrived := false
		defer func() {
			if !arrived {
				cancel()
			}
		}()
		signintest.Browser(t, addressIn(screen.next(t)), "")
		arrived = true
	})
	if status := run(ctx, []string{"login", "box"}, strings.NewReader(""), io.Discard, screen, p.env); status != 0 ||
		!strings.Contains(screen.String(), "2 of 2 gateways with this state directory have") {
		t.Fatalf("status %d: %s", status, screen.String())
	}
	store := p.store()
	for range 4 {
		list, err := store.All()
		if err != nil || len(list) != 1 {
			t.Fatalf("there are %v, %v", list, err)
		}
		list[0].Expiry = time.Now().Add(-time.Hour) // as if it had ended
		if err := store.Put(t.Context(), list[0]); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for _, call := range calls {
			both.Go(func() {
				if text := call(); !strings.HasPrefix(text, "hello") && !strings.Contains(text, "\nhello") {
					t.Errorf("after the sign-in: %s", text)
				}
			})
		}
		if both.Wait(); t.Failed() {
			return
		}
	}
	if h.tokens() != 4 {
		t.Errorf("%d tokens were used, want 4", h.tokens())
	}
	p.run(0, "its issuer has revoked the tokens", "logout", "box")
	for _, call := range calls {
		if text := call(); !strings.Contains(text, "mcsh login box") {
			t.Errorf("after signing out: %s", text)
		}
	}
}
