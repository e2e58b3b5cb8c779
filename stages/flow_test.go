package stages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// texts are the results of tools that write numbers, one a line.
func texts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\"%d\"\n", i)
	}
	return b.String()
}

func compiled(t *testing.T, d stages.Deps, pipeline string) *stages.Pipeline {
	t.Helper()
	p, errs := stages.CompileFed(t.Context(), []byte(pipeline), d)
	if errs != nil {
		t.Fatalf("compiling: %v", errs)
	}
	return p
}

// TestEachKeepsOrderAndConcurrency: results come in the order of the items whatever finishes first, and as many calls
// run side by side as were asked for.
func TestEachKeepsOrderAndConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		slow := w.add("jitter", reads, "i", func(_ context.Context, args map[string]any) (string, error) {
			i, _ := strconv.Atoi(fmt.Sprint(args["i"]))
			time.Sleep(time.Duration(1+i*7%20) * time.Millisecond)
			return fmt.Sprint(i), nil
		})
		start := time.Now()
		out, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"jitter","for_each":true,"concurrency":32,"collect":"lines"}]`, lines(1000))
		if err != nil {
			t.Fatal(err)
		}
		if want := texts(1000); out != want {
			t.Errorf("results are out of order: got %.60q", out)
		}
		if got := slow.peak.Load(); got != 32 {
			t.Errorf("peak concurrency %d, want 32", got)
		}
		// 1,000 calls of 10.5 ms on average, 32 at a time, take 328 ms at best; nothing else takes time here.
		if got := time.Since(start); got > 400*time.Millisecond {
			t.Errorf("took %s of fake time, want at most 400ms", got)
		}
	})
}

// TestEachStopsAtFailure: one item at a time, no item takes the place of the one that failed.
func TestEachStopsAtFailure(t *testing.T) {
	for range 500 {
		w := newWorld()
		_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"get","for_each":true,"concurrency":1}]`, "12\n13\n14\n15\n")
		if err == nil {
			t.Fatal("item 13 did not fail")
		}
		if got := w.tools["get"].calls.Load(); got != 2 {
			t.Fatalf("%d calls were made, want 2", got)
		}
	}
}

// TestEachUniform: with calls that all take the same time the pace is ideal.
func TestEachUniform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add("ms20", reads, "i", func(_ context.Context, args map[string]any) (string, error) {
			time.Sleep(20 * time.Millisecond)
			return fmt.Sprint(args["i"]), nil
		})
		start := time.Now()
		if _, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"ms20","for_each":true,"concurrency":32}]`, lines(1000)); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 32*20*time.Millisecond; got != want { // ceil(1000/32) = 32 rounds
			t.Errorf("took %s of fake time, want %s", got, want)
		}
	})
}

// TestEachExponential: with calls that take very different times, in the order of the items and as many at once as asked,
// the pace is that of places which are taken again as soon as they are free.
func TestEachExponential(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	latency := make([]time.Duration, 1000)
	for i := range latency {
		latency[i] = time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
	}
	for _, concurrency := range []int{1, 8, 32, 64} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.add("slow", reads, "i", func(_ context.Context, args map[string]any) (string, error) {
				i, _ := strconv.Atoi(fmt.Sprint(args["i"]))
				time.Sleep(latency[i])
				return fmt.Sprint(i), nil
			})
			places := make([]time.Duration, concurrency)
			for _, d := range latency {
				slices.Sort(places)
				places[0] += d
			}
			start := time.Now()
			out, _, err := w.run(t, fmt.Sprintf(`[{"type":"tool","server":"demo","name":"slow","for_each":true,"concurrency":%d,"collect":"lines"}]`, concurrency), lines(len(latency)))
			if got, want := time.Since(start), slices.Max(places); err != nil || out != texts(len(latency)) || got != want {
				t.Errorf("%d at once took %s of fake time, want %s; %v", concurrency, got, want, err)
			}
		})
	}
}

func TestDefaultConcurrency(t *testing.T) {
	for _, tt := range []struct {
		name string
		info stages.Tool
		want int64
	}{
		{"reads", stages.Tool{Annotated: true, ReadOnly: true}, 8},
		{"idempotent", stages.Tool{Annotated: true, Idempotent: true}, 8},
		{"get_annotated_as_writing", stages.Tool{Annotated: true}, 1},
		{"get_things", stages.Tool{}, 8},
		{"listFiles", stages.Tool{}, 8},
		{"getter", stages.Tool{}, 1},
		{"create", stages.Tool{}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			tool := w.add(tt.name, reads, "i", func(context.Context, map[string]any) (string, error) {
				time.Sleep(time.Millisecond)
				return "", nil
			})
			tool.info.Annotated, tool.info.ReadOnly, tool.info.Idempotent = tt.info.Annotated, tt.info.ReadOnly, tt.info.Idempotent
			if _, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"`+tt.name+`","for_each":true}]`, lines(40)); err != nil {
				t.Fatal(err)
			}
			if got := tool.peak.Load(); got != tt.want {
				t.Errorf("%s: peak %d, want %d", tt.name, got, tt.want)
			}
		})
	}
}

