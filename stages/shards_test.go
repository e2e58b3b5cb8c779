package stages_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// workers continue runs in another store of the same process, as workers elsewhere do.
type workers struct {
	deps stages.Deps

	mu   sync.Mutex
	done map[string]stages.Ended // by run; each is continued until it succeeds
	runs atomic.Int64
	fail func(run int64) error // of Continue; nil: none
}

func (w *workers) Continue(ctx context.Context, run string, choices stages.Overrides) (stages.Ended, error) {
	w.mu.Lock()
	ended, known := w.done[run]
	w.mu.Unlock()
	if known && ended.Err == nil {
		ended.Before = true
		return ended, nil
	}
	last := cmp.Or(ended.Run, run)
	if n := w.runs.Add(1); w.fail != nil {
		if err := w.fail(n); err != nil {
			return ended, err
		}
	}
	apart := context.WithoutCancel(ctx)
	p, errs := stages.Compile(apart, []byte("["+choices.ResumeStage(last)+"]"), w.deps)
	if errs != nil {
		return ended, stages.Join(errs)
	}
	report, err := p.Run(apart, nil, io.Discard, stages.RunOptions{KeepClaim: true})
	ended = stages.Ended{Run: report.Run, Stages: report.Stages}
	if err != nil {
		ended.Err = stages.AsError(err).Bare()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = map[string]stages.Ended{}
	}
	w.done[run] = ended
	return ended, ctx.Err()
}

// newSpread returns a world whose for_each stages are spread over workers in small shards.
func newSpread(t *testing.T, shared store.Store) (*kept, *workers) {
	k, there := newKept(t, runs.Options{Shared: shared}), newKept(t, runs.Options{Shared: shared})
	w := &workers{deps: there.deps}
	w.deps.Tools = k.world // calls are counted in one place
	k.deps.Spread = stages.Spread{Workers: w, From: 5, Concurrency: 64, Items: 7, Output: 100}
	return k, w
}

var runID = regexp.MustCompile(`r_[a-z2-7]{26}`)

// TestShards: a for_each that is spread over workers writes the same bytes, makes the same report and fails in the same words as one that
// is not.
func TestShards(t *testing.T) {
	numbers := `{"type":"tool","server":"demo","name":"numbers","args":{"n":100}}`
	for name, c := range map[string]struct {
		pipeline string
		here     bool // it is not spread
	}{
		"array":          {pipeline: numbers + `,{"type":"tool","server":"demo","name":"echo","for_each":true}`},
		"with item":      {pipeline: numbers + `,{"type":"tool","server":"demo","name":"echo","for_each":true,"with_item":true}`},
		"text":           {pipeline: `{"type":"tool","server":"demo","name":"say","args":{"text":"a\n\n{\"b\":\n 1}\n[INFO] c\r\n17\n \"d\" \ne\nf\ng\nh\ni\nj\nk"}},{"type":"tool","server":"demo","name":"say","for_each":true}`},
		"lines":          {pipeline: numbers + `,{"type":"tool","server":"demo","name":"get","for_each":true,"on_error":"skip","collect":"lines"}`},
		"skip":           {pipeline: numbers + `,{"type":"tool","server":"demo","name":"get","for_each":true,"on_error":"skip"}`},
		"collect":        {pipeline: numbers + `,{"type":"tool","server":"demo","name":"get","for_each":true,"on_error":"collect"}`},
		"fail":           {pipeline: numbers + `,{"type":"tool","server":"demo","name":"get","for_each":true,"concurrency":16}`},
		"a command":      {pipeline: numbers + `,{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"echo"},{"type":"command","command":"upper"}]}`},
		"nested":         {pipeline: numbers + `,{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"numbers"},{"type":"tool","server":"demo","name":"echo","for_each":true,"distinct":false}]}`},
		"effects":        {pipeline: numbers + `,{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":24}`},
		"stages behind":  {pipeline: numbers + `,{"type":"tool","server":"demo","name":"echo","for_each":true},{"type":"command","command":"upper"}`},
		"one at a time":  {pipeline: numbers + `,{"type":"tool","server":"demo","name":"write","for_each":true}`, here: true},
		"a reader stops": {pipeline: numbers + `,{"type":"tool","server":"demo","name":"echo","for_each":true},{"type":"command","command":"head","args":["3"]}`, here: true},
		"it stops later": {pipeline: numbers + `,{"type":"tool","server":"demo","name":"echo","for_each":true},{"type":"command","command":"head","args":["12"]}`, here: true},
		"few items":      {pipeline: `{"type":"tool","server":"demo","name":"numbers","args":{"n":5}},{"type":"tool","server":"demo","name":"echo","for_each":true}`, here: true},
	} {
		t.Run(name, func(t *testing.T) {
			plain := newKept(t, runs.Options{})
			here, hereReport, hereErr := plain.run(t, "["+c.pipeline+"]")
			k, w := newSpread(t, storetest.Directory(t))
			there, report, err := k.run(t, "["+c.pipeline+"]")
			if spread := w.runs.Load() > 0; spread == c.here {
				t.Errorf("it is spread: %v", spread)
			}
			if diff := gocmp.Diff(here, there); hereErr == nil && diff != "" {
				t.Errorf("the output: %s", diff)
			}
			if got, want := errorOf(err), errorOf(hereErr); got != want {
				t.Errorf("it fails with\n%s\nhere, and with\n%s", want, got)
			}
			if diff := gocmp.Diff(figures(hereReport.Stages), figures(report.Stages)); hereErr == nil && !c.here && diff != "" {
				t.Errorf("the report: %s", diff)
			}
		})
	}
}

