package inprocess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

type endArgs struct {
	How string `json:"how"`
}

const endSchema = `{"type":"object","properties":{"how":{"type":"string","description":"How it ends."}},"required":["how"],"additionalProperties":false}`

// ends are the ways in which the tool end can end.
var ends = map[string]func(ctx context.Context) (*mcp.CallToolResult, error){
	"text": func(context.Context) (*mcp.CallToolResult, error) {
		return tool.Text("a <b> & \"c\" \u2028 \\ é\n\xff\x01"), nil
	},
	"numbers": func(context.Context) (*mcp.CallToolResult, error) {
		return tool.JSON(json.RawMessage(`{"z":12345678901234567890, "a":[1.10,"<"]}`))
	},
	"nothing": func(context.Context) (*mcp.CallToolResult, error) { return &mcp.CallToolResult{}, nil },
	"nil":     func(context.Context) (*mcp.CallToolResult, error) { return nil, nil },
	"picture": func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Meta: mcp.Meta{"m": 1.0}, StructuredContent: map[string]string{"x": "y"},
			Content: []mcp.Content{
				&mcp.TextContent{Text: "a dot", Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}},
				&mcp.ImageContent{MIMEType: "image/png", Data: []byte("dot")},
			},
		}, nil
	},
	"not JSON": func(context.Context) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"x"`)}, nil
	},
	"panic": func(context.Context) (*mcp.CallToolResult, error) { panic("for a test") },
	"error": func(context.Context) (*mcp.CallToolResult, error) {
		return nil, &tool.Error{Kind: "NotFound", Msg: "no", Hint: "look"}
	},
	"big":  func(context.Context) (*mcp.CallToolResult, error) { return tool.Text(strings.Repeat("x", 2<<20)), nil },
	"hang": func(ctx context.Context) (*mcp.CallToolResult, error) { <-ctx.Done(); return nil, ctx.Err() },
}

// endings is a server in this process with the tool end, and the pool over it.
func endings(t *testing.T, direct bool) *upstream.Pool {
	t.Helper()
	call := tool.New(func(ctx context.Context, a endArgs) (*mcp.CallToolResult, error) {
		if end := ends[a.How]; end != nil {
			return end(ctx)
		}
		return nil, errors.New("unknown")
	})
	s, err := tool.Open(tool.Server{
		Name: "t", Tools: []tool.Tool{{Name: "end", Description: "Ends.", Input: endSchema, Annotations: tool.ReadOnly(false), Call: call}},
		Before: func(ctx context.Context) error {
			if ctx.Value(ownKey{}) != nil {
				return errors.New("the call has values of its caller")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !direct {
		s.Handlers = nil
	}
	p := upstream.NewPool(upstream.Options{ResultMax: 64 << 10, Sources: []upstream.Source{
		upstream.Static{{Name: "s", Dial: upstream.InProcess(s.Server, s.Handlers, s.Begin), InProcess: true}},
	}})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

type ownKey struct{}

// sizes are those of messages, which differ by what surrounds a result.
var sizes = regexp.MustCompile(`has \d+ bytes`)

// alike removes the sizes, and the escapes that only the SDK writes.
func alike(text string) string {
	return sizes.ReplaceAllString(strings.ReplaceAll(text, `\u003c`, "<"), "has n bytes")
}

// TestDirectSame: a call of a server in this process gives the same with the SDK and without.
func TestDirectSame(t *testing.T) {
	ctx := context.WithValue(t.Context(), ownKey{}, true)
	pools := []*upstream.Pool{endings(t, false), endings(t, true)}
	calls := map[string]stages.Call{
		"unknown tool":       {Name: "exit", Args: json.RawMessage(`{}`)},
		"no arguments":       {Name: "end"},
		"null":               {Name: "end", Args: json.RawMessage(`null`)},
		"an array":           {Name: "end", Args: json.RawMessage(`[]`)},
		"unknown argument":   {Name: "end", Args: json.RawMessage(`{"how":"text","x":1}`)},
		"wrong type":         {Name: "end", Args: json.RawMessage(`{"how":5}`)},
		"arguments on lines": {Name: "end", Args: json.RawMessage("{\r\n\"how\":\n\"text\"}")},
		"progress":           {Name: "end", Args: json.RawMessage(`{"how":"text"}`), Progress: func(stages.ToolProgress) {}},
	}
	for how := range ends {
		if how != "hang" && how != "not JSON" {
			calls[how] = stages.Call{Name: "end", Args: json.RawMessage(fmt.Sprintf(`{"how":%q}`, how))}
		}
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			c.Server = "s"
			var got [2]string
			for i, p := range pools {
				res, err := p.CallTool(ctx, c)
				got[i] = alike(fmt.Sprintf("%s\n%v %t %s\n%v", res.Data, res.Kind, res.None, res.Blocks, err))
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("the SDK and we differ (-SDK +we):\n%s", diff)
			}
		})
	}
}

// TestDirectNotJSON: a result that cannot be encoded is an error of the call. The SDK would not answer.
func TestDirectNotJSON(t *testing.T) {
	_, err := endings(t, true).CallTool(t.Context(), stages.Call{Server: "s", Name: "end", Args: json.RawMessage(`{"how":"not JSON"}`)})
	if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != stages.ToolError || !strings.Contains(e.Msg, "unexpected end of JSON input") {
		t.Errorf("got %v", err)
	}
}

// TestDirectEnds: a call ends with its caller's context or with the pool, and does not end others.
func TestDirectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := endings(t, true)
		failures := make([]error, 3)
		stops := make([]context.CancelFunc, len(failures))
		var all sync.WaitGroup
		for i := range failures {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stops[i] = stop
			all.Go(func() {
				_, failures[i] = p.CallTool(ctx, stages.Call{Server: "s", Name: "end", Args: json.RawMessage(`{"how":"hang"}`)})
			})
		}
		synctest.Wait()
		stops[1]()
		synctest.Wait()
		if !errors.Is(failures[1], context.Canceled) || failures[0] != nil || failures[2] != nil {
			t.Errorf("got %v, want that the second is cancelled", failures)
		}
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "end", Args: json.RawMessage(`{"how":"text"}`)}); err != nil {
			t.Error(err)
		}
		_ = p.Close()
		all.Wait()
		if failures[0] == nil || failures[2] == nil {
			t.Errorf("got %v, want that Close ends all", failures)
		}
	})
}
