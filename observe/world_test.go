package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/upstream"
)

// canary stands in every place where a secret could be: arguments, results, errors, tokens, session ids.
const canary = "CANARY-9f1c2e"

// world is a gateway that is watched, over HTTP, in front of a shop.
type world struct {
	t       *testing.T
	metrics *observe.Metrics
	gateway *gateway.Gateway
	pool    *upstream.Pool
	url     string
}

func shop() *mcptest.Upstream {
	return mcptest.New(
		mcptest.Tool{Name: "ids", ReadOnly: true, Text: `[{"id":1},{"id":2},{"id":3}]`},
		mcptest.Tool{Name: "many", ReadOnly: true, Do: func(map[string]any) (string, error) {
			var items []string
			for i := range 1200 {
				items = append(items, fmt.Sprintf(`{"id":%d}`, i+3))
			}
			return "[" + strings.Join(items, ",") + "]", nil
		}},
		mcptest.Tool{Name: "numbers", ReadOnly: true, Text: "[1,2,3]"},
		mcptest.Tool{Name: "echo", ReadOnly: true, Do: func(args map[string]any) (string, error) {
			if fmt.Sprint(args["id"]) == "2" {
				return "", errors.New("no item 2: " + canary)
			}
			return fmt.Sprintf(`{"id":%v,"secret":%q}`, args["id"], canary), nil
		}},
		mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Minute, Text: "late"},
		mcptest.Tool{Name: "long", ReadOnly: true, Text: strings.Repeat("x", 50_000)},
	)
}

// newWorld makes a world with a watch of these options.
func newWorld(t *testing.T, o observe.Watch, servers map[string]*mcptest.Upstream) *world {
	t.Helper()
	if servers == nil {
		servers = map[string]*mcptest.Upstream{"shop": shop()}
	}
	w := &world{t: t, pool: mcptest.Pool(t, servers)}
	kept := runs.New(runs.Options{Dir: t.TempDir()})
	t.Cleanup(func() { kept.Close() })
	w.metrics = observe.NewMetrics(observe.Build{Version: "test", Revision: "r", Go: "go"}, observe.Probes{
		Servers: func() (list []observe.Server) {
			for _, s := range w.pool.Statuses() {
				list = append(list, observe.Server{Name: s.Server, State: s.Status, Up: s.Status == upstream.StatusReady})
			}
			return list
		},
		Workers: func() observe.Workers { return observe.Workers{InUse: 1, Warm: 2, Queued: 3, Max: 4} },
		Kept:    kept.Usage,
		Memory:  func() map[string]int64 { return map[string]int64{"results": 5} },
	})
	o.Metrics, o.Own = w.metrics, gateway.ToolNames()
	w.serve(gateway.Options{Upstream: w.pool, Kept: kept, Version: "test", Log: o.Calls, Watch: &o})
	return w
}

// serve serves a gateway until the test ends.
func (w *world) serve(o gateway.Options) {
	w.gateway = gateway.New(o)
	mux := http.NewServeMux()
	mux.Handle("/", w.gateway.Handler())
	mux.Handle("GET /metrics", w.metrics.Handler())
	server := httptest.NewServer(w.metrics.HTTP(mux))
	w.t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		w.gateway.Close(ended)
		server.Close()
	})
	w.url = server.URL
}

// withHeaders sends headers with every request.
type withHeaders map[string]string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a client of the gateway.
func (w *world) connect(headers withHeaders) *mcp.ClientSession {
	w.t.Helper()
	return w.connectAs("2026-07-28", headers)
}

// connectAs returns a client that speaks a version of the protocol.
func (w *world) connectAs(version string, headers withHeaders) *mcp.ClientSession {
	w.t.Helper()
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(w.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: headers}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { agent.Close() })
	return agent
}

// run runs a pipeline and returns the name of the request, and whether it failed.
func (w *world) run(agent *mcp.ClientSession, pipeline string, more ...any) (request string, failed bool) {
	w.t.Helper()
	args := map[string]any{"pipeline": json.RawMessage(pipeline)}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	result, err := agent.CallTool(w.t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: args})
	if err != nil {
		w.t.Fatal(err)
	}
	report, _ := result.Meta["mcsh/report"].(map[string]any)
	request, _ = report["request"].(string)
	return request, result.IsError
}

// scrape reads the metrics as Prometheus does: samples by name and labels, histograms by their count.
func (w *world) scrape() (samples map[string]float64, text string) {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text = recorder.Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	samples = map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			samples[name+labels(m)] = value(m)
		}
	}
	return samples, text
}

func labels(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.Label {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.Gauge.GetValue()
}
