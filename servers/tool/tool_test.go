package tool_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/servertest"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

type args struct {
	How string `json:"how"`
}

const schema = `{"type":"object","properties":{"how":{"type":"string","description":"How it ends."}},"required":["how"],"additionalProperties":false}`

// endings is a tool that ends in the way that its argument names.
func endings(context.Context, args) func(string) (*mcp.CallToolResult, error) {
	return func(how string) (*mcp.CallToolResult, error) {
		switch how {
		case "panic":
			panic("for a test")
		case "error":
			return nil, errors.New("plain")
		case "kind":
			return nil, &tool.Error{Kind: "NotFound", Msg: "nothing there", Hint: "look elsewhere"}
		case "deadline":
			return nil, context.DeadlineExceeded
		}
		return tool.Text(how), nil
	}
}

func TestEndings(t *testing.T) {
	call := tool.New(func(ctx context.Context, a args) (*mcp.CallToolResult, error) { return endings(ctx, a)(a.How) })
	server, err := tool.Open(tool.Server{Name: "t", Tools: []tool.Tool{{Name: "end", Description: "Ends.", Input: schema, Annotations: tool.ReadOnly(false), Call: call}}})
	c := servertest.Connect(t, server, err)
	for how, want := range map[string]string{
		"well":     "well",
		"panic":    "Internal: the tool end broke: for a test",
		"error":    "Internal: plain",
		"kind":     "NotFound: nothing there; look elsewhere",
		"deadline": "Timeout: context deadline exceeded",
	} {
		if r := c.Call(t, "end", `{"how":"`+how+`"}`); r.Text != want || r.Error != (how != "well") {
			t.Errorf("%s: got %s (error %v), want %s", how, r.Text, r.Error, want)
		}
	}
}

func TestCallsAreBounded(t *testing.T) {
	var running atomic.Int32
	full, release := make(chan struct{}), make(chan struct{})
	call := tool.New(func(context.Context, args) (*mcp.CallToolResult, error) {
		if running.Add(1) == 64 {
			close(full)
		}
		<-release
		return tool.Text("x"), nil
	})
	server, err := tool.Open(tool.Server{Name: "t", Tools: []tool.Tool{{Name: "hold", Description: "Holds.", Input: schema, Annotations: tool.ReadOnly(false), Call: call}}})
	c := servertest.Connect(t, server, err)
	done := make(chan struct{})
	for range 100 {
		go func() {
			c.Call(t, "hold", `{"how":"x"}`)
			done <- struct{}{}
		}()
	}
	<-full
	if n := running.Load(); n != 64 {
		t.Errorf("%d calls at once, want 64", n)
	}
	close(release)
	for range 100 {
		<-done
	}
	if n := running.Load(); n != 100 {
		t.Errorf("%d calls, want 100", n)
	}
}

func TestOpenRefusesBadTools(t *testing.T) {
	call := tool.New(func(context.Context, args) (*mcp.CallToolResult, error) { return nil, nil })
	for _, input := range []string{
		``, `[]`, `{"type":"array"}`, `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"how":{},"more":{}}}`,
	} {
		if _, err := tool.Open(tool.Server{Name: "t", Tools: []tool.Tool{{Name: "x", Input: input, Call: call}}}); err == nil {
			t.Errorf("the schema %s was accepted", input)
		}
	}
}
