package stdio

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// TestStdioSubscriptions: a client of each era gets updates on its one stream, several requests of the newer one do not disturb
// each other, and the end of the input ends them.
func TestStdioSubscriptions(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			live := mcptest.NewLive("doc://1", "doc://2")
			g := gateway.New(gateway.Options{Upstream: mcptest.Pool(t, map[string]*mcptest.Upstream{"live": live.Upstream}), Version: "test"})
			in, out := io.Pipe()
			back, answers := io.Pipe()
			served := make(chan error, 1)
			go func() {
				served <- Serve(context.Background(), Options{Server: g.Server(), In: in, Out: answers, Direct: g.Direct, Finish: g.Close})
			}()
			heard := make(chan string, 1000)
			client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
				ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
				ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { heard <- "list" },
			})
			agent, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: back, Writer: out}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			await := func(want string, again func()) {
				t.Helper()
				late := time.After(time.Minute)
				for {
					again()
					select {
					case got := <-heard:
						if got == want {
							return
						}
					case <-time.After(50 * time.Millisecond):
					case <-late:
						t.Fatalf("no news of %s", want)
					}
				}
			}
			for _, uri := range []string{"mcsh://servers/live/doc://1", "mcsh://servers/live/doc://2"} {
				if err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
			}
			await("mcsh://servers/live/doc://1", func() { live.Touch("doc://1") })
			await("mcsh://servers/live/doc://2", func() { live.Touch("doc://2") })
			if err := agent.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "mcsh://servers/live/doc://2"}); err != nil {
				t.Fatal(err)
			}
			await("mcsh://servers/live/doc://1", func() { live.Touch("doc://1") })
			for end := time.Now().Add(time.Minute); len(live.Subscribed()) != 1; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("subscribed are %q", live.Subscribed())
				}
			}
			n := 0
			await("list", func() {
				if n++; n%20 == 1 { // now and then: the gateway sums up changes
					live.MCP().AddResource(&mcp.Resource{URI: "doc://new/" + string(rune('a'+n%20+n/20)), Name: "new"}, nil)
				}
			})
			out.Close()
			select {
			case err := <-served:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the end of the input does not end the gateway")
			}
			back.Close()
		})
	}
}