func errorOf(err error) string {
	e, ok := errors.AsType[*stages.Error](err)
	if !ok {
		return fmt.Sprint(err)
	}
	return runID.ReplaceAllString(fmt.Sprintf("%s %s %s item %d %s resume %v", e.Code, e.Error(), e.Hint, e.Item, e.Sample, e.Resume), "RUN")
}

// figures are what a report counts, but for times.
func figures(list []stages.StageReport) (lines []string) {
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%s %s: %d items, %d ok, %d failed, %d skipped, %d calls, %d returned, %d in, %d out, %v",
			s.Place, s.Label, s.Items, s.OK, s.Failed, s.Skipped, s.Calls, s.Returned, s.BytesIn, s.BytesOut, s.Messages))
		lines = append(lines, figures(s.Stages)...)
	}
	return lines
}

// TestShardsContinued: a run that goes on after its end uses the results of shards that had ended, and makes none of their calls again.
func TestShardsContinued(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	var calls sync.Map
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		if n, again := calls.LoadOrStore(fmt.Sprint(args["x"]), 1); again {
			return "", fmt.Errorf("%v was called %v times before", args["x"], n)
		}
		return fmt.Sprint(args["x"]), nil
	})
	w.fail = func(n int64) error {
		if n == 4 {
			return stages.Errorf(stages.ServerUnavailable, "", "the workers are gone")
		}
		return nil
	}
	const pipeline = `[{"type":"tool","server":"demo","name":"numbers","args":{"n":100}},
		{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16}]`
	_, _, err := k.run(t, pipeline)
	e, ok := errors.AsType[*stages.Error](err)
	if !ok || !strings.Contains(e.Msg, "the workers are gone") || !e.Resume {
		t.Fatalf("got %v", err)
	}
	w.fail = nil
	out, _, err := k.run(t, "["+stages.ResumeStage(e.Run)+"]")
	if err != nil || bytes.Count([]byte(out), []byte("\n")) != 100 {
		t.Fatalf("got %v, %s", err, out)
	}
}

// TestShardDisagrees: a worker whose tool has other effects than that of the run runs no item.
func TestShardDisagrees(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	other := newWorld()
	other.tools["echo"].info.ReadOnly = false
	w.deps.Tools = other
	_, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":100}},{"type":"tool","server":"demo","name":"echo","for_each":true}]`)
	if err == nil || !strings.Contains(err.Error(), "other parameters or effects here") || other.tools["echo"].calls.Load() > 0 {
		t.Errorf("got %v after %d calls", err, other.tools["echo"].calls.Load())
	}
}

