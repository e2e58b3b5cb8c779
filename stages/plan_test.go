package stages_test

import (
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestPlanBounds: the plan says how many calls, items and seconds there are at most.
func TestPlanBounds(t *testing.T) {
	const get = `{"type":"tool","server":"demo","name":"get","timeout":5}`
	for _, tt := range []struct {
		name, stage  string
		calls, items int64
		concurrency  int
		time         time.Duration
		within       int64 // calls of the first stage within it
		budget       int
	}{
		{name: "a tool", stage: get, calls: 1, time: 5 * time.Second},
		{name: "a command", stage: `{"type":"command","command":"cat"}`, time: 30 * time.Second},
		{name: "for_each", stage: `{"type":"tool","server":"demo","name":"get","for_each":true,"concurrency":4}`, calls: 10, items: 10, concurrency: 4, time: 300 * time.Second},
		{name: "retries", stage: `{"type":"tool","server":"demo","name":"get","for_each":true,"retries":2}`, calls: 30, items: 10, concurrency: 8, time: 300 * time.Second},
		{name: "a block", stage: `{"type":"for_each","timeout":9,"stages":[` + get + `,` + get + `]}`, calls: 20, items: 10, concurrency: 8, time: 9 * time.Second, within: 10},
		{name: "nested", stage: `{"type":"for_each","stages":[{"type":"for_each","stages":[` + get + `]}]}`, calls: 100, items: 10, concurrency: 8, time: 300 * time.Second, within: 100},
		{name: "the limit of calls", stage: `{"type":"for_each","stages":[{"type":"for_each","stages":[` + get + `]}]}`, calls: 40, items: 10, concurrency: 8, time: 300 * time.Second, within: 40, budget: 40},
		{name: "branches", stage: `{"type":"parallel","branches":{"a":[` + get + `],"b":[` + get + `]}}`, calls: 2, within: 1},
		{name: "inputs run once", stage: `{"type":"for_each","stages":[{"type":"command","command":"append","args":["@u"],"inputs":{"u":[` + get[:len(get)-1] + `,"args":{"id":1}}]}}]}`, calls: 1, items: 10, concurrency: 4, time: 300 * time.Second, within: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newWorld().deps()
			d.Limits = stages.Limits{Items: 10, Calls: tt.budget}
			p, errs := stages.CompileFed(t.Context(), []byte("["+tt.stage+"]"), d)
			if errs != nil {
				t.Fatal(errs)
			}
			plan := p.Plan()
			got := plan.Stages[0].Most
			want := stages.Most{Calls: tt.calls, Items: tt.items, Concurrency: tt.concurrency, Time: tt.time, Seconds: tt.time.Seconds()}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if nested := plan.Stages[0].Stages; len(nested) > 0 && nested[0].Most.Calls != tt.within {
				t.Errorf("%d calls within, want %d", nested[0].Most.Calls, tt.within)
			}
			if plan.Most.Calls != tt.calls || plan.Most.Time != 300*time.Second {
				t.Errorf("the run: %+v", plan.Most)
			}
		})
	}
}
