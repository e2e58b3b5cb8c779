package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

var operator = control.Viewer{All: true, Results: true}

// A world is a history with the store of outputs and its memory.
type world struct {
	*history.History
	kept  *runs.Store
	share *memory.Share
}

func newWorld(t testing.TB, o runs.Options) world {
	t.Helper()
	o.Share = memory.New(64<<20).Share("runs", 64<<20)
	o.Dir, o.Beside = t.TempDir(), map[string]time.Duration{history.Prefix: 0}
	w := world{kept: runs.New(o), share: o.Share}
	w.History = history.New(w.kept, nil)
	t.Cleanup(func() { w.kept.Close() })
	return w
}

// begin begins a run of a user.
func (w world) begin(request, user string, plan string) *history.Run {
	return w.Begin(history.Begin{
		Row: control.Run{Request: request, Started: time.Now(), Stages: 1}, User: user, Owner: "user " + user,
		Plan: json.RawMessage(plan), Cancel: func(error) error { return nil },
	})
}

// end ends a run with an output of its last stage.
func (w world) end(r *history.Run, user, output string, err error) (id string) {
	id, end := w.kept.Of("user " + user).Begin()
	for name, text := range map[string]string{"plan": `{"stages":[{"type":"x"}]}`, "1": output, "1 about": "{}"} {
		out, ended := w.kept.Of("user "+user).Create(id, name, false)
		out.Write([]byte(text))
		ended("")
	}
	end()
	r.End(stages.Report{Run: id, Stages: []stages.StageReport{{Place: "1", Label: stages.Label{Kind: "tool", Server: "shop", Name: "get"}, Calls: 1, Returned: 40}}}, 4, err)
	return id
}

func requests(list control.RunList) (names []string) {
	for _, r := range list.Runs {
		names = append(names, r.Request)
	}
	return names
}