// TestShardAgain: a shard that has succeeded can be continued again, where nobody knows that: nothing is called again.
func TestShardAgain(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	if _, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":40}},{"type":"tool","server":"demo","name":"echo","for_each":true}]`); err != nil {
		t.Fatal(err)
	}
	if len(w.done) == 0 {
		t.Fatal("nothing was spread")
	}
	calls := k.tools["echo"].calls.Load()
	for _, first := range maps.Clone(w.done) {
		again, err := w.Continue(t.Context(), first.Run, stages.Overrides{OnError: "skip"})
		if err != nil || again.Err != nil {
			t.Fatal(err, again.Err)
		}
		if diff := gocmp.Diff(figures(first.Stages[1:]), figures(again.Stages[1:])); diff != "" {
			t.Errorf("the report of the for_each (-first +again):\n%s", diff)
		}
	}
	if n := k.tools["echo"].calls.Load(); n != calls {
		t.Errorf("%d calls were made again", n-calls)
	}
}

// TestShardsTotal: while workers run items, the estimate of how many there are counts those that they have not ended.
func TestShardsTotal(t *testing.T) {
	for _, n := range []int{100, 3000} { // less and more than a buffer of the input
		k, w := newSpread(t, storetest.Directory(t))
		w.deps.Spread, k.deps.Spread.Output = stages.Spread{}, 0
		var reports func() []stages.StageReport
		var known atomic.Int64
		w.fail = func(int64) error {
			if total := reports()[1].Total; total != 0 {
				known.Add(1)
				if total < int64(n*95/100) || total > int64(n*105/100) {
					return fmt.Errorf("%d items, estimated %d", n, total)
				}
			}
			return nil
		}
		k.deps.Spread.Concurrency = 16
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, `\n%d`, 10_000+i)
		}
		pipeline := fmt.Sprintf(`[{"type":"tool","server":"demo","name":"say","args":{"text":"%s"}},{"type":"tool","server":"demo","name":"echo","for_each":true}]`,
			lines.String()[2:])
		p, errs := stages.Compile(t.Context(), []byte(pipeline), k.deps)
		if errs != nil {
			t.Fatal(stages.Join(errs))
		}
		_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Begun: func(list func() []stages.StageReport) { reports = list }})
		if err != nil || known.Load() == 0 {
			t.Errorf("%d items: %v, known %d times", n, err, known.Load())
		}
	}
}

// spreadOnce runs 100 items with effects in shards, of which that with one item fails, and returns the run.
func spreadOnce(t *testing.T, k *kept, called *sync.Map, bad string) (run string) {
	t.Helper()
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		x := fmt.Sprint(args["x"])
		if x == bad {
			return "", errors.New("it is refused")
		}
		if _, again := called.LoadOrStore(x, 1); again {
			t.Errorf("item %s was called again", x)
		}
		return x, nil
	})
	_, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":100}},
		{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":16}]`)
	e, ok := errors.AsType[*stages.Error](err)
	if !ok || !e.Resume || e.Item == 0 {
		t.Fatalf("got %v", err)
	}
	return e.Run
}

// TestShardsOverridden: other choices for a for_each that stopped hold for the shards that were submitted before, too, and no effect is
// repeated.
func TestShardsOverridden(t *testing.T) {
	for name, change := range map[string]string{"skip": `"on_error": "skip"`, "one at a time": `"on_error": "skip", "concurrency": 1`} {
		t.Run(name, func(t *testing.T) {
			k, _ := newSpread(t, storetest.Directory(t))
			var called sync.Map
			run := spreadOnce(t, k, &called, "30")
			out, _, err := k.run(t, "["+stages.ResumeStage(run, change)+"]")
			if err != nil || strings.Count(out, "\n") != 99 {
				t.Fatalf("got %v, %d lines", err, strings.Count(out, "\n"))
			}
		})
	}
}