// ms20 takes 20 ms and gives i.
func ms20(ctx context.Context, args map[string]any) (string, error) {
	select {
	case <-time.After(20 * time.Millisecond):
		return fmt.Sprint(args["i"]), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// TestHeadStopsCalls: behind a for_each over 10,000 items, head makes at most 2 × concurrency + 8 calls happen.
func TestHeadStopsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		tool := w.add("ms20", reads, "i", ms20)
		out, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"ms20","for_each":true,"concurrency":16,"collect":"lines"},
			{"type":"command","command":"head","args":["3"]}]`, lines(10_000))
		if err != nil || out != texts(3) {
			t.Fatalf("got %q, %v", out, err)
		}
		if got := tool.calls.Load(); got > 2*16+8 {
			t.Errorf("%d calls, want at most %d", got, 2*16+8)
		}
		if tool.active.Load() != 0 {
			t.Error("calls were left running")
		}
	})
}

// TestReaderHoldsBackItems: no new item starts while a finished result waits for the reader.
func TestReaderHoldsBackItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		tool := w.add("fast", reads, "i", func(context.Context, map[string]any) (string, error) {
			time.Sleep(time.Millisecond)
			return "x", nil
		})
		p := compiled(t, w.deps(), `[{"type":"tool","server":"demo","name":"fast","for_each":true,"concurrency":4}]`)
		pr, pw := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := p.Run(t.Context(), strings.NewReader(lines(1000)), pw, stages.RunOptions{})
			done <- err
		}()
		synctest.Wait() // everything waits for a reader
		if got := tool.calls.Load(); got > 2*4 {
			t.Errorf("%d calls before anything was read, want at most %d", got, 2*4)
		}
		if _, err := io.Copy(io.Discard, io.LimitReader(pr, 100)); err != nil {
			t.Fatal(err)
		}
		pr.Close()
		if err := <-done; err != nil {
			t.Errorf("an output that nobody reads to its end is a success, got %v", err)
		}
	})
}

// TestEffectsFinish: early stop starts no further call of a tool with effects and cancels none that is in flight.
func TestEffectsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var cancelled, finished atomic.Int64
		tool := w.add("update", writes, "i", func(ctx context.Context, args map[string]any) (string, error) {
			select {
			case <-time.After(time.Second):
				finished.Add(1)
				return fmt.Sprint(args["i"]), nil
			case <-ctx.Done():
				cancelled.Add(1)
				return "", ctx.Err()
			}
		})
		out, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"update","for_each":true,"concurrency":4,"collect":"lines"},
			{"type":"command","command":"head","args":["1"]}]`, lines(100))
		if err != nil || out != texts(1) {
			t.Fatalf("got %q, %v", out, err)
		}
		if cancelled.Load() != 0 || finished.Load() != tool.calls.Load() {
			t.Errorf("%d calls: %d finished, %d cancelled; want all finished", tool.calls.Load(), finished.Load(), cancelled.Load())
		}
		if got := report.Stages[0].Calls; got != tool.calls.Load() || got > 12 {
			t.Errorf("report counts %d calls, %d were made", got, tool.calls.Load())
		}
	})
}

