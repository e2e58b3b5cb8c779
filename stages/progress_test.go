package stages_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// telling are tools that say how far each call is, if they are asked.
type telling struct {
	stages.Tools
	says []stages.ToolProgress
}

func (t telling) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	for _, said := range t.says {
		if c.Progress != nil {
			c.Progress(said)
		}
	}
	return t.Tools.CallTool(ctx, c)
}

// TestToolProgress: a tool's progress is passed on as it is, and within a for_each as one sum; a stage knows its own.
func TestToolProgress(t *testing.T) {
	says := []stages.ToolProgress{{Done: 1, Total: 2, Message: "half"}, {Done: 1, Total: 2}, {Done: 2, Total: 3, Message: "more"}}
	for plan, want := range map[string]stages.Progress{
		`[{"type":"tool","server":"demo","name":"numbers","args":{"n":3}}]`: {
			Place: "1", Tool: stages.ToolProgress{Done: 2, Total: 3, Message: "more"}, Calls: 1,
		},
		`[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"get","for_each":true,"distinct":false}]`: {
			Place: "2", Tool: stages.ToolProgress{Done: 8, Total: 12}, Each: true,
		},
	} {
		w := newWorld()
		deps := w.deps()
		deps.Tools = telling{deps.Tools, says}
		var mu sync.Mutex
		var last stages.Progress
		input := ""
		if want.Each {
			input = "1\n2\n3\n4\n"
		}
		_, report, err := w.runWith(t, plan, input, deps, stages.RunOptions{Progress: func(p stages.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Place != "" && p.Tool.Done >= last.Tool.Done {
				last = p
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if want.Each {
			last.Items, last.Calls = 0, 0 // as many as there were at that moment
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Errorf("%s: -want +got:\n%s", plan, diff)
		}
		if diff := cmp.Diff(want.Tool, report.Stages[len(report.Stages)-1].Tool); diff != "" {
			t.Errorf("%s: the report: -want +got:\n%s", plan, diff)
		}
	}
}

// TestBusy: the report shows which stage was slow, while the run goes on too; waiting for another one does not count.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p, errs := stages.Compile(t.Context(), []byte(`[
			{"type":"tool","server":"demo","name":"slow","args":{"ms":300}},
			{"type":"tool","server":"demo","name":"slow"},
			{"type":"tool","server":"demo","name":"slow","args":{"ms":5000}}]`), w.deps())
		if errs != nil {
			t.Fatal(errs)
		}
		busy := func(list []stages.StageReport) (ms []float64) {
			for _, s := range list {
				ms = append(ms, s.Busy)
			}
			return ms
		}
		look := func(now func() []stages.StageReport) {
			time.Sleep(1600 * time.Millisecond)
			if diff := cmp.Diff([]float64{300, 300, 1000}, busy(now())); diff != "" {
				t.Errorf("while it runs: -want +got:\n%s", diff)
			}
		}
		report, err := p.Run(t.Context(), nil, &bytes.Buffer{}, stages.RunOptions{Begun: func(now func() []stages.StageReport) { go look(now) }})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]float64{300, 300, 5000}, busy(report.Stages)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if report.Stages[0].Millis < 300 || report.Stages[2].Millis < 5000 {
			t.Errorf("got %+v", report.Stages)
		}
	})
}
