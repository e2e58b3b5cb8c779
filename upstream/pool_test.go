package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

func echoServer() *mcptest.Upstream {
	return mcptest.New(
		mcptest.Tool{
			Name: "echo", ReadOnly: true, Schema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`,
			Do: func(args map[string]any) (string, error) { return fmt.Sprint(args["n"]), nil },
		},
		mcptest.Tool{Name: "fail", Do: func(map[string]any) (string, error) { return "", errors.New("no such thing") }},
		mcptest.Tool{Name: "structured", Raw: func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"text","text":"x"}],"structuredContent":{"z":1234567890123456789,"a":1.10}}`, nil
		}},
	)
}

func TestPoolCalls(t *testing.T) {
	p := mcptest.Pool(t, map[string]*mcptest.Upstream{"demo": echoServer()})
	ctx := t.Context()
	res, err := p.CallTool(ctx, stages.Call{Server: "demo", Name: "echo", Args: json.RawMessage(`{"n":12345678901234567890}`)})
	if err != nil || string(res.Data) != "12345678901234567890" {
		t.Errorf("got %q, %v", res.Data, err)
	}
	res, err = p.CallTool(ctx, stages.Call{Server: "demo", Name: "structured"})
	if want := `{"z":1234567890123456789,"a":1.10}`; err != nil || string(res.Data) != want {
		t.Errorf("got %q, %v; want %q", res.Data, err, want)
	}
	_, err = p.CallTool(ctx, stages.Call{Server: "demo", Name: "fail"})
	wantError(t, err, stages.ToolError, "no such thing", "")
	tool, err := p.Tool(ctx, "demo", "echo")
	if err != nil || !tool.ReadOnly || tool.Signature != "echo(n: integer)" {
		t.Errorf("got %+v, %v", tool, err)
	}
}

// wantError checks the code of an error and that message and hint hold some words.
func wantError(t *testing.T, err error, code stages.Code, msg, hint string) {
	t.Helper()
	var e *stages.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("got %v, want an error %s", err, code)
	case e.Code != code || !contains(e.Msg, msg) || !contains(e.Hint, hint):
		t.Errorf("got %s %q, hint %q\nwant %s %q, hint %q", e.Code, e.Msg, e.Hint, code, msg, hint)
	}
}

func staticPool(t *testing.T, o upstream.Options, servers ...upstream.Server) *upstream.Pool {
	t.Helper()
	o.Sources = []upstream.Source{upstream.Static(servers)}
	return mcptest.NewPool(t, o)
}

// sourceFunc is a source that is a function.
type sourceFunc func(ctx context.Context) ([]upstream.Server, error)

func (f sourceFunc) Servers(ctx context.Context) ([]upstream.Server, error) { return f(ctx) }

// TestLoadIsNotTheFirstCallers: a caller who gives up does not decide for the others.
func TestLoadIsNotTheFirstCallers(t *testing.T) {
	entered, proceed := make(chan struct{}), make(chan struct{})
	source := sourceFunc(func(ctx context.Context) ([]upstream.Server, error) {
		close(entered)
		select {
		case <-proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return []upstream.Server{{Name: "demo", Dial: echoServer().Dial}}, nil
	})
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := p.Tool(ctx, "demo", "echo"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	close(proceed)
	if err := p.Load(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := p.Tool(t.Context(), "demo", "echo"); err != nil {
		t.Error(err)
	}
}