// TestViewers: an operator sees all runs, and their data only where that is allowed; a caller sees own runs and data; nobody else
// learns that there are some.
func TestViewers(t *testing.T) {
	w := newWorld(t, runs.Options{})
	const plan = `[{"type":"secret"}]`
	id := w.end(w.begin("q_ann", "ann", plan), "ann", "ann's data", stages.Errorf(stages.ToolError, "hint", "words of a server"))
	w.end(w.begin("q_bob", "bob", plan), "bob", "bob's data", nil)
	for name, test := range map[string]struct {
		viewer control.Viewer
		sees   []string
		data   bool // of ann's run
	}{
		"operator":                  {operator, []string{"q_bob", "q_ann"}, true},
		"without results":           {control.Viewer{All: true}, []string{"q_bob", "q_ann"}, false},
		"ann":                       {control.Viewer{Caller: "ann"}, []string{"q_ann"}, true},
		"ann, an operator":          {control.Viewer{All: true, Caller: "ann"}, []string{"q_bob", "q_ann"}, true},
		"bob":                       {control.Viewer{Caller: "bob"}, []string{"q_bob"}, false},
		"bob, who asks for results": {control.Viewer{Caller: "bob", Results: true}, []string{"q_bob"}, false},
		"nobody":                    {control.Viewer{Results: true}, nil, false},
	} {
		if diff := cmp.Diff(test.sees, requests(w.Runs(t.Context(), test.viewer, control.RunFilter{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		d, err := w.Run(t.Context(), test.viewer, "q_ann")
		text := texts.JSON(d)
		for _, secret := range []string{id, "secret", "words of a server", "hint"} {
			if strings.Contains(text, secret) != test.data {
				t.Errorf("%s: %q in %s, %v", name, secret, text, err)
			}
		}
		if (string(d.Plan) == plan) != test.data {
			t.Errorf("%s: the plan is %s", name, d.Plan)
		}
		part, out := w.Output(t.Context(), test.viewer, control.OutputRequest{Request: "q_ann", Stage: 1, Offset: 6, Max: 3})
		if (string(part.Data) == "dat" && part.Size == 10) != test.data || (out == nil) != test.data {
			t.Errorf("%s: the output is %+v, %v", name, part, out)
		}
		if found := len(w.Runs(t.Context(), test.viewer, control.RunFilter{Text: "SECRET"}).Runs) > 0; found != (test.data || name == "bob" || strings.HasPrefix(name, "bob,")) {
			t.Errorf("%s: a search in plans finds some: %v", name, found)
		}
		if e, ok := errors.AsType[*control.Error](w.Cancel(test.viewer, "q_ann")); !ok || (e.Status == 409) != (len(test.sees) == 2 || test.data) {
			t.Errorf("%s: cancelling: %v", name, e)
		}
	}
	w.EndUser("ann")
	if _, err := w.Run(t.Context(), control.Viewer{Caller: "ann"}, "q_ann"); err == nil {
		t.Error("an identity that has lost its access sees its runs")
	}
}

// TestFilter: each member of a filter chooses runs.
func TestFilter(t *testing.T) {
	w := newWorld(t, runs.Options{})
	w.end(w.begin("q_1", "ann", `[{"type":"a"}]`), "ann", "", nil)
	w.end(w.begin("q_2", "bob", `[{"type":"b"}]`), "bob", "", stages.Errorf(stages.Timeout, "", "late"))
	w.end(w.begin("q_3", "bob", `[{"type":"c"}]`), "bob", "", stages.Errorf(stages.Cancelled, "", "gone"))
	w.begin("q_4", "bob", `[]`)
	for name, test := range map[string]struct {
		filter control.RunFilter
		want   string
		more   int
	}{
		"all":    {control.RunFilter{}, "q_4 q_3 q_2 q_1", 0},
		"states": {control.RunFilter{States: []string{control.RunTimedOut, control.RunRunning}}, "q_4 q_2", 0},
		"tool":   {control.RunFilter{Tool: "SHOP/g"}, "q_3 q_2 q_1", 0},
		"text":   {control.RunFilter{Text: `"b"`}, "q_2", 0},
		"limit":  {control.RunFilter{Limit: 1}, "q_4", 3},
		"none":   {control.RunFilter{Caller: "x"}, "", 0},
	} {
		got := w.Runs(t.Context(), operator, test.filter)
		if text := strings.Join(requests(got), " "); text != test.want || got.More != test.more {
			t.Errorf("%s: got %s and %d more", name, text, got.More)
		}
	}
}

// TestBounds: 1,000 finished runs are known, less where they are large; their memory counts, and the oldest go first.
func TestBounds(t *testing.T) {
	w := newWorld(t, runs.Options{})
	for i := range 1500 {
		w.end(w.begin(fmt.Sprint("q_", i), "ann", `[]`), "ann", "x", nil)
	}
	list := w.Runs(t.Context(), operator, control.RunFilter{}).Runs
	if len(list) != 1000 || list[999].Request != "q_500" {
		t.Errorf("%d are known, the oldest is %s", len(list), list[len(list)-1].Request)
	}
	if used := w.share.Used(); used < 1000*2<<10 {
		t.Errorf("they take %d bytes", used)
	}
	huge := stages.Report{Run: "", Stages: make([]stages.StageReport, 5000)}
	for i := range 400 {
		w.begin(fmt.Sprint("h_", i), "ann", strings.Repeat("x", 64<<10)).End(huge, 0, nil)
	}
	if used := w.share.Used(); used > 24<<20 {
		t.Errorf("large ones take %d bytes", used)
	}
	list = w.Runs(t.Context(), operator, control.RunFilter{}).Runs
	if len(list) < 100 || list[0].Request != "h_399" {
		t.Errorf("%d large ones are known", len(list))
	}
	if d, err := w.Run(t.Context(), operator, "h_399"); err != nil || !d.Cut || len(d.Stages) > 0 || len(d.Plan) != 64<<10 {
		t.Errorf("got %v, cut %v, %d stages, a plan of %d bytes", err, d.Cut, len(d.Stages), len(d.Plan))
	}
	long := w.begin("q_long", "ann", strings.Repeat("x", 64<<10+1))
	long.End(stages.Report{}, 0, errors.New(strings.Repeat("é", 10_000)))
	if d, err := w.Run(t.Context(), operator, "q_long"); err != nil || d.Plan != nil || d.PlanSize != 64<<10+1 || len(d.Error.Message) > 5<<10 || d.Code != "INTERNAL" {
		t.Errorf("got %+v, %v", d, err)
	}
	w.Close()
	if used, _, _ := w.kept.Usage(); w.share.Used() > used || len(w.Runs(t.Context(), operator, control.RunFilter{}).Runs) != 0 {
		t.Errorf("after Close %d bytes are taken", w.share.Used())
	}
}

// TestBoundCountsTexts: the bound of memory counts the texts of callers and errors, too.
func TestBoundCountsTexts(t *testing.T) {
	w := newWorld(t, runs.Options{})
	long := strings.Repeat("x", 64<<10)
	for range 3 {
		before := w.share.Used()
		r := w.Begin(history.Begin{Row: control.Run{Request: texts.JSON(before), Caller: long[:1000], Client: long[:1000], Tool: long[:1000]}, User: long[:1000], Owner: long[:1000], Groups: []string{long[:1000]}})
		r.End(stages.Report{Stages: []stages.StageReport{{Input: long[:1000]}}}, 0,
			&stages.Error{Code: stages.Internal, Msg: long, Hint: long, Label: long, Place: stages.Place(long), Sample: []byte(long), Fix: json.RawMessage(long[:4<<10])})
		if got := w.share.Used() - before; got < 7*1000+6*4<<10 || got > 64<<10 {
			t.Errorf("a run with long texts counts as %d bytes", got)
		}
	}
}

// TestKept: a finished run is known as long as its outputs are, and a call without outputs as long as an unused run. A gateway that
// keeps nothing forgets it at once.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, runs.Options{TTL: time.Minute})
		id := w.end(w.begin("q_1", "ann", `[]`), "ann", "x", nil)
		w.begin("q_call", "ann", `[]`).End(stages.Report{}, 0, nil)
		time.Sleep(40 * time.Second)
		_, _, release := w.kept.Of("user ann").Open(id, "1") // a use
		release()
		time.Sleep(40 * time.Second)
		if got := requests(w.Runs(t.Context(), operator, control.RunFilter{})); len(got) != 1 || got[0] != "q_1" {
			t.Errorf("after 80 s there are %v", got)
		}
		time.Sleep(40 * time.Second)
		if got := requests(w.Runs(t.Context(), operator, control.RunFilter{})); len(got) != 0 {
			t.Errorf("after 120 s there are %v", got)
		}
		if _, err := w.Run(t.Context(), operator, "q_1"); err == nil {
			t.Error("it is still shown")
		}
		w.kept.Close()
	})
	none := world{History: history.New(nil, nil)}
	none.begin("q_1", "ann", `[]`).End(stages.Report{}, 0, nil)
	if got := none.Runs(t.Context(), operator, control.RunFilter{}).Runs; len(got) != 0 {
		t.Errorf("without a store there are %v", got)
	}
}

// TestContinues: a run names the one that it begins with, for those who may know of that.
func TestContinues(t *testing.T) {
	w := newWorld(t, runs.Options{})
	id := w.end(w.begin("q_1", "ann", `[]`), "ann", "x", nil)
	w.Begin(history.Begin{Row: control.Run{Request: "q_2"}, User: "bob", From: id})
	for _, test := range []struct {
		viewer control.Viewer
		want   string
	}{{operator, "q_1"}, {control.Viewer{Caller: "bob"}, ""}} {
		if d, err := w.Run(t.Context(), test.viewer, "q_2"); err != nil || d.Continues != test.want {
			t.Errorf("%+v: got %q, %v", test.viewer, d.Continues, err)
		}
	}
}

// TestGroups: a caller who is limited to groups sees own runs within them, and no others, also as an operator.
func TestGroups(t *testing.T) {
	w := newWorld(t, runs.Options{})
	for _, r := range []history.Begin{
		{Row: control.Run{Request: "q_all"}, User: "ann"},
		{Row: control.Run{Request: "q_a"}, User: "ann", Within: true, Groups: []string{"a"}},
		{Row: control.Run{Request: "q_ab"}, User: "ann", Within: true, Groups: []string{"a", "b"}},
		{Row: control.Run{Request: "q_none"}, User: "ann", Within: true},
		{Row: control.Run{Request: "q_bob"}, User: "bob", Within: true, Groups: []string{"a"}},
	} {
		w.Begin(r)
	}
	for _, test := range []struct {
		name   string
		viewer control.Viewer
		sees   []string
	}{
		{"without groups", control.Viewer{Caller: "ann", Limited: true}, []string{"q_none"}},
		{"in one", control.Viewer{Caller: "ann", Limited: true, Groups: []string{"a"}}, []string{"q_a", "q_none"}},
		{"in both", control.Viewer{Caller: "ann", Limited: true, Groups: []string{"a", "b"}}, []string{"q_a", "q_ab", "q_none"}},
		{"an operator", control.Viewer{All: true, Results: true, Caller: "ann", Limited: true, Groups: []string{"a"}}, []string{"q_a", "q_none"}},
		{"not limited", control.Viewer{Caller: "ann"}, []string{"q_a", "q_ab", "q_all", "q_none"}},
	} {
		if diff := cmp.Diff(test.sees, requests(w.Runs(t.Context(), test.viewer, control.RunFilter{}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if _, err := w.Run(t.Context(), test.viewer, "q_all"); (err == nil) == test.viewer.Limited {
			t.Errorf("%s: the run in no group: %v", test.name, err)
		}
	}
}

// TestWait: it returns when a run begins, asks or ends, and again and again while one is live; it ends with its context, and sums up
// for a slow reader.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, runs.Options{})
		cursor, err := w.Wait(t.Context(), 0)
		if err != nil || cursor == 0 {
			t.Fatalf("got %d, %v", cursor, err)
		}
		next := func(change func()) (took time.Duration) {
			t.Helper()
			begun := time.Now()
			var waiting sync.WaitGroup
			waiting.Go(func() { cursor, err = w.Wait(t.Context(), cursor) })
			synctest.Wait()
			change()
			waiting.Wait()
			if err != nil {
				t.Error(err)
			}
			return time.Since(begun)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		if _, err := w.Wait(ctx, cursor); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a change: %v", err)
		}
		cancel()
		var r *history.Run
		if took := next(func() { r = w.begin("q_1", "ann", `[]`) }); took != 0 {
			t.Errorf("a begin is seen after %v", took)
		}
		if took := next(func() {}); took == 0 || took > time.Second {
			t.Errorf("a live run is looked at after %v", took)
		}
		answer := make(chan struct{})
		asker := r.Asking(&stages.Asker{Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
			<-answer
			return nil, nil
		}})
		next(func() { go asker.Ask(t.Context(), stages.Question{}) })
		if state := w.Runs(t.Context(), operator, control.RunFilter{}).Runs[0].State; state != control.RunAsking {
			t.Errorf("while it asks it is %s", state)
		}
		next(func() { close(answer) })
		if state := w.Runs(t.Context(), operator, control.RunFilter{}).Runs[0].State; state != control.RunRunning {
			t.Errorf("with its answer it is %s", state)
		}
		next(func() { r.End(stages.Report{}, 0, nil) })
		for range 100 {
			w.begin("q_x", "ann", `[]`).End(stages.Report{}, 0, nil)
		}
		if took := next(func() {}); took != 0 {
			t.Errorf("a slow reader waits for %v", took)
		}
		w.kept.Close()
	})
}

