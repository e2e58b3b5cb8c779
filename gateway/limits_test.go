package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// reached is a watch that takes note of the limits that errors are of.
type reached struct {
	gateway.Unwatched
	mu     sync.Mutex
	limits []string
}

func (r *reached) Run(ctx context.Context, _, _ string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	return ctx, o, func(_ stages.Report, _ int64, _ bool, err error) { r.Refused("", err) }
}

func (r *reached) Call(ctx context.Context, _, _, _ string, trace stages.Trace) (context.Context, stages.Trace, func(error)) {
	return ctx, trace, func(err error) { r.Refused("", err) }
}

func (r *reached) Asked(_, _ string, _ time.Duration, _ int, err error) { r.Refused("", err) }

func (r *reached) Refused(_ string, err error) {
	if e, ok := errors.AsType[*stages.Error](err); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.limits = append(r.limits, e.Limit)
	}
}

func (r *reached) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.limits, " ")
}

// patience is the time of the runs, which none of them needs.
const patience = time.Minute

// A limitCase makes the limit of a row of docs/limits.md small and reaches it.
type limitCase struct {
	set      func(*gateway.Options)
	result   int64 // of the pool
	pipeline string
	beside   bool // while another run is under way
	waits    bool // it makes what goes on wait, and is no error
	slow     bool // what reaches it takes too long to be awaited where the limit is large

	http func(ctx context.Context, h http.Handler) string // of a limit of what comes over HTTP: the answer

	elsewhere bool // the test of another package reaches it

	raised func(*gateway.Options) // what else set does, where the limit is the default
	large  bool                   // the limit is the default
}

func limitCases() map[string]limitCase {
	of := func(l stages.Limits) func(*gateway.Options) { return func(o *gateway.Options) { o.Limits = l } }
	const (
		list    = `{"type":"tool","server":"shop","name":"list"}`
		get     = `{"type":"tool","server":"shop","name":"get","for_each":true`
		slow    = `{"type":"tool","server":"shop","name":"slow"}`
		preview = `{"type":"preview"}`
		each    = `{"type":"for_each","stages":[`
	)
	return map[string]limitCase{
		"stages":              {set: of(stages.Limits{Stages: 2}), pipeline: list + "," + preview + "," + preview},
		"nesting":             {set: of(stages.Limits{Nesting: 1}), pipeline: list + "," + each + each + preview + "]}]}"},
		"items":               {set: of(stages.Limits{Items: 2}), pipeline: list + "," + get + "}"},
		"calls":               {set: of(stages.Limits{Calls: 2}), pipeline: list + "," + get + "}"},
		"run":                 {set: of(stages.Limits{Run: 200 * time.Millisecond}), slow: true, pipeline: slow},
		"call":                {set: of(stages.Limits{Call: 200 * time.Millisecond}), slow: true, pipeline: slow},
		"command":             {set: of(stages.Limits{Command: 200 * time.Millisecond}), slow: true, pipeline: `{"type":"command","command":"jq","args":["-n","last(range(1e12))"]}`},
		"input":               {set: of(stages.Limits{Input: 10}), pipeline: list + `,{"type":"tool","server":"shop","name":"save"}`},
		"result":              {result: 10, pipeline: list},
		"item":                {set: of(stages.Limits{Item: 5}), pipeline: list + "," + get + "}"},
		"attempt":             {set: of(stages.Limits{Attempt: 10}), pipeline: list + "," + get + `,"retries":1}`},
		"waiting":             {set: of(stages.Limits{Waiting: 1}), pipeline: list + "," + get + "}", waits: true},
		"shared":              {set: of(stages.Limits{Shared: 300}), pipeline: list + `,{"type":"tool","server":"shop","name":"save","for_each":true,"distinct":true}`},
		"held":                {set: of(stages.Limits{Held: 50}), pipeline: list + "," + get + `,"retries":1}`},
		"spool":               {set: of(stages.Limits{Spool: 10, SpoolHead: 1}), pipeline: list + `,{"type":"tool","server":"shop","name":"save","for_each":true}`},
		"workspace":           {raised: saving(stages.Limits{}), set: saving(stages.Limits{Workspace: 10}), pipeline: list + `,{"type":"tee","path":"a"}`},
		"workspace-total":     {raised: saving(stages.Limits{}), set: saving(stages.Limits{WorkspaceTotal: 2000}), pipeline: list + `,{"type":"tee","path":"a"}`},
		"runs":                {set: func(o *gateway.Options) { o.Runs = 1 }, pipeline: list, beside: true},
		"caller-runs":         {set: func(o *gateway.Options) { o.CallerRuns = 1 }, pipeline: list, beside: true},
		"connections":         {elsewhere: true}, // TestConnections of cli
		"address-connections": {elsewhere: true},
		"durable-items":       {elsewhere: true}, // TestDurableLimits
		"durable-calls":       {elsewhere: true},
		"durable-run":         {elsewhere: true},
		"check":               {elsewhere: true}, // TestCheckLimits of sandbox
		"check-memory":        {elsewhere: true},
		"tools":               {elsewhere: true}, // TestHostileLists of upstream: what is not read is a note
		"tool-list":           {elsewhere: true},
		"schema":              {elsewhere: true}, // TestSchemaLimits of schemas: what is not checked is a note
		"schema-steps":        {elsewhere: true},
		"body": {set: func(o *gateway.Options) { o.HTTP.Body = 10 }, http: func(ctx context.Context, h http.Handler) string {
			return opener{h}.open(ctx, "192.0.2.1").Body.String()
		}},
		"message": {set: func(o *gateway.Options) { o.HTTP.Message = 10 }, http: func(ctx context.Context, h http.Handler) string {
			return opener{h}.open(ctx, "192.0.2.1").Body.String()
		}},
		"sessions": {set: func(o *gateway.Options) { o.HTTP.Sessions = 1 }, http: func(ctx context.Context, h http.Handler) string {
			opener{h}.open(ctx, "127.0.0.1")
			return opener{h}.open(ctx, "127.0.0.1").Body.String()
		}},
		"caller-sessions": {set: func(o *gateway.Options) { o.HTTP.CallerSessions = 1 }, http: func(ctx context.Context, h http.Handler) string {
			id := opener{h}.open(ctx, "192.0.2.1").Header().Get("Mcp-Session-Id")
			ctx, cancel := context.WithCancel(ctx)
			a := &httpAgent{h: h, version: "2025-06-18", session: id}
			stream := &begun{httptest.NewRecorder(), make(chan struct{})}
			ended := make(chan struct{})
			go func() { h.ServeHTTP(stream, a.request(ctx, http.MethodGet, "")); close(ended) }()
			defer func() { cancel(); <-ended }()
			<-stream.wrote
			return opener{h}.open(ctx, "192.0.2.1").Body.String()
		}},
		"address-runs": {slow: true, set: func(o *gateway.Options) {
			o.AddressRuns, o.Limits = 1, stages.Limits{Run: 2 * time.Hour, Call: 2 * time.Hour}
		}, http: func(ctx context.Context, h http.Handler) string {
			ctx, cancel := context.WithCancel(ctx)
			a := &httpAgent{h: h, version: "2026-07-28"}
			first, second := a.call(ctx, "1", "slow"), a.call(ctx, "2", "slow")
			select { // whichever comes too late
			case w := <-first:
				cancel()
				<-second
				return w.Body.String()
			case w := <-second:
				cancel()
				<-first
				return w.Body.String()
			}
		}},
	}
}