// TestSpreadAfter: once some time is over, 100 items are enough to begin to spread the others.
func TestSpreadAfter(t *testing.T) {
	for n, spread := range map[int]bool{100: false, 101: true} {
		k, w := newSpread(t, storetest.Directory(t))
		k.deps.Spread.From, k.deps.Spread.After = 2000, 1
		out, _ := k.must(t, fmt.Sprintf(`[{"type":"tool","server":"demo","name":"numbers","args":{"n":%d}},{"type":"tool","server":"demo","name":"echo","for_each":true}]`, n))
		if lines, runs := strings.Count(out, "\n"), w.runs.Load(); lines != n || runs > 0 != spread {
			t.Errorf("%d items: %d lines, %d shards", n, lines, runs)
		}
	}
}

// TestShardsBehindFrom: another pipeline behind a run with shards repeats none of their calls, nor one behind a run that has only read
// what that has produced; nor does it call anything where the shards are not kept any more.
func TestShardsBehindFrom(t *testing.T) {
	const post = `{"type":"tool","server":"demo","name":"post","for_each":true,"on_error":"collect"}`
	for _, c := range []struct{ between, gone bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel() // it waits
			s := &unreachable{Store: storetest.Directory(t), written: map[string]bool{}}
			k, w := newSpread(t, s)
			shards := map[string]bool{}
			w.fail = func(int64) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				maps.Copy(shards, s.written)
				return nil
			}
			var called sync.Map
			run := spreadOnce(t, k, &called, "30")
			before := 0
			called.Range(func(any, any) bool { before++; return true })
			if c.between {
				_, run = k.must(t, from(run, 1, `{"type":"command","command":"upper"}`))
			}
			k.deps.Spread = stages.Spread{}
			if c.gone {
				s.mu.Lock()
				s.lost, s.why = shards, store.ErrNotFound
				s.mu.Unlock()
			}
			out, _, err := k.run(t, from(run, 1, post))
			refused := strings.Count(out, "with the same arguments")
			switch {
			case c.gone && (err == nil || stages.AsError(err).Code != stages.Denied):
				t.Errorf("got %v: %s", err, out)
			case !c.gone && (err != nil || refused != before || !strings.Contains(out, "it is refused")):
				t.Errorf("%v, %d of %d calls are refused: %s", err, refused, before, out)
			}
		})
	}
}

// unreachable is a store some of whose objects cannot be read for a while.
type unreachable struct {
	store.Store
	mu      sync.Mutex
	written map[string]bool // the folders of all objects; guarded by mu, as is everything below
	lost    map[string]bool // of these folders
	why     error
}

func (s *unreachable) Put(ctx context.Context, name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[path.Dir(name)] = true
	return s.Store.Put(ctx, name, data)
}

func (s *unreachable) Get(ctx context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[path.Dir(name)] {
		return nil, s.why
	}
	return s.Store.Get(ctx, name)
}

