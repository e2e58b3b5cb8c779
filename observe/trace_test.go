package observe_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/upstream"
)

// collecting takes traces as a collector of OpenTelemetry does, over OTLP/HTTP.
type collecting struct {
	mu       sync.Mutex
	spans    []*trace.Span     // guarded by mu
	resource map[string]string // guarded by mu
	raw      bytes.Buffer      // guarded by mu
}

func newCollector(t *testing.T) *collecting {
	t.Helper()
	c := &collecting{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return c
}

func (c *collecting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err = errors.Join(err, proto.Unmarshal(raw, &request)); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprint("not OTLP: ", err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(raw)
	for _, rs := range request.ResourceSpans {
		c.resource = plain(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(answer)
}

func plain(attributes []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			m[a.Key] = fmt.Sprint(v.BoolValue)
		default:
			m[a.Key] = fmt.Sprint(v)
		}
	}
	return m
}

// tree writes the spans below a parent, those of one parent by name and attributes.
func (c *collecting) tree(parent []byte, indent string) string {
	var lines []string
	for _, s := range c.spans {
		if !bytes.Equal(s.ParentSpanId, parent) {
			continue
		}
		line := fmt.Sprintf("%s%s (%s)", indent, s.Name, strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")))
		attributes := plain(s.Attributes)
		for _, name := range []string{"mcp.method.name", "gen_ai.operation.name", "gen_ai.tool.name", "mcsh.server", "mcsh.stage", "mcsh.tool_calls", "mcsh.attempts", "error.type"} {
			if v, ok := attributes[name]; ok {
				line += fmt.Sprintf(" %s=%s", name, v)
			}
		}
		if s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR {
			line += " status=" + s.Status.Message
		}
		lines = append(lines, line+"\n"+c.tree(s.SpanId, indent+"  "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

const (
	agentTrace = "0af7651916cd43dd8448eb211c80319c"
	agentSpan  = "b7ad6b7169203331"
	agentSays  = "00-" + agentTrace + "-" + agentSpan + "-01"
)

// traced makes a tracer, and what ends it.
func traced(t *testing.T) (*observe.Tracer, func()) {
	t.Helper()
	tracer, err := observe.NewTracer(t.Context(), "test", func(err error) { t.Errorf("traces: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	return tracer, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := tracer.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// A run is one trace: the agent's, with a span for each stage and each call, each below the one that it belongs to.
func TestTrace(t *testing.T) {
	c := newCollector(t)
	tracer, end := traced(t)
	w := newWorld(t, observe.Watch{Tracer: tracer}, nil)
	agent := w.connect(withHeaders{"Traceparent": agentSays})
	each := `{"type":"tool","server":"shop","name":"echo","for_each":true,"on_error":"skip"}`
	ids := `{"type":"tool","server":"shop","name":"ids"}`
	w.run(agent, `[`+ids+`,`+each+`]`)
	w.run(agent, `[`+list+`,{"type":"parallel","branches":{"`+canary+`":[{"type":"preview"}]}}]`)
	w.run(agent, `[{"type":"tool","server":"shop","name":"slow","timeout":0.05}]`)
	end()
	parent, err := hex.DecodeString(agentSpan)
	if err != nil {
		t.Fatal(err)
	}
	want := `tools/call execute_pipeline (server) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=execute_pipeline mcsh.tool_calls=1
  stage parallel (internal) mcsh.stage=2
    stage preview (internal) mcsh.stage=2.*.1
  stage tool (internal) mcsh.stage=1
    tools/call numbers (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=numbers mcsh.server=shop mcsh.attempts=1
tools/call execute_pipeline (server) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=execute_pipeline mcsh.tool_calls=1 error.type=TIMEOUT status=TIMEOUT
  stage tool (internal) mcsh.stage=1 error.type=TIMEOUT status=TIMEOUT
    tools/call slow (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=slow mcsh.server=shop mcsh.attempts=1 error.type=TIMEOUT status=TIMEOUT
tools/call execute_pipeline (server) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=execute_pipeline mcsh.tool_calls=4
  stage tool (internal) mcsh.stage=1
    tools/call ids (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=ids mcsh.server=shop mcsh.attempts=1
  stage tool (internal) mcsh.stage=2
    tools/call echo (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcsh.server=shop mcsh.attempts=1
    tools/call echo (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcsh.server=shop mcsh.attempts=1
    tools/call echo (client) mcp.method.name=tools/call gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcsh.server=shop mcsh.attempts=1 error.type=TOOL_ERROR status=TOOL_ERROR
`
	if diff := cmp.Diff(want, c.tree(parent, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) != agentTrace {
			t.Errorf("the span %s is of another trace", s.Name)
		}
	}
	if c.resource["service.name"] != "mcsh" || c.resource["service.version"] != "test" || c.resource["process.command_args"] != "" {
		t.Errorf("resource: %v", c.resource)
	}
	if bytes.Contains(c.raw.Bytes(), []byte(canary)) {
		t.Error("arguments, results or names of branches are in the traces")
	}
}

// A run with very many calls has a bounded number of spans, and says how many are left out.
func TestManySpans(t *testing.T) {
	c := newCollector(t)
	tracer, end := traced(t)
	w := newWorld(t, observe.Watch{Tracer: tracer}, nil)
	w.run(w.connect(nil), `[{"type":"tool","server":"shop","name":"many"},{"type":"tool","server":"shop","name":"echo","for_each":true}]`)
	end()
	calls := 0
	for _, s := range c.spans {
		if s.Kind == trace.Span_SPAN_KIND_CLIENT {
			calls++
		}
		if left := plain(s.Attributes)["mcsh.tool_calls.untraced"]; s.Kind == trace.Span_SPAN_KIND_SERVER && left != "201" {
			t.Errorf("%q calls without spans, want 201", left)
		}
	}
	if calls != 1000 {
		t.Errorf("%d spans of calls", calls)
	}
}

// heard is what a server hears of a trace.
type heard struct{ header, meta string }

// A server behind the gateway hears of the call's span, in a header and in _meta; without traces, of what the agent says.
func TestTracePassedOn(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("stateless=%v,traced=%v", stateless, on), func(t *testing.T) {
				c := newCollector(t)
				var o observe.Watch
				end := func() {}
				if on {
					o.Tracer, end = traced(t)
				}
				got := make(chan heard, 1)
				g := newWorldBehind(t, o, hearing(t, stateless, got))
				agent := g.connect(nil)
				_, err := agent.CallTool(t.Context(), &mcp.CallToolParams{
					Meta: mcp.Meta{"traceparent": agentSays, "tracestate": "vendor=1"}, Name: "execute_pipeline",
					Arguments: map[string]any{"pipeline": json.RawMessage(`[{"type":"tool","server":"far","name":"hear"}]`)},
				})
				if err != nil {
					t.Fatal(err)
				}
				end()
				h := <-got
				want := agentSays
				for _, s := range c.spans {
					if s.Kind == trace.Span_SPAN_KIND_CLIENT {
						want = fmt.Sprintf("00-%s-%x-01", agentTrace, s.SpanId)
					}
				}
				if on == (want == agentSays) || h.header != want || h.meta != want {
					t.Errorf("the server heard %+v, want %s", h, want)
				}
			})
		}
	}
}

// hearing is a server over HTTP that says what it hears of traces.
func hearing(t *testing.T, stateless bool, got chan<- heard) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "hear", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			meta, _ := req.Params.Meta["traceparent"].(string)
			got <- heard{req.Extra.Header.Get("Traceparent"), meta}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "heard"}}}, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(server.Close)
	return server.URL
}

// newWorldBehind is a gateway in front of one server over HTTP.
func newWorldBehind(t *testing.T, o observe.Watch, url string) *world {
	t.Helper()
	w := &world{t: t}
	w.pool = upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "far", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}}}})
	t.Cleanup(func() { w.pool.Close() })
	w.metrics = observe.NewMetrics(observe.Build{}, observe.Probes{})
	o.Metrics, o.Own = w.metrics, gateway.ToolNames()
	w.serve(gateway.Options{Upstream: w.pool, Version: "test", Watch: &o})
	return w
}

