package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestManyItems: of 600 items, 10,000 at night, 5 % fail for good and 5 % are asked to come back later. The order is kept, skip and
// collect are exact, and every call is made as often as it may be.
func TestManyItems(t *testing.T) {
	n := int64(parttest.Times(600, 10_000))
	var input, skipped, collected strings.Builder
	for i := range n {
		switch i % 20 {
		case 7:
			it := fmt.Sprintf(`{"id":%d,"fails":["error","error","error","error"]}`, i)
			fmt.Fprintf(&collected, "{\"error\":{\"code\":\"TOOL_ERROR\",\"message\":\"record %d is corrupt\",\"attempts\":ATTEMPTS,\"index\":%d,\"item\":%s}}\n", i, i+1, it)
			fmt.Fprintln(&input, it)
			continue
		case 13:
			fmt.Fprintf(&input, "{\"id\":%d,\"fails\":[\"429\"]}\n", i)
		default:
			fmt.Fprintf(&input, "{\"id\":%d}\n", i)
		}
		fmt.Fprintf(&skipped, "{\"id\":%d}\n", i)
		fmt.Fprintf(&collected, "{\"id\":%d}\n", i)
	}
	for _, test := range []struct {
		tool, onError, attempts string
		want                    string
		calls                   int64 // that were sent
	}{
		{"read", "skip", "3", skipped.String(), n + 2*n/20},
		{"read", "collect", "3", collected.String(), n + 2*n/20},
		{"post", "skip", "1", skipped.String(), n},
		{"post", "collect", "1", collected.String(), n},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			out, report, err := w.run(t, fmt.Sprintf(`[{"type":"tool","server":"demo","name":%q,"for_each":true,"concurrency":32,"retries":2,"on_error":%q,"collect":"lines"}]`, test.tool, test.onError), input.String())
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.ReplaceAll(test.want, "ATTEMPTS", test.attempts); out != want {
				t.Errorf("%s, %s: the output is not what it must be: %s", test.tool, test.onError, firstDifference(out, want))
			}
			got := report.Stages[0]
			if got.Calls != test.calls || got.OK != n*19/20 || got.Failed != n/20 || got.Retried != n/20 || (got.Skipped != 0) != (test.onError == "skip") {
				t.Errorf("%s, %s: %+v, want %d calls", test.tool, test.onError, got, test.calls)
			}
			if len(got.Messages) != 1 || got.Messages[0] != (stages.FailureGroup{Text: "record … is corrupt", Count: n / 20}) {
				t.Errorf("messages %v", got.Messages)
			}
			if made := w.tools[test.tool].calls.Load(); made != test.calls+n/20 {
				t.Errorf("%d calls were made, want %d", made, test.calls+n/20)
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is %s, want %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestRetryWaits: waits double from 0.2 s to 5 s, within a quarter to one of that, and a server that asks for more
// gets it.
func TestRetryWaits(t *testing.T) {
	for _, test := range []struct {
		fails     string
		least, at time.Duration // at most
	}{
		{`"error"`, 100 * time.Millisecond, 200 * time.Millisecond},
		{`"error","error","error"`, 700 * time.Millisecond, 1400 * time.Millisecond},
		{strings.Repeat(`"error",`, 9) + `"error"`, 18500 * time.Millisecond, 37 * time.Second},
		{`"429"`, 2 * time.Second, 2200 * time.Millisecond},
		{`"429","429"`, 4 * time.Second, 4400 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			start := time.Now()
			_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"read","for_each":true,"retries":20}]`, `{"id":1,"fails":[`+test.fails+`]}`)
			if took := time.Since(start); err != nil || took < test.least || took > test.at {
				t.Errorf("%s: took %v, want %v to %v; %v", test.fails, took, test.least, test.at, err)
			}
		})
	}
}

// TestRetryEnds: an item that waits for another attempt ends with its stage, its run and its caller.
func TestRetryEnds(t *testing.T) {
	const forever = `{"id":1,"fails":["429","429","429","429","429","429","429","429"]}`
	for _, test := range []struct {
		name, pipeline string
		options        stages.RunOptions
		want           stages.Code
		after          time.Duration
	}{
		{"caller", `[{"type":"tool","server":"demo","name":"post","for_each":true,"retries":9,"on_error":"skip"}]`, stages.RunOptions{}, stages.Cancelled, time.Second},
		// The other item is what the stage and the run wait for; the one that is tried again sees that no time is left.
		{"stage", `[{"type":"for_each","timeout":7,"retries":9,"on_error":"skip","stages":[{"type":"tool","server":"demo","name":"read"}]}]`, stages.RunOptions{}, stages.Timeout, 7 * time.Second},
		{"run", `[{"type":"tool","server":"demo","name":"read","for_each":true,"retries":9,"on_error":"collect"}]`, stages.RunOptions{Timeout: 5 * time.Second}, stages.Timeout, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			p := compiled(t, w.deps(), test.pipeline)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.name == "caller" {
				time.AfterFunc(test.after, cancel)
			}
			start := time.Now()
			_, err := p.Run(ctx, strings.NewReader(forever+`{"id":2,"fails":["late","late","late"]}`), io.Discard, test.options)
			var e *stages.Error
			if !errors.As(err, &e) || e.Code != test.want || time.Since(start) != test.after {
				t.Errorf("%s: after %v got %v, want %s after %v", test.name, time.Since(start), err, test.want, test.after)
			}
		})
	}
}

// TestEveryCodeIsDecided: of every code it is decided whether on_error tolerates it.
func TestEveryCodeIsDecided(t *testing.T) {
	source, err := os.ReadFile("error.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t\w+ +Code = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(codes) < 15 {
		t.Fatalf("found %d codes", len(codes))
	}
	pass := 0
	for _, c := range codes {
		ofOne, known := stages.OfItem(stages.Code(c[1]))
		if !known {
			t.Errorf("whose failure %s is, is not decided", c[1])
		}
		if ofOne {
			pass++
		}
	}
	if pass != 6 {
		t.Errorf("%d codes are of items, want 6: the docs have a table of them", pass)
	}
}

// TestRunLimitsEndTheRun: limits that all items share are no failure of one of them.
func TestRunLimitsEndTheRun(t *testing.T) {
	for _, test := range []struct {
		name, pipeline, input, want string
		limits                      stages.Limits
	}{
		{"calls", `[{"type":"tool","server":"demo","name":"read","for_each":true,"on_error":"skip"}]`, lines(11), "limit calls", stages.Limits{Calls: 10}},
		{"calls of attempts", `[{"type":"tool","server":"demo","name":"read","for_each":true,"on_error":"skip","retries":3,"concurrency":1}]`, `{"id":1,"fails":["error","error","error"]}`, "limit calls", stages.Limits{Calls: 2}},
		{"items", `[{"type":"tool","server":"demo","name":"read","for_each":true,"on_error":"collect"}]`, lines(11), "limit items", stages.Limits{Items: 10}},
		{"held", `[{"type":"tool","server":"demo","name":"say","for_each":true,"on_error":"collect"}]`, strings.Repeat("x", 1000), "limit held", stages.Limits{Held: 500}},
		{"made once", `[{"type":"tool","server":"demo","name":"post","for_each":true,"distinct":true,"concurrency":1,"on_error":"collect"}]`, lines(11), "limit shared", stages.Limits{Shared: 2000}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			d := w.deps()
			d.Limits = test.limits
			_, _, err := w.runWith(t, test.pipeline, test.input, d, stages.RunOptions{})
			var e *stages.Error
			if !errors.As(err, &e) || e.Code != stages.LimitExceeded || !strings.Contains(e.Msg, test.want) || e.Hint == "" {
				t.Errorf("%s: got %v, want LIMIT_EXCEEDED with %s", test.name, err, test.want)
			}
		})
	}
}

// TestCountsAreExact: whatever happens at the same time, a failure says how many items succeeded and failed: as many as calls
// with effects did, and no item is counted twice.
func TestCountsAreExact(t *testing.T) {
	for range parttest.Times(70, 200) {
		w := newWorld()
		var ok, failed atomic.Int64
		w.add("save", writes, "i", func(_ context.Context, args map[string]any) (string, error) {
			runtime.Gosched()
			if i, _ := strconv.Atoi(fmt.Sprint(args["i"])); i%7 == 5 {
				failed.Add(1)
				return "", errors.New("no")
			}
			ok.Add(1)
			return "x", nil
		})
		_, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"save","for_each":true,"concurrency":8}]`, lines(60))
		var e *stages.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		got := report.Stages[0]
		if int64(e.Done) != ok.Load() || int64(e.Failed) != failed.Load() || e.Failed < 1 || e.Done+e.Failed > e.Started || got.OK != ok.Load() || got.Failed != failed.Load() {
			t.Fatalf("%d succeeded and %d failed; the error says %d, %d of %d, the report %d, %d",
				ok.Load(), failed.Load(), e.Done, e.Failed, e.Started, got.OK, got.Failed)
		}
	}
}

// TestHeldAttempt: what an item that may be tried again writes is held up to a limit, which is one of the item.
func TestHeldAttempt(t *testing.T) {
	w := newWorld()
	d := w.deps()
	d.Limits = stages.Limits{Attempt: 100}
	out, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"say","for_each":true,"on_error":"collect","retries":1,"collect":"lines"}]`, "a\n"+strings.Repeat("x", 200), d, stages.RunOptions{})
	if err != nil || !strings.Contains(out, `"a"`) || !strings.Contains(out, `"LIMIT_EXCEEDED"`) || !strings.Contains(out, "limit attempt") {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestSharedResultsAreBounded: results that are kept for equal calls give way, the oldest first, and calls that have
// become unknown are made again.
func TestSharedResultsAreBounded(t *testing.T) {
	w := newWorld()
	d := w.deps()
	d.Limits = stages.Limits{Shared: 2500}
	var input strings.Builder
	for range 3 {
		input.WriteString(lines(20))
	}
	out, report, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"read","for_each":true,"concurrency":1,"collect":"lines"}]`, input.String()+"19\n", d, stages.RunOptions{})
	if err != nil || strings.Count(out, "\n") != 61 {
		t.Fatalf("got %d lines, %v", strings.Count(out, "\n"), err)
	}
	if got := report.Stages[0]; got.Calls != 60 || got.Shared != 1 {
		t.Errorf("%d calls, %d shared; want 60 and 1", got.Calls, got.Shared)
	}
}