// TestEffectsFinishOnFailure: when one item fails, those with effects that have begun finish, no more begin.
func TestEffectsFinishOnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var finished atomic.Int64
		tool := w.add("update", writes, "i", func(ctx context.Context, args map[string]any) (string, error) {
			if fmt.Sprint(args["i"]) == "1" {
				return "", errors.New("cannot")
			}
			select {
			case <-time.After(time.Second):
				finished.Add(1)
				return "", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"update","for_each":true,"concurrency":4}]`, lines(100))
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.ToolError || e.Item != 2 {
			t.Fatalf("got %v, want the tool's error at item 2", err)
		}
		if got, want := finished.Load(), tool.calls.Load()-1; got != want || tool.calls.Load() > 5 {
			t.Errorf("%d of %d calls finished", got, tool.calls.Load())
		}
	})
}

// TestCancelReachesEffects: only the run's own caller ends a call with effects.
func TestCancelReachesEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add("update", writes, "i", func(ctx context.Context, _ map[string]any) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		p := compiled(t, w.deps(), `[{"type":"tool","server":"demo","name":"update"}]`)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := p.Run(ctx, strings.NewReader("1"), io.Discard, stages.RunOptions{})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Cancelled {
			t.Errorf("got %v, want CANCELLED", err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("ended after %s", got)
		}
	})
}

func TestTimeouts(t *testing.T) {
	for _, tt := range []struct{ name, pipeline, want, hint string }{
		{
			"call", `[{"type":"tool","server":"demo","name":"slow","args":{"ms":90000}}]`,
			"the tool did not answer within 1m0s (limit call)", "ask the tool for less, or ask the operator for more time: --limit call=2m",
		},
		{
			"stage", `[{"type":"tool","server":"demo","name":"slow","args":{"ms":90000},"timeout":2.5}]`,
			"the tool did not answer within 2.5s (the stage's \"timeout\")", `ask the tool for less, or raise the stage's "timeout", at most to 60 (limit call)`,
		},
		{
			"effects", `[{"type":"tool","server":"demo","name":"change","args":{"x":1},"timeout":2.5}]`,
			"the tool did not answer within 2.5s (the stage's \"timeout\"); it was sent and may have taken effect",
			`find out what was changed (with a tool that reads) before another call, or raise the stage's "timeout", at most to 60 (limit call)`,
		},
		{
			"for_each", `[{"type":"for_each","timeout":3,"stages":[{"type":"tool","server":"demo","name":"slow","args":{"ms":2000}}],"concurrency":1}]`,
			"the items of for_each took longer than 3s together (the stage's \"timeout\"); 1 of them had succeeded, 0 had failed, 1 were cut off",
			`pass fewer items, raise concurrency, or raise the stage's "timeout", at most to 300 (limit run)`,
		},
		{
			"run", `[{"type":"for_each","concurrency":1,"stages":[{"type":"tool","server":"demo","name":"slow","args":{"ms":50000}}]},{"type":"command","command":"cat"}]`,
			"the run took longer than 2m (the argument \"timeout\"); stage 1 (for_each), stage 2 (command cat) had not ended; tool calls made: 3",
			`narrow the data before the slow stage, or raise the argument "timeout", at most to 300 (limit run)`,
		},
		{
			"limit run", `[{"type":"for_each","concurrency":1,"stages":[{"type":"tool","server":"demo","name":"slow","args":{"ms":50000}}]}]`,
			"the run took longer than 2m (limit run); stage 1 (for_each) had not ended; tool calls made: 3",
			"narrow the data before the slow stage, or ask the operator for more time: --limit run=4m",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				input := `{"i":0}{"i":1}{"i":2}{"i":3}{"i":4}`
				if !strings.Contains(tt.pipeline, "for_each") {
					input = "{}"
				}
				w.add("change", writes, "x", func(ctx context.Context, _ map[string]any) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				d := w.deps()
				if tt.name == "limit run" {
					d.Limits.Run = 2 * time.Minute
				}
				_, _, err := w.runWith(t, tt.pipeline, input, d, stages.RunOptions{Timeout: 2 * time.Minute})
				var e *stages.Error
				if !errors.As(err, &e) || e.Code != stages.Timeout || e.Msg != tt.want || e.Hint != tt.hint {
					t.Errorf("got %v\nwant TIMEOUT: %s\nhint %q\nwant %q", err, tt.want, e.Hint, tt.hint)
				}
			})
		})
	}
}

