package stages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// onceEach is a tool that changes something and may be called once for each item. Its test fails at another call.
type onceEach struct {
	sync.Mutex
	called map[string]bool
	before func(x string) error // is asked first
}

func (o *onceEach) add(t *testing.T, k *kept) {
	o.called = map[string]bool{}
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		x := fmt.Sprint(args["x"])
		if err := o.before(x); err != nil {
			return "", err
		}
		o.Lock()
		defer o.Unlock()
		if o.called[x] {
			t.Errorf("item %s was called again", x)
		}
		o.called[x] = true
		return x, nil
	})
}

const hundred = `{"type":"tool","server":"demo","name":"numbers","args":{"n":100}}`

// TestSpreadAgain: a run that fails at an item is continued, or another pipeline begins behind it, in another way than before. No call is
// repeated, whether or not its items ran at a worker.
func TestSpreadAgain(t *testing.T) {
	again := func(option string) func(run string) string {
		return func(run string) string { return "[" + stages.ResumeStage(run, `"on_error": "skip"`+option) + "]" }
	}
	behind := func(run string) string {
		return from(run, 1, `{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16,"on_error":"skip"}`)
	}
	for name, c := range map[string]struct {
		concurrency int
		first       func(*stages.Spread) // changes it for the first run
		more        func(run string) string
		lines       int // of the second run
		denied      bool
	}{
		"more at once":           {8, nil, again(`, "concurrency": 16`), 99, false},
		"no workers before":      {16, func(s *stages.Spread) { *s = stages.Spread{} }, again(""), 99, false},
		"workers come sooner":    {16, func(s *stages.Spread) { s.From = 200 }, again(""), 99, false},
		"workers come later":     {16, func(s *stages.Spread) { s.From = 2 }, again(""), 99, false},
		"behind from":            {16, nil, behind, 0, false},
		"behind from, not there": {8, nil, behind, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := newSpread(t, storetest.Directory(t))
			last := k.deps.Spread
			if c.first != nil {
				c.first(&k.deps.Spread)
			}
			o := onceEach{before: func(x string) error {
				if x == "90" {
					return errors.New("it is refused")
				}
				return nil
			}}
			o.add(t, k)
			_, _, err := k.run(t, fmt.Sprintf(`[%s,{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":%d}]`, hundred, c.concurrency))
			run := stages.AsError(err).Run
			before := len(o.called)
			k.deps.Spread = last
			out, _, err := k.run(t, c.more(run))
			want := c.lines
			if want == 0 { // those that were not called before
				want = 99 - before
			}
			if lines := strings.Count(out, "\n"); err != nil || lines != want && want > 0 {
				t.Errorf("%v, %d lines, want %d", err, lines, want)
			}
		})
	}
}

// TestSubmitBehindFrom: a run that is submitted and begins with another one repeats none of its calls.
func TestSubmitBehindFrom(t *testing.T) {
	k := newKept(t, runs.Options{Shared: storetest.Directory(t)})
	o := onceEach{before: func(string) error { return nil }}
	o.add(t, k)
	_, run := k.must(t, `[`+hundred+`,{"type":"tool","server":"demo","name":"post","for_each":true}]`)
	p, errs := k.compile(t, from(run, 1, `{"type":"tool","server":"demo","name":"post","for_each":true,"on_error":"collect"}`))
	if errs != nil {
		t.Fatal(errs)
	}
	id, err := p.Submit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := k.must(t, "["+stages.ResumeStage(id)+"]"); strings.Count(out, "with the same arguments") != 100 {
		t.Errorf("got %s", out)
	}
}

// lossy may keep no list of shards.
type lossy struct {
	stages.Runs
	loses bool
}

// Create implements [stages.Runs].
func (l lossy) Create(id, name string, growing bool) (io.Writer, func(string)) {
	if l.loses && strings.HasSuffix(name, " shards") {
		return io.Discard, func(string) {}
	}
	return l.Runs.Create(id, name, growing)
}

// TestSpreadChanged: where the items have moved, or the list of shards was cut, the calls of workers are not known. Nothing is called.
func TestSpreadChanged(t *testing.T) {
	for name, c := range map[string]struct {
		moved, items int
		keeps        int64 // bytes of an output
		loses        bool  // the list of shards
	}{"moved": {10, 100, 6000, false}, "few are left": {40, 3, 6000, false}, "cut": {0, 100, 400, false}, "lost": {0, 100, 6000, true}} {
		t.Run(name, func(t *testing.T) {
			k, _ := newSpread(t, storetest.Directory(t))
			small := newKept(t, runs.Options{Shared: storetest.Directory(t), Output: c.keeps})
			k.deps.Runs = lossy{small.deps.Runs, c.loses}
			k.deps.Spread.Workers.(*workers).deps.Runs = small.deps.Runs
			o := onceEach{before: func(x string) error {
				if strings.HasPrefix(x, "0090") {
					return errors.New("it is refused")
				}
				return nil
			}}
			o.add(t, k)
			moved, items := 0, 100
			k.add("list", reads, "n", func(context.Context, map[string]any) (string, error) {
				var b strings.Builder
				for i := range items {
					fmt.Fprintf(&b, "%04d%s\n", (i+moved)%100+1, strings.Repeat("x", 60))
				}
				return b.String(), nil
			})
			_, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"list","args":{"n":1}},{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16}]`)
			before := len(o.called)
			moved, items = c.moved, c.items
			_, _, err = k.run(t, "["+stages.ResumeStage(stages.AsError(err).Run, `"on_error":"skip"`)+"]")
			if e := stages.AsError(err); err == nil || e.Code != stages.Denied || len(o.called) != before {
				t.Errorf("got %v, %d calls", err, len(o.called)-before)
			}
		})
	}
}

// TestSpreadLeaves: a shard that is continued runs all items that it had begun, however early it may end.
func TestSpreadLeaves(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	k.deps.Spread = stages.Spread{Workers: w, From: 5, Concurrency: 64, Items: 20, Output: 1}
	all, fails := make(chan struct{}), atomic.Bool{}
	fails.Store(true)
	var begun atomic.Int64
	o := onceEach{before: func(x string) error {
		if n := begun.Add(1); n == 13 {
			close(all)
		}
		if (x == "6" || x == "9") && fails.Load() {
			<-all // the results behind them wait, so that eight items run
			if x == "9" {
				return errors.New("it is refused")
			}
		}
		return nil
	}}
	o.add(t, k)
	_, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":40}},{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16}]`)
	fails.Store(false)
	out, _, err := k.run(t, "["+stages.ResumeStage(stages.AsError(err).Run)+"]")
	if lines := strings.Count(out, "\n"); err != nil || lines != 40 {
		t.Errorf("%v, %d lines", err, lines)
	}
}