// TestShardsFailClosed: a run that continues one with shards repeats none of their calls, where it cannot use what they came to.
func TestShardsFailClosed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(k *kept, s *unreachable, shards map[string]bool)
		want   stages.Code
	}{
		"no workers": {func(k *kept, _ *unreachable, _ map[string]bool) { k.deps.Spread = stages.Spread{} }, stages.Denied},
		"sticky":     {func(k *kept, _ *unreachable, _ map[string]bool) { k.tools["post"].info.Sticky = true }, stages.Denied},
		"unreachable": {func(_ *kept, s *unreachable, shards map[string]bool) {
			s.lost, s.why = shards, errors.New("no route to host")
		}, stages.ServerUnavailable},
		"gone": {func(_ *kept, s *unreachable, shards map[string]bool) { s.lost, s.why = shards, store.ErrNotFound }, stages.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			s := &unreachable{Store: storetest.Directory(t), written: map[string]bool{}}
			k, w := newSpread(t, s)
			var called sync.Map
			shards := map[string]bool{}
			w.fail = func(int64) error { // until the run has ended only shards are written
				s.mu.Lock()
				defer s.mu.Unlock()
				maps.Copy(shards, s.written)
				return nil
			}
			resume := "[" + stages.ResumeStage(spreadOnce(t, k, &called, "30"), `"on_error": "skip"`) + "]"
			c.change(k, s, shards)
			_, _, err := k.run(t, resume)
			if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestShardsClaim: a run whose shards may have changed something stays the only one that continues another.
func TestShardsClaim(t *testing.T) {
	k, w := newSpread(t, storetest.Directory(t))
	var called sync.Map
	first := spreadOnce(t, k, &called, "30")
	w.fail = func(int64) error { return stages.Errorf(stages.ServerUnavailable, "", "the workers are gone") }
	resume := "[" + stages.ResumeStage(first) + "]"
	if _, _, err := k.run(t, resume); err == nil {
		t.Fatal("it succeeds without workers")
	}
	if _, errs := k.compile(t, resume); len(errs) != 1 || !strings.Contains(errs[0].Msg, "is continued by") {
		t.Errorf("got %v", errs)
	}
}

// TestShardsStopReading: the failure of a shard ends the run, also where its input is still open and says nothing.
func TestShardsStopReading(t *testing.T) {
	k, _ := newSpread(t, storetest.Directory(t))
	p, errs := k.compile(t, `[{"type":"tool","server":"demo","name":"get","for_each":true}]`)
	if errs != nil {
		t.Fatal(errs)
	}
	in, lines := io.Pipe()
	defer lines.Close()
	go func() {
		for id := range 25 {
			fmt.Fprintf(lines, "{\"id\":%d}\n", id+1)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := p.Run(ctx, in, io.Discard, stages.RunOptions{}); err == nil || !strings.Contains(err.Error(), "no such id: 13") {
		t.Errorf("got %v", err)
	}
}

// TestShardsNoted: before a shard is run, those who go on after the death of this process know of it.
func TestShardsNoted(t *testing.T) {
	shared := storetest.Directory(t)
	k, w := newSpread(t, shared)
	k.deps.Spread.Items = 100 // one shard: another could end the run first
	p, errs := k.compile(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":100}},
		{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":16}]`)
	if errs != nil {
		t.Fatal(errs)
	}
	first, err := p.Submit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, errs = k.compile(t, "["+stages.ResumeStage(first)+"]"); errs != nil {
		t.Fatal(errs)
	}
	died := errors.New("the process has died")
	var run string
	var seen sync.Once
	w.fail = func(int64) error {
		seen.Do(func() {
			other := newKept(t, runs.Options{Shared: shared}).store.Of("me")
			if _, err := other.TakeOver(t.Context(), run); err != nil {
				t.Error(err)
			}
			data, _, release := other.Open(run, "2 shards")
			defer release()
			if data == nil || data.Size() == 0 {
				t.Error("nobody knows of the shard")
			}
		})
		return died
	}
	if _, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Kept: func(id string) { run = id }, KeepClaim: true}); !errors.Is(err, died) {
		t.Errorf("got %v", err)
	}
}

// TestBare: the error of a shard is short enough to be stored as its reply, however long its item is.
func TestBare(t *testing.T) {
	item := make([]byte, 9<<20)
	e := (&stages.Error{Sample: item, Err: errors.New("cause")}).Bare()
	if len(e.Sample) != 1<<20 || !e.Cut || e.Err != nil {
		t.Errorf("got a sample of %d bytes, cut: %v, cause: %v", len(e.Sample), e.Cut, e.Err)
	}
}

// TestShardsCalls: a run that is spread makes few calls more than its limit, two for each shard under way.
func TestShardsCalls(t *testing.T) {
	const limit, concurrency = 60, 8
	for name, tool := range map[string]string{"reads": `"echo"`, "changes": `"write","concurrency":64`} {
		t.Run(name, func(t *testing.T) {
			k, _ := newSpread(t, storetest.Directory(t))
			k.deps.Spread.Items, k.deps.Limits.Calls = 100, limit
			_, _, err := k.run(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":1000}},{"type":"tool","server":"demo","for_each":true,"name":`+tool+`}]`)
			if e := stages.AsError(err); err == nil || e.Code != stages.LimitExceeded || e.Limit != "calls" {
				t.Errorf("got %v", err)
			}
			if calls := len(k.world.calls); calls < limit || calls > limit+2*concurrency {
				t.Errorf("it has made %d calls", calls)
			}
		})
	}
}