// TestRace: runs begin, go on and end while others look at them.
func TestRace(t *testing.T) {
	w := newWorld(t, runs.Options{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 25 {
				r := w.begin(fmt.Sprintf("q_%d_%d", i, n), "ann", `[]`)
				r.Follow(func() []stages.StageReport { return []stages.StageReport{{Place: "1", Items: 3}} })
				w.end(r, "ann", "x", nil)
			}
		})
		all.Go(func() {
			cursor := uint64(0)
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				cursor, _ = w.Wait(ctx, cursor) // it may end without a change
				cancel()
				for _, r := range w.Runs(t.Context(), operator, control.RunFilter{Text: "q", Limit: 5}).Runs {
					_, _ = w.Run(t.Context(), operator, r.Request)                                    // it may be gone
					_, _ = w.Output(t.Context(), operator, control.OutputRequest{Request: r.Request}) // also
					_ = w.Cancel(operator, r.Request)                                                 // also
				}
			}
		})
	}
	all.Wait()
}

// TestLeaveOfEarlierAttempt: an attempt that ends after the next one at its run has begun does not hide that one.
func TestLeaveOfEarlierAttempt(t *testing.T) {
	h := history.New(nil, nil)
	b := history.Begin{Row: control.Run{Request: "q_1", Started: time.Now()}}
	earlier := h.Begin(b)
	h.Begin(b)
	earlier.Leave()
	if list := h.Runs(t.Context(), operator, control.RunFilter{}).Runs; len(list) != 1 {
		t.Errorf("got %+v", list)
	}
}
