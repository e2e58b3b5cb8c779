package upstream_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestSessionEnds: a server in this process hears of the end of its session when its source removes it, after the call in
// flight, with the SDK and without.
func TestSessionEnds(t *testing.T) {
	for name, direct := range map[string]bool{"with the SDK": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			entered, open := make(chan struct{}), make(chan struct{})
			s, err := tool.Open(tool.Server{Name: "t", Tools: []tool.Tool{{
				Name: "wait", Description: "Waits.", Input: `{"type":"object","properties":{}}`, Annotations: tool.ReadOnly(false),
				Call: tool.New(func(context.Context, struct{}) (*mcp.CallToolResult, error) {
					calls.Add(1)
					defer calls.Add(-1)
					close(entered)
					<-open
					return tool.Text("done"), nil
				}),
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if !direct {
				s.Handlers = nil
			}
			begun, ended := make(chan struct{}), make(chan int32, 1)
			dial := upstream.InProcess(s.Server, s.Handlers, func() func() error {
				close(begun) // a second session would panic
				return func() error { ended <- calls.Load(); return nil }
			})
			source := newChangingSource(upstream.Server{Name: "s", Version: "1", Dial: dial, InProcess: true})
			p := source.pool(t)
			result := make(chan string, 1)
			go func() {
				res, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "s", Name: "wait", Args: json.RawMessage(`{}`)})
				result <- string(res.Data) + errorText(err)
			}()
			<-entered
			<-begun
			source.change(t, nil)
			select {
			case <-ended:
				t.Error("the session has ended before its call")
			default:
			}
			close(open)
			if got := <-result; got != "done" {
				t.Errorf("the call in flight got %q", got)
			}
			select {
			case n := <-ended:
				if n != 0 {
					t.Errorf("%d calls were running at the end", n)
				}
			case <-time.After(time.Minute):
				t.Error("the session has not ended")
			}
		})
	}
}