// TestSpreadDistinct: calls that may change something and are to be made once are made once.
func TestSpreadDistinct(t *testing.T) {
	k, _ := newSpread(t, storetest.Directory(t))
	o := onceEach{before: func(string) error { return nil }}
	o.add(t, k)
	k.must(t, `[{"type":"tool","server":"demo","name":"say","args":{"text":"`+strings.Repeat(`a\n`, 100)+`"}},
		{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16,"distinct":true}]`)
}

// TestSpreadPanic: a fault of this program at a shard ends the run, and not the process.
func TestSpreadPanic(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	w.fail = func(int64) error { panic("a bug") }
	_, _, err := k.run(t, `[`+hundred+`,{"type":"tool","server":"demo","name":"echo","for_each":true}]`)
	if e := stages.AsError(err); err == nil || e.Code != stages.Internal {
		t.Errorf("got %v", err)
	}
}

// TestSpreadReport: the report of a continued run counts the calls that it makes, and not those of shards that had ended before.
func TestSpreadReport(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	w.fail = func(n int64) error {
		if n == 10 {
			return stages.Errorf(stages.ServerUnavailable, "", "the workers are gone")
		}
		return nil
	}
	_, _, err := k.run(t, `[`+hundred+`,{"type":"tool","server":"demo","name":"echo","for_each":true}]`)
	w.fail = nil
	before := k.tools["echo"].calls.Load()
	_, report, err := k.run(t, "["+stages.ResumeStage(stages.AsError(err).Run)+"]")
	calls := k.tools["echo"].calls.Load() - before
	if s := report.Stages[1]; err != nil || s.Calls != calls || s.OK+s.Resumed != 100 || s.Resumed == 0 {
		t.Errorf("%v; %d calls were made, the report says %d, and %d ok, %d resumed", err, calls, s.Calls, s.OK, s.Resumed)
	}
}

// TestSpreadMixture: runs that fail, are cancelled, lose their workers and are continued, at random, come to the right output and repeat no
// call.
func TestSpreadMixture(t *testing.T) {
	for seed := range uint64(parttest.Times(10, 2000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			spreadMixture(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func spreadMixture(t *testing.T, random *rand.Rand) {
	var mu sync.Mutex
	calm := false // nothing fails any more
	chance := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n) == 0 && !calm
	}
	k, w := newSpread(t, storetest.Directory(t))
	items := 60 + random.IntN(150)
	k.deps.Spread = stages.Spread{Workers: w, From: 3 + random.IntN(20), Concurrency: 64, Items: random.IntN(12), Output: int64(random.IntN(2) * 30)}
	if random.IntN(2) == 0 {
		k.deps.Spread.From, k.deps.Spread.After = 120, 1
	}
	var cancel atomic.Pointer[context.CancelFunc]
	o := onceEach{before: func(string) error {
		if chance(200) {
			(*cancel.Load())()
		}
		return nil
	}}
	o.add(t, k)
	k.add("gate", reads, "x", func(_ context.Context, args map[string]any) (string, error) {
		if chance(100) {
			return "", errors.New("it is refused")
		}
		return fmt.Sprint(args["x"]), nil
	})
	w.fail = func(int64) error {
		if chance(12) {
			return stages.Errorf(stages.ServerUnavailable, "", "the workers are gone")
		}
		return nil
	}
	pipeline := fmt.Sprintf(`[{"type":"tool","server":"demo","name":"numbers","args":{"n":%d}},{"type":"for_each","concurrency":%d,"stages":[
		{"type":"tool","server":"demo","name":"gate","as":"text"},{"type":"tool","server":"demo","name":"post"}]}]`, items, []int{16, 24, 64}[random.IntN(3)])
	for try := 0; ; try++ {
		mu.Lock()
		calm = try == 30
		mu.Unlock()
		ctx, end := context.WithCancel(t.Context())
		cancel.Store(&end)
		p, errs := stages.Compile(ctx, []byte(pipeline), k.deps)
		if errs != nil {
			t.Fatal(stages.Join(errs))
		}
		var out bytes.Buffer
		_, err := p.Run(ctx, nil, &out, stages.RunOptions{})
		end()
		if err == nil {
			if lines := strings.Count(out.String(), "\n"); lines != items {
				t.Errorf("%d lines, want %d", lines, items)
			}
			return
		}
		e := stages.AsError(err)
		if !e.Resume || e.Code == stages.Denied || try == 30 {
			t.Fatal(err)
		}
		pipeline = "[" + stages.ResumeStage(e.Run) + "]"
	}
}