// TestFailureWhileWaiting: a failure ends the run even while the stage before has nothing to say for a long time.
func TestFailureWhileWaiting(t *testing.T) {
	for _, pipeline := range []string{
		`[{"type":"tool","server":"demo","name":"get","for_each":true}]`,
		`[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"get","for_each":true}]`,
		`[{"type":"parallel","branches":{"a":[{"type":"tool","server":"demo","name":"get","for_each":true}],"b":[{"type":"command","command":"cat"}]}}]`,
		`[{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"get"}]},{"type":"command","command":"cat"}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			p := compiled(t, w.deps(), pipeline)
			pr, pw := io.Pipe()
			go pw.Write([]byte("13\n")) // one item that fails, then silence
			_, err := p.Run(t.Context(), pr, io.Discard, stages.RunOptions{})
			var e *stages.Error
			if !errors.As(err, &e) || e.Code != stages.ToolError {
				t.Errorf("%s: got %v", pipeline, err)
			}
			pw.Close()
		})
	}
}

// TestStopWhileWaiting: so does a reader that has enough.
func TestStopWhileWaiting(t *testing.T) {
	for _, pipeline := range []string{
		`[{"type":"command","command":"cat"},{"type":"command","command":"head","args":["1"]}]`,
		`[{"type":"tool","server":"demo","name":"get","for_each":true,"collect":"lines"},{"type":"command","command":"head","args":["1"]}]`,
		`[{"type":"preview"},{"type":"command","command":"head","args":["1"]}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			p := compiled(t, w.deps(), pipeline)
			pr, pw := io.Pipe()
			go pw.Write([]byte("1\n"))
			var out bytes.Buffer
			if _, err := p.Run(t.Context(), pr, &out, stages.RunOptions{}); err != nil || out.Len() == 0 {
				t.Errorf("%s: got %q, %v", pipeline, out.String(), err)
			}
			pw.Close()
		})
	}
}

func TestLimits(t *testing.T) {
	each := `[{"type":"tool","server":"demo","name":"get","for_each":true}]`
	big := strings.Repeat("x", 1000)
	for _, tt := range []struct {
		name, pipeline, input, want string
		limits                      stages.Limits
	}{
		{"items", each, lines(11), "more than 10 items", stages.Limits{Items: 10}},
		{"calls", each, lines(11), "more than 10 tool calls", stages.Limits{Calls: 10}},
		{"item", each, `["` + big + `"]`, "longer than 100 bytes", stages.Limits{Item: 100}},
		{"item, tolerated", strings.Replace(each, `"for_each":true`, `"for_each":true,"on_error":"collect"`, 1), `["` + big + `"]`, "longer than 100 bytes", stages.Limits{Item: 100}},
		{"item of lines", each, big, "longer than 100 bytes", stages.Limits{Item: 100}},
		{"input", `[{"type":"tool","server":"demo","name":"say"}]`, big, "more than 100 bytes in one call", stages.Limits{Input: 100}},
		{"held", `[{"type":"tool","server":"demo","name":"say","for_each":true}]`, big, "more than 500 bytes in memory", stages.Limits{Held: 500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			d := w.deps()
			d.Limits = tt.limits
			_, _, err := w.runWith(t, tt.pipeline, tt.input, d, stages.RunOptions{})
			var e *stages.Error
			if !errors.As(err, &e) || e.Code != stages.LimitExceeded || !strings.Contains(e.Msg, tt.want) || e.Hint == "" {
				t.Errorf("got %v (hint %q), want LIMIT_EXCEEDED: …%s…", err, e.Hint, tt.want)
			}
		})
	}
}

// TestSpoolGoesToDisk: input that waits for its effects is spooled beyond memory, and comes back whole.
func TestSpoolGoesToDisk(t *testing.T) {
	w := newWorld()
	d := w.deps()
	d.Limits = stages.Limits{SpoolHead: 1000, SpoolDir: t.TempDir()}
	out, _, err := w.runWith(t, `[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":8,"collect":"lines"}]`, lines(1000), d, stages.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out, "\n"); got != 1000 {
		t.Errorf("%d results, want 1000", got)
	}
}