// TestEqualCallsWait: equal calls that come while the first of them runs wait for it; if it is cut off with its item, the
// next one makes the call.
func TestEqualCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		slow := w.tools["slow"]
		start := time.Now()
		_, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"slow","for_each":true,"concurrency":16}]`, strings.Repeat(`{"ms":1000}`, 50))
		if err != nil || slow.calls.Load() != 1 || report.Stages[0].Shared != 49 || time.Since(start) != time.Second {
			t.Errorf("%d calls, %d shared, %v, %v", slow.calls.Load(), report.Stages[0].Shared, time.Since(start), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		slow := w.tools["slow"]
		p := compiled(t, w.deps(), `[{"type":"for_each","on_error":"skip","stages":[{"type":"parallel","branches":{
			"a":[{"type":"tool","server":"demo","name":"slow","args":{"ms":1000}}],
			"b":[{"type":"tool","server":"demo","name":"slow","timeout":0.5}]}}]}]`)
		in, feed := io.Pipe()
		go func() {
			io.WriteString(feed, `{"ms":1500}`) // fails after half a second, while the call of branch a is under way
			time.Sleep(100 * time.Millisecond)
			io.WriteString(feed, `{"ms":100}`) // waits for the same call
			feed.Close()
		}()
		start := time.Now()
		var out strings.Builder
		_, err := p.Run(t.Context(), in, &out, stages.RunOptions{})
		if err != nil || strings.Count(out.String(), `"a"`) != 1 || slow.calls.Load() != 4 || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after %v got %s, %v, %d calls", time.Since(start), out.String(), err, slow.calls.Load())
		}
	})
}

// TestHeadStopsAttempts: head directly behind a for_each keeps calls few, whatever the items need.
func TestHeadStopsAttempts(t *testing.T) {
	for _, fields := range []string{`"retries":5`, `"retries":5,"on_error":"skip"`, `"distinct":false,"with_item":true`, `"distinct":true,"on_error":"collect"`} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			tool := w.add("ms20", reads, "i", ms20)
			_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"ms20","for_each":true,"concurrency":16,"collect":"lines",`+fields+`},
				{"type":"command","command":"head","args":["3"]}]`, lines(10_000))
			if err != nil || tool.calls.Load() > 2*16+8 || tool.active.Load() != 0 {
				t.Errorf("%s: %d calls, want at most %d; %v", fields, tool.calls.Load(), 2*16+8, err)
			}
		})
	}
}

