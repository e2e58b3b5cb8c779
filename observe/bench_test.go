package observe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/stages"
)

// still answers at once.
type still struct{}

func (still) Tool(context.Context, string, string) (*stages.Tool, error) { return nil, nil }
func (still) CallTool(_ context.Context, c stages.Call) (stages.Result, error) {
	c.MaySend()
	return stages.Result{}, nil
}

// BenchmarkCall is what watching adds to a call of a tool; one takes 100 µs and more.
func BenchmarkCall(b *testing.B) {
	watch := &observe.Watch{Metrics: observe.NewMetrics(observe.Build{}, observe.Probes{})}
	for _, bb := range []struct {
		name  string
		tools stages.Tools
	}{{"plain", still{}}, {"watched", watch.Tools(still{})}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			ctx, call := b.Context(), stages.Call{Server: "shop", Name: "numbers", MaySend: func() bool { return true }}
			for b.Loop() {
				if _, err := bb.tools.CallTool(ctx, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHTTP is what counting adds to a request.
func BenchmarkHTTP(b *testing.B) {
	m := observe.NewMetrics(observe.Build{}, observe.Probes{})
	h := m.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