// An agent may send any trace: the call is made, and text that no header can hold is in none.
func TestHostileTrace(t *testing.T) {
	got := make(chan heard, 1)
	w := newWorldBehind(t, observe.Watch{}, hearing(t, false, got))
	agent := w.connect(nil)
	for _, said := range []string{"a\r\nX-Evil: 1", "\x00", strings.Repeat("x", 5000), "00-zz-zz-zz", "ü"} {
		res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{
			Meta: mcp.Meta{"traceparent": said, "baggage": said}, Name: "execute_pipeline",
			Arguments: map[string]any{"pipeline": json.RawMessage(`[{"type":"tool","server":"far","name":"hear"}]`)},
		})
		if err != nil || res.IsError {
			t.Fatalf("%.20q: %v, %v", said, err, res)
		}
		if h := <-got; h.meta != said || strings.ContainsAny(h.header, "\r\n\x00") {
			t.Errorf("the server heard %+v of %.20q", h, said)
		}
	}
}

// The notice of a collector that refuses at length is short.
func TestLoudCollector(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not like this "+strings.Repeat("é", 1<<20), http.StatusBadRequest)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	notices := make(chan error, 10)
	tracer, err := observe.NewTracer(t.Context(), "test", func(err error) { notices <- err })
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, observe.Watch{Tracer: tracer}, nil)
	w.run(w.connect(nil), `[`+list+`]`)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-notices:
		if text := err.Error(); len(text) > 1100 || !strings.Contains(text, "400 Bad Request") || !strings.Contains(text, "not like this") {
			t.Errorf("got %d bytes: %.300s", len(text), text)
		}
	case <-time.After(time.Minute):
		t.Error("there is no notice")
	}
}

// A collector that does not answer keeps nobody: what is left is lost when the time is up.
func TestDeafCollector(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(done)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	tracer, err := observe.NewTracer(t.Context(), "test", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, observe.Watch{Tracer: tracer}, nil)
	if _, failed := w.run(w.connect(nil), `[`+list+`]`); failed {
		t.Error("the run failed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tracer.Close(ctx); err == nil || time.Since(start) > time.Minute {
		t.Errorf("closed after %s: %v", time.Since(start), err)
	}
}