// saving sets limits of a workspace in which 2000 bytes were written.
func saving(l stages.Limits) func(*gateway.Options) {
	return func(o *gateway.Options) { o.Limits, o.Files = l, workspaceOf(2000) }
}

// A workspaceOf is a workspace in which so many bytes were written, and which keeps nothing.
type workspaceOf int64

func (w workspaceOf) FileName(path string) (string, error) { return path, nil }

func (w workspaceOf) SaveFile(_ context.Context, f stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	data, err := io.ReadAll(in)
	if err == nil {
		err = f.Charge(int64(len(data)), int64(w)+int64(len(data)))
	}
	return io.NopCloser(bytes.NewReader(data)), err
}

// begun is a response that tells when it begins.
type begun struct {
	*httptest.ResponseRecorder
	wrote chan struct{}
}

func (b *begun) WriteHeader(code int) {
	b.ResponseRecorder.WriteHeader(code)
	close(b.wrote)
}

// TestLimits: the error of every limit of docs/limits.md says which one it is, in words and to those who count. With the
// default, which is far larger, the same is no error.
func TestLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(page), -1)
	cases := limitCases()
	if len(rows) != len(cases) {
		t.Errorf("%d limits are on the page, and %d in the test", len(rows), len(cases))
	}
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			c, ok := cases[row[1]]
			if !ok {
				t.Fatal("there is no case")
			}
			if c.elsewhere {
				return
			}
			c.run(t, row[1])
			if !c.slow {
				c.result, c.set, c.large = 0, c.raised, true
				t.Run("large", func(t *testing.T) { c.run(t, row[1]) })
			}
		})
	}
}

func (c limitCase) run(t *testing.T, limit string) {
	long := strings.Repeat("x", 250)
	shop := mcptest.New(
		mcptest.Tool{Name: "list", ReadOnly: true, Text: `[{"id":1000001},{"id":1000002},{"id":1000003}]`},
		mcptest.Tool{Name: "get", ReadOnly: true, Text: long},
		mcptest.Tool{Name: "save", Destructive: true, Text: long},
		mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Minute, Text: "late"},
	)
	pool := mcptest.NewPool(t, upstream.Options{ResultMax: c.result, Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: shop.Dial}}}})
	var watch reached
	o := gateway.Options{Upstream: pool, Version: "test", Watch: &watch}
	if limit == "command" {
		o.Sandbox = ready{sharedSandbox(t)}
	}
	if c.set != nil {
		c.set(&o)
	}
	g := gateway.New(o)
	if c.http != nil {
		if got := c.http(t.Context(), g.Handler()); strings.Contains(got, "(limit "+limit) == c.large {
			t.Errorf("got %s", got)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	agent := connect(t, g, newClient())
	call := func(ctx context.Context, pipeline string) (*mcp.CallToolResult, error) {
		args := map[string]any{"pipeline": "[" + pipeline + "]"}
		if limit != "run" {
			args["timeout"] = patience.Seconds()
		}
		return agent.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: args})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var other sync.WaitGroup
	defer other.Wait()
	defer cancel()
	if c.beside {
		other.Go(func() { _, _ = call(ctx, `{"type":"tool","server":"shop","name":"slow"}`) })
		within(t, "the other one runs", func() bool { return shop.Running() == 1 })
	}
	begun := time.Now()
	result, err := call(t.Context(), c.pipeline)
	if err != nil {
		t.Fatal(err)
	}
	text := result.Content[len(result.Content)-1].(*mcp.TextContent).Text
	if took := time.Since(begun); took >= patience {
		t.Errorf("it ended with the time of the run only, after %s", took)
	}
	want := limit
	fine := c.waits || c.large
	if fine {
		want = ""
	}
	if got := watch.all(); strings.TrimSpace(got) != want || result.IsError == fine || !fine && !strings.Contains(text, "(limit "+limit) {
		t.Errorf("got the limit %q, and %s", got, text)
	}
}