// TestPanic: a stage that panics fails its run and nothing else.
func TestPanic(t *testing.T) {
	w := newWorld()
	w.add("boom", reads, "i", func(context.Context, map[string]any) (string, error) { panic("boom") })
	for _, pipeline := range []string{
		`[{"type":"tool","server":"demo","name":"boom"},{"type":"command","command":"cat"}]`,
		`[{"type":"tool","server":"demo","name":"boom","for_each":true}]`,
		`[{"type":"parallel","branches":{"a":[{"type":"tool","server":"demo","name":"boom"}]}}]`,
	} {
		_, _, err := w.run(t, pipeline, "1")
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Internal || !strings.Contains(e.Msg, "boom") {
			t.Errorf("%s: got %v, want INTERNAL", pipeline, err)
		}
	}
}

// TestReport: the report counts what each stage did.
func TestReport(t *testing.T) {
	w := newWorld()
	_, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"get","for_each":true},
		{"type":"command","command":"upper"},
		{"type":"for_each","stages":[{"type":"command","command":"cat"}]}]`, `[{"id":1,"x":1},{"id":2,"y":2}]`)
	if err != nil {
		t.Fatal(err)
	}
	first := report.Stages[0]
	if first.Items != 2 || first.Calls != 2 || first.BytesIn != 31 || first.BytesOut != 45 || fmt.Sprint(first.LeftOut) != "[x y]" {
		t.Errorf("tool: %+v", first)
	}
	if got := report.Stages[1]; got.BytesIn != 45 {
		t.Errorf("command: %+v", got)
	}
	if got := report.Stages[2]; got.Items != 2 || len(got.Stages) != 1 || got.Stages[0].Place != "3.1" {
		t.Errorf("for_each: %+v", got)
	}
}

// TestErrorsAreNotShared: an error that a tool hands out again and again is placed anew each time.
func TestErrorsAreNotShared(t *testing.T) {
	w := newWorld()
	shared := stages.Errorf(stages.ServerUnavailable, "", "down")
	w.add("down", reads, "i", func(context.Context, map[string]any) (string, error) { return "", shared })
	for i, pipeline := range []string{
		`[{"type":"tool","server":"demo","name":"down","for_each":true}]`,
		`[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"down","for_each":true}]`,
	} {
		_, _, err := w.run(t, pipeline, lines(100))
		var e *stages.Error
		if !errors.As(err, &e) || string(e.Place) != strconv.Itoa(i+1) {
			t.Errorf("got place %q in %v, want %d", e.Place, err, i+1)
		}
	}
	if shared.Place != "" {
		t.Errorf("the tool's own error was changed: %+v", shared)
	}
}

// TestManyFields: an object with very many fields costs time in proportion, and the report names some of them.
func TestManyFields(t *testing.T) {
	w := newWorld()
	var b strings.Builder
	b.WriteString(`{"id":1`)
	for i := range parttest.Times(20_000, 500_000) {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	b.WriteString("}")
	_, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"get"}]`, b.String())
	if err != nil || len(report.Stages[0].LeftOut) != 50 {
		t.Errorf("got %d fields, %v", len(report.Stages[0].LeftOut), err)
	}
	if _, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"echo","args":{"value":0}}]`, b.String()); err != nil {
		t.Error(err)
	}
}

// TestTimeoutBeforeEffects: the time of a for_each with effects also bounds the waiting for its items.
func TestTimeoutBeforeEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := compiled(t, w.deps(), `[{"type":"for_each","timeout":3,"stages":[{"type":"tool","server":"demo","name":"write"}]}]`)
		pr, pw := io.Pipe()
		go pw.Write([]byte("1\n")) // one item, then silence
		start := time.Now()
		_, err := p.Run(t.Context(), pr, io.Discard, stages.RunOptions{})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Timeout || time.Since(start) != 3*time.Second || len(w.callsOf("write")) != 0 {
			t.Errorf("after %s got %v and %d calls, want TIMEOUT after 3s and none", time.Since(start), err, len(w.callsOf("write")))
		}
		pw.Close()
	})
}
