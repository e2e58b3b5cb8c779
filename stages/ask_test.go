package stages_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// asking are tools that ask their caller in the middle of each call.
type asking struct {
	*world
	mu    sync.Mutex
	last  stages.Call
	asked []string
}

// CallTool implements [stages.Tools].
func (a *asking) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	a.mu.Lock()
	a.last = c
	a.mu.Unlock()
	if !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	if c.Asker == nil {
		return stages.Result{Data: []byte("nobody to ask")}, nil
	}
	answer, err := c.Asker.Ask(ctx, stages.Question{Server: c.Server, Tool: c.Name, Item: c.Item, Method: "elicitation/create"})
	a.mu.Lock()
	a.asked = append(a.asked, c.Item)
	a.mu.Unlock()
	if err != nil {
		return stages.Result{}, err
	}
	return stages.Result{Data: answer, Kind: stages.Values}, nil
}

// TestAskedClocks: the timeouts of a run and of its for_each are paused while a question is open, and only then.
func TestAskedClocks(t *testing.T) {
	tests := map[string]struct {
		pipeline string
		answer   time.Duration // after
		want     string        // the output, or the code of the error
	}{
		"of the run":           {`[{"type":"tool","server":"demo","name":"ask"}]`, time.Hour, `{"ok":1}`},
		"of a for_each":        {`[{"type":"for_each","timeout":5,"stages":[{"type":"tool","server":"demo","name":"ask"}]}]`, time.Hour, `[{"ok":1}]` + "\n"},
		"several rounds":       {`[{"type":"tool","server":"demo","name":"ask"},{"type":"tool","server":"demo","name":"ask"}]`, time.Hour, `{"ok":1}`},
		"the time of the work": {`[{"type":"tool","server":"demo","name":"ask"},{"type":"tool","server":"demo","name":"work"}]`, time.Hour, "TIMEOUT"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.add("ask", writes, "ok", nil)
				w.add("work", writes, "ok", func(ctx context.Context, _ map[string]any) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				d := w.deps()
				d.Tools = &splitTools{ask: &asking{world: w}, world: w}
				asker := &stages.Asker{Form: true, Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
					select {
					case <-time.After(test.answer):
						return json.RawMessage(`{"ok":1}`), nil
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}}
				in := `{"ok":1}`
				out, _, err := w.runWith(t, test.pipeline, in, d, stages.RunOptions{Timeout: 10 * time.Second, Asker: asker})
				var e *stages.Error
				if errors.As(err, &e) {
					out = string(e.Code)
				}
				if out != test.want {
					t.Errorf("got %q, %v; want %q", out, err, test.want)
				}
			})
		})
	}
}

// splitTools have one tool that asks.
type splitTools struct {
	*world
	ask *asking
}

// CallTool implements [stages.Tools].
func (s *splitTools) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if c.Name == "ask" {
		return s.ask.CallTool(ctx, c)
	}
	return s.world.CallTool(ctx, c)
}

// TestAskedItems: a question names the item that its call is for.
func TestAskedItems(t *testing.T) {
	w := newWorld()
	w.add("ask", writes, "ok", nil)
	d := w.deps()
	tools := &asking{world: w}
	d.Tools = tools
	answer := func(context.Context, stages.Question) (json.RawMessage, error) {
		return json.RawMessage(`{"ok":1}`), nil
	}
	run := func(pipeline, in string) {
		t.Helper()
		if _, _, err := w.runWith(t, pipeline, in, d, stages.RunOptions{Asker: &stages.Asker{Ask: answer}}); err != nil {
			t.Fatal(err)
		}
	}
	run(`[{"type":"tool","server":"demo","name":"ask"}]`, `{"ok":1}`)
	run(`[{"type":"tool","server":"demo","name":"ask","for_each":true}]`, `[{"ok":2},{"ok":3}]`)
	run(`[{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"ask","for_each":true}]}]`, `[[{"ok":7}]]`)
	run(`[{"type":"tool","server":"demo","name":"ask","for_each":true}]`, `["`+strings.Repeat("x", 10_000)+`"]`)
	long := slices.IndexFunc(tools.asked, func(name string) bool { return len(name) > 200 })
	want := []string{"", `item 1: {"ok":2}`, `item 2: {"ok":3}`, `item 1: {"ok":7}, within item 1: [{"ok":7}]`}
	if len(tools.asked) != 5 || long >= 0 || cmp.Diff(want, tools.asked[:4]) != "" {
		t.Errorf("got %q", tools.asked)
	}
}

// TestAskedLate: a question whose call has ended is not put to anybody, and one that is open then ends.
func TestAskedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add("ask", writes, "ok", nil)
		d := w.deps()
		opened, ended := make(chan bool, 1), make(chan error, 1)
		tools := &leaving{asking: asking{world: w}, opened: opened, ended: ended}
		d.Tools = tools
		asked := 0
		asker := &stages.Asker{Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
			asked++
			opened <- true
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"ask"}]`, `{"ok":1}`, d, stages.RunOptions{Timeout: time.Second, Asker: asker})
		if open := <-ended; err != nil || open == nil || !strings.Contains(open.Error(), "the call has ended") {
			t.Errorf("the run came to %v, its question to %v", err, open)
		}
		if _, late := tools.last.Asker.Ask(t.Context(), stages.Question{}); late == nil || asked != 1 {
			t.Errorf("got %v, %d questions", late, asked)
		}
	})
}

// leaving are tools whose calls end before their questions.
type leaving struct {
	asking
	opened chan bool
	ended  chan error
}

// CallTool implements [stages.Tools].
func (l *leaving) CallTool(_ context.Context, c stages.Call) (stages.Result, error) {
	l.last = c
	go func() {
		_, err := c.Asker.Ask(context.Background(), stages.Question{})
		l.ended <- err
	}()
	<-l.opened
	return stages.Result{Data: []byte("done")}, nil
}

// TestPause: clocks that are paused without a question go on when they are asked to, or when the patience is over.
func TestPause(t *testing.T) {
	tests := map[string]struct{ stays, want time.Duration }{
		"goes on":    {30 * time.Second, 31 * time.Second},
		"is bounded": {time.Hour, 61 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.add("page", writes, "ok", nil)
				d := w.deps()
				d.Tools = signing{w, test.stays}
				begun := time.Now()
				_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"page"}]`, `{"ok":1}`, d,
					stages.RunOptions{Timeout: time.Second, Asker: &stages.Asker{Patience: time.Minute}})
				var e *stages.Error
				if took := time.Since(begun); !errors.As(err, &e) || e.Code != stages.Timeout || took != test.want {
					t.Errorf("after %v: %v, want a timeout after %v", took, err, test.want)
				}
			})
		})
	}
}

// signing are tools that pause clocks, and then take all time.
type signing struct {
	*world
	stays time.Duration
}

// CallTool implements [stages.Tools].
func (s signing) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	defer time.AfterFunc(s.stays, c.Asker.Pause()).Stop()
	<-ctx.Done()
	return stages.Result{}, ctx.Err()
}
