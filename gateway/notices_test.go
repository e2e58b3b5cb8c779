package gateway

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestListenersOfOneSession: where a session and its streams see some servers only, the end of one of them leaves the others.
func TestListenersOfOneSession(t *testing.T) {
	pool := mcptest.NewPool(t, upstream.Options{})
	g := New(Options{Upstream: pool, Group: "dev"})
	t.Cleanup(func() { g.Close(context.Background()) })
	server, client := mcp.NewInMemoryTransports()
	ss, err := g.server.Connect(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	n := &notices{g: g, listeners: map[*mcp.ServerSession][]*listener{}}
	begins := func(method string, meanwhile func()) {
		t.Helper()
		handler := n.receive(func(context.Context, string, mcp.Request) (mcp.Result, error) { meanwhile(); return nil, nil })
		if _, err := handler(t.Context(), method, &mcp.SubscriptionsListenRequest{Session: ss}); err != nil {
			t.Fatal(err)
		}
	}
	quiet := func(when string) {
		t.Helper()
		_, err := n.send(func(context.Context, string, mcp.Request) (mcp.Result, error) {
			t.Errorf("%s the client hears of lists that have not changed", when)
			return nil, nil
		})(t.Context(), rpc.ToolsChanged, &mcp.SubscriptionsListenRequest{Session: ss})
		if err != nil {
			t.Error(err)
		}
	}
	begins("initialize", func() {})
	quiet("with a session")
	over, ended := make(chan bool), make(chan bool)
	begins(rpc.Listen, func() {
		quiet("with a stream")
		begun := make(chan bool)
		go func() {
			defer close(ended)
			begins(rpc.Listen, func() { close(begun); <-over })
		}()
		<-begun
		quiet("with two streams")
	})
	quiet("after the first stream")
	close(over)
	<-ended
	quiet("after both streams")
}
