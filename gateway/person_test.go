package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestPerson: a person has the runs, groups and slots of a client with the same identity.
func TestPerson(t *testing.T) {
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"one": mcptest.New(mcptest.Tool{Name: "echo", Text: `{"said":"yes"}`, ReadOnly: true})})
	g := gateway.New(gateway.Options{Upstream: pool, Kept: runs.New(runs.Options{}), GroupsOf: func(info *auth.TokenInfo) ([]string, bool) { return nil, info.UserID == "bob" }})
	ann, bob := g.Person(&auth.TokenInfo{UserID: "ann"}, false), g.Person(&auth.TokenInfo{UserID: "bob"}, false)
	call := map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": "one", "name": "echo"}}}
	result, err := ann.Call(t.Context(), "execute_pipeline", call)
	if err != nil || result.IsError {
		t.Fatalf("%v, %v", result, err)
	}
	result, err = bob.Call(t.Context(), "execute_pipeline", call)
	if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "one") {
		t.Errorf("a person without groups calls a tool: %v, %v", result, err)
	}
	if _, err := bob.Read(t.Context(), "mcsh://servers/one/file:///x"); err == nil {
		t.Error("a person without groups reads a resource")
	}
}

// TestPersonWork: saved pipelines are checked and run for a person with that person's servers, in a slot of the runs, and as a run
// of the person.
func TestPersonWork(t *testing.T) {
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"one": mcptest.New(mcptest.Tool{Name: "echo", Text: `{"said":"yes"}`, ReadOnly: true})})
	g := gateway.New(gateway.Options{Upstream: pool, Runs: 1, Kept: runs.New(runs.Options{}), GroupsOf: func(info *auth.TokenInfo) ([]string, bool) { return nil, info.UserID == "bob" }})
	ann, bob := g.Person(&auth.TokenInfo{UserID: "ann"}, false), g.Person(&auth.TokenInfo{UserID: "bob"}, false)
	compile := func(ctx context.Context, deps stages.Deps, _ pipelines.Viewer) error {
		if _, errs := stages.Compile(ctx, []byte(`[{"type": "tool", "server": "one", "name": "echo"}]`), deps); errs != nil {
			return errs[0]
		}
		return nil
	}
	if err := ann.Work(t.Context(), compile); err != nil {
		t.Error(err)
	}
	if err := bob.Work(t.Context(), compile); err == nil {
		t.Error("a person without groups uses a server")
	}
	var out strings.Builder
	var request string
	try := func(ctx context.Context, deps stages.Deps, _ pipelines.Viewer) (err error) {
		plan := []byte(`[{"type": "tool", "server": "one", "name": "echo"}]`)
		p, _ := stages.Compile(ctx, plan, deps)
		request, _, err = ann.Run(ctx, gateway.Trial{Name: "saved", Plan: plan, Pipeline: p}, &out)
		return err
	}
	if err := ann.Work(t.Context(), try); err != nil || !strings.Contains(out.String(), "yes") {
		t.Errorf("a trial gives %q, %v", out.String(), err)
	}
	for name, want := range map[string]bool{"ann": true, "bob": false} {
		list := g.History().Runs(t.Context(), control.Viewer{Caller: name}, control.RunFilter{})
		if got := len(list.Runs) == 1; got != want || want && (list.Runs[0].Request != request || list.Runs[0].State != control.RunOK) {
			t.Errorf("%s sees the runs %+v, want %s: %v", name, list.Runs, request, want)
		}
	}
	err := ann.Work(t.Context(), func(ctx context.Context, _ stages.Deps, _ pipelines.Viewer) error { return ann.Work(ctx, compile) })
	if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != stages.LimitExceeded {
		t.Errorf("beside the only run the gateway allows another: %v", err)
	}
}
