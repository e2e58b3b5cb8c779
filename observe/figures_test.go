package observe_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/observe"
)

// TestFigures: calls, errors and times by server.
func TestFigures(t *testing.T) {
	m := observe.NewMetrics(observe.Build{}, observe.Probes{})
	w := &observe.Watch{Metrics: m}
	for range 90 {
		w.Asked("prompts/get", "fast", 3*time.Millisecond, 1, nil)
	}
	for range 10 {
		w.Asked("prompts/get", "fast", 700*time.Millisecond, 1, errors.New("broken"))
	}
	w.Asked("prompts/get", "slow", time.Hour, 1, nil)
	all := m.Figures()
	fast, slow := all[m.Label("fast")], all[m.Label("slow")]
	if fast.Calls != 100 || fast.Errors != 10 {
		t.Errorf("%d calls with %d errors, want 100 with 10", fast.Calls, fast.Errors)
	}
	if fast.P50 < time.Millisecond || fast.P50 > 5*time.Millisecond || fast.P95 < 500*time.Millisecond || fast.P95 > time.Second {
		t.Errorf("half ended within %v and most within %v, want within the buckets of 3 ms and 700 ms", fast.P50, fast.P95)
	}
	if slow.P50 != time.Minute { // the last bucket
		t.Errorf("calls beyond the last bucket took %v, want its bound", slow.P50)
	}
	if none, known := all["other"]; known {
		t.Errorf("there are figures of no server: %v", none)
	}
}