// TestProgressOfFailures: an item that failed and was tolerated is finished as well.
func TestProgressOfFailures(t *testing.T) {
	w := newWorld()
	last := make(chan int64, 100)
	_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"read","for_each":true,"on_error":"skip","concurrency":1}]`,
		`{"id":1,"fails":["error"]}{"id":2}{"id":3,"fails":["error"]}`, w.deps(), stages.RunOptions{Progress: func(p stages.Progress) { last <- p.Items }})
	if err != nil || len(last) != 3 {
		t.Errorf("progress had %d items, want 3; %v", len(last), err)
	}
}

// TestPlanTellsOfChoices: the plan says what becomes of failures, and where retries and distinct have no effect.
func TestPlanTellsOfChoices(t *testing.T) {
	w := newWorld()
	for _, test := range []struct{ stage, want string }{
		{`{"type":"tool","server":"demo","name":"read","for_each":true,"retries":3,"on_error":"skip"}`, "; items that fail are left out; an item whose call fails is tried up to 3 more times"},
		{`{"type":"tool","server":"demo","name":"put","for_each":true,"retries":1,"on_error":"collect"}`, "; items that fail become error objects; an item whose call fails is tried once more"},
		{`{"type":"tool","server":"demo","name":"post","for_each":true,"retries":1,"distinct":true}`, "; an item whose call fails is tried once more, but not once a call of demo/post may have taken effect: then retries have no effect; calls with equal arguments are made once"},
		{`{"type":"command","command":"cat","for_each":true,"retries":1,"distinct":true}`, "; retries have no effect: only calls of tools are tried again; distinct has no effect: no stage of it calls a tool"},
		{`{"type":"for_each","retries":2,"stages":[{"type":"command","command":"cat"},{"type":"tool","server":"demo","name":"put"}]}`, "but not once a call of demo/put may have taken effect: then retries have no effect"},
	} {
		if got := compiled(t, w.deps(), "["+test.stage+"]").Plan().Stages[0].Does; !strings.HasSuffix(got, test.want) {
			t.Errorf("%s\ndoes %s\nwant …%s", test.stage, got, test.want)
		}
	}
}

// TestAnyMixture: whatever fails however often, the output is what the items say, in their order.
func TestAnyMixture(t *testing.T) {
	for seed := range uint64(parttest.Times(10, 40)) {
		mixture(t, rand.New(rand.NewPCG(seed, 1)))
		commandMixture(t, rand.New(rand.NewPCG(seed, 2)))
	}
}

func FuzzMixture(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		mixture(t, rand.New(rand.NewPCG(a, b)))
		commandMixture(t, rand.New(rand.NewPCG(a, b)))
	})
}

// mixture runs random items under a random policy and compares the output with what a loop over them gives.
func mixture(t *testing.T, random *rand.Rand) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	tool, onError, retries := pick("read", "put", "post"), pick("skip", "collect"), random.IntN(4)
	withItem, collect := random.IntN(2) == 0, pick("array", "lines")
	only := pick("", "", "^429|corrupt")
	again := map[string]bool{"429": true, "refused": true, "error": tool != "post", "503": tool != "post", "late": tool != "post"}
	message := map[string]string{
		"429": "429 Too Many Requests", "refused": "nothing listens there", "late": "the tool did not answer within 1m0s (limit call)",
		"503": "503 Service Unavailable, and the call may have taken effect",
	}
	if tool != "read" {
		message["late"] += "; it was sent and may have taken effect"
	}
	code := map[string]string{"late": "TIMEOUT", "error": "TOOL_ERROR"}
	var input strings.Builder
	var want []string
	text := false
	for i := range random.IntN(80) {
		var fails []string
		for range random.IntN(2) * random.IntN(4) {
			fails = append(fails, pick("429", "refused", "error", "503", "late"))
		}
		it := fmt.Sprintf(`{"id":%d,"fails":["%s"]}`, i, strings.Join(fails, `","`))
		if len(fails) == 0 {
			it = pick(fmt.Sprint(i), fmt.Sprintf(`{"id": %d}`, i))
		}
		input.WriteString(it + "\n")
		if text = text || i == 0 && it[0] != '{'; text && it[0] != '{' {
			it = `"` + it + `"` // a line of text
		}
		attempt, failed := 1, ""
		for ; attempt <= len(fails); attempt++ {
			end := fails[attempt-1]
			if attempt > retries || !again[end] || only != "" && end != "429" && end != "error" {
				failed = end
				break
			}
		}
		if element := expected(it, i, attempt, failed, code[failed], message[failed], withItem, onError); element != "" {
			want = append(want, element)
		}
	}
	policy := fmt.Sprintf(`"on_error":%q,"retries":%d,"with_item":%v,"collect":%q,"concurrency":%d`, onError, retries, withItem, collect, 1+random.IntN(12))
	if only != "" && retries > 0 {
		policy += fmt.Sprintf(`,"retry_on":%q`, only)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := w.deps()
		d.Limits.Run = 24 * time.Hour
		out, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"`+tool+`","for_each":true,`+policy+`}]`, "\n"+input.String(), d, stages.RunOptions{})
		whole := "[" + strings.Join(want, ",\n") + "]\n"
		if collect == "lines" {
			whole = strings.Join(append(want, ""), "\n")
		}
		if err != nil || out != whole {
			t.Errorf("%s with %s: %v; %s\ninput:\n%s", tool, policy, err, firstDifference(out, whole), input.String())
		}
	})
}

// expected is what stands for an item in the output.
func expected(it string, i, attempt int, failed, code, message string, withItem bool, onError string) string {
	switch {
	case failed == "" && withItem:
		return fmt.Sprintf(`{"item":%s,"result":{"id":%d}}`, it, i)
	case failed == "":
		return fmt.Sprintf(`{"id":%d}`, i)
	case onError == "skip":
		return ""
	}
	if code == "" {
		code = "SERVER_UNAVAILABLE"
	}
	if message == "" {
		message = fmt.Sprintf("record %d is corrupt", i)
	}
	about := fmt.Sprintf(`{"code":%q,"message":%q,"attempts":%d,"index":%d`, code, message, attempt, i+1)
	if withItem {
		return fmt.Sprintf(`{"item":%s,"error":%s}}`, it, about)
	}
	return fmt.Sprintf(`{"error":%s,"item":%s}}`, about, it)
}
