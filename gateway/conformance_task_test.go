package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/conformancetest"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// suiteTools are the tools that the scenarios of tasks call.
func suiteTools(t *testing.T) []mcptest.Tool {
	fails := func(context.Context, json.RawMessage) (string, error) {
		return `{"isError":true,"content":[{"type":"text","text":"it fails"}]}`, nil
	}
	return []mcptest.Tool{
		{Name: "greet", ReadOnly: true, Do: func(args map[string]any) (string, error) { return fmt.Sprintf("Hello, %s!", args["name"]), nil }},
		{Name: "slow_compute", ReadOnly: true, Raw: func(ctx context.Context, args json.RawMessage) (string, error) {
			var a struct{ Seconds int }
			if err := json.Unmarshal(args, &a); err != nil {
				return "", err
			}
			select {
			case <-time.After(time.Duration(a.Seconds) * time.Second):
			case <-ctx.Done():
			case <-t.Context().Done():
			}
			return `{"content":[{"type":"text","text":"done"}]}`, nil
		}},
		{Name: "failing_job", ReadOnly: true, Raw: fails},
		{Name: "protocol_error_job", ReadOnly: true, Raw: fails},
		{Name: "confirm_delete", ReadOnly: true, Text: "deleted"},
	}
}

// asPipelines makes of the calls of the suite durable calls of pipelines, but for greet, which it calls by its name. All else it
// leaves as it is.
func asPipelines(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var call struct {
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(body, &call) == nil && call.Method == "tools/call" {
			name, args := "execute_pipeline", fmt.Sprintf(
				`{"durable":true,"wait":0,"pipeline":[{"type":"tool","server":"shop","name":%q,"args":%s}]}`, call.Params.Name, call.Params.Arguments)
			if call.Params.Name == "greet" {
				name, args = "shop__greet", string(call.Params.Arguments)
			}
			var all map[string]json.RawMessage
			var params map[string]any
			if json.Unmarshal(body, &all) == nil && json.Unmarshal(all["params"], &params) == nil {
				params["name"], params["arguments"] = name, json.RawMessage(args)
				all["params"], _ = json.Marshal(params)
				body, _ = json.Marshal(all)
			}
			if r.Header.Get("Mcp-Name") == call.Params.Name {
				r.Header.Set("Mcp-Name", name)
			}
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		h.ServeHTTP(w, r)
	})
}

// TestConformanceTasks runs the scenarios of the tasks extension with durable pipelines. No scenario is run that needs a tool that
// asks during a task (tasks-mrtr-input, tasks-mrtr-composition) or that only clients with tasks may call (tasks-required-task-error),
// since there is none, and none about notifications, which is empty (tasks-status-notifications).
func TestConformanceTasks(t *testing.T) {
	t.Parallel()
	w := newDurableWorld(t, suiteTools(t)...)
	g, _ := w.start(8, func(o *gateway.Options) {
		o.Upstream = mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: w.shop.Dial, Expose: []string{"greet"}}}}})
		o.Upstream.AwaitExposed(t.Context(), true)
	})
	served := httptest.NewServer(asPipelines(g.Handler()))
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	for scenario, except := range map[string][]string{
		// A tool's error of any kind is the result of a pipeline.
		"tasks-lifecycle":              {"sep-2663-tasks-get-status-failed"},
		"tasks-capability-negotiation": nil,
		"tasks-wire-fields":            nil,
		"tasks-request-state-removal":  nil,
		"tasks-dispatch-and-envelope":  nil,
		"tasks-request-headers":        nil,
	} {
		t.Run(scenario, func(t *testing.T) {
			conformancetest.ServerScenario(t, "2026-07-28", scenario, served.URL+"/mcp", except...)
		})
	}
}
