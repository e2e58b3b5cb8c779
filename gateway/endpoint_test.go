package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

// endpoint is a server of one tool, which runs until it is cancelled, for callers who are what their tokens say.
type endpoint struct {
	*gateway.Endpoint
	url     string
	started chan string // whose call has started
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{started: make(chan string, 10)}
	server := mcp.NewServer(&mcp.Implementation{Name: "one", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "hang", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		e.started <- req.Extra.TokenInfo.UserID
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	e.Endpoint = gateway.NewEndpoint(server, gateway.HTTPOptions{})
	guard := sdk.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*sdk.TokenInfo, error) {
		return &sdk.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)
	s := httptest.NewServer(guard(e.Handler()))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	e.url = s.URL + "/mcp"
	return e
}

// hang makes a call and returns how it ends, once it runs.
func (e *endpoint) hang(t *testing.T, user, version string) <-chan error {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: e.url, HTTPClient: &http.Client{Transport: bearer(user)}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "hang"})
		ended <- err
	}()
	if got := <-e.started; got != user {
		t.Errorf("the call of %s runs as %s", user, got)
	}
	return ended
}

// TestEndpoint: the calls of a caller who loses access end, in both eras, and those of others do not; the end of the server
// ends all, and refuses others.
func TestEndpoint(t *testing.T) {
	e := newEndpoint(t)
	eras := []string{"2025-11-25", "2026-07-28"}
	var alices, bobs []<-chan error
	for _, version := range eras {
		alices, bobs = append(alices, e.hang(t, "alice", version)), append(bobs, e.hang(t, "bob", version))
	}
	e.EndUser("alice")
	for i, ended := range alices {
		if err := <-ended; err == nil {
			t.Errorf("%s: the call of a caller without access is answered", eras[i])
		}
	}
	for i, ended := range bobs {
		select {
		case err := <-ended:
			t.Errorf("%s: the call of another caller has ended: %v", eras[i], err)
		default:
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Close(over); err != nil {
		t.Error(err)
	}
	for i, ended := range bobs {
		if err := <-ended; err == nil {
			t.Errorf("%s: the call goes on after the end", eras[i])
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: e.url, HTTPClient: &http.Client{Transport: bearer("bob")}}, nil)
	if err == nil {
		defer session.Close()
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hang"})
	}
	if err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("a call after the end: %v", err)
	}
}
