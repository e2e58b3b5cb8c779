package stages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

// A randomPlan is a pipeline with tools that count what they are called and return.
type randomPlan struct {
	*world
	random *rand.Rand
	tools  int
	heads  bool // a command stops early

	mu   sync.Mutex
	sent map[string]*traffic // by tool; guarded by mu
}

type traffic struct{ calls, bytes int64 }

// CallTool implements [stages.Tools].
func (c *randomPlan) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	count := func(calls, bytes int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sent[call.Name] == nil {
			c.sent[call.Name] = new(traffic)
		}
		c.sent[call.Name].calls += calls
		c.sent[call.Name].bytes += bytes
	}
	sent, unsent := call.MaySend, call.Unsent
	call.MaySend = func() bool {
		if !sent() {
			return false
		}
		count(1, 0)
		return true
	}
	call.Unsent = func() { unsent(); count(-1, 0) }
	result, err := c.world.CallTool(ctx, call)
	if err == nil {
		count(0, int64(len(result.Data)))
	}
	return result, err
}

// tool adds a tool of its own for one stage. It fails for some arguments, for some of them before it is reached.
func (c *randomPlan) tool() string {
	c.tools++
	name := fmt.Sprintf("t%d", c.tools)
	fails := c.random.IntN(3) * 2
	c.add(name, c.random.IntN(3) > 0, "x", func(_ context.Context, args map[string]any) (string, error) {
		switch n := len(encode(args)) % 7; {
		case n < fails && n%2 == 0:
			return "", unsent{stages.Errorf(stages.ServerUnavailable, "", "no route")}
		case n < fails:
			return "", errors.New("it does not like that")
		}
		return strings.Repeat(fmt.Sprint(args["x"], " "), 1+len(encode(args))%3), nil
	})
	return fmt.Sprintf(`"type":"tool","server":"demo","name":%q`, name)
}

// each are random fields of a for_each.
func (c *randomPlan) each() string {
	fields := fmt.Sprintf(`"concurrency":%d,"on_error":%q`, 1+c.random.IntN(4), []string{"fail", "skip", "collect"}[c.random.IntN(3)])
	for _, field := range []string{"distinct", "with_item"} {
		if c.random.IntN(3) == 0 {
			fields += `,"` + field + `":true`
		}
	}
	return fields + []string{``, `,"collect":"lines"`}[c.random.IntN(2)]
}

func (c *randomPlan) stage(depth int) string {
	switch n := c.random.IntN(9); {
	case n == 0:
		return `{"type":"command","command":"cat"}`
	case n == 1:
		return `{"type":"command","command":"fail-at","args":["5"]}`
	case n == 2:
		c.heads = true
		return `{"type":"command","command":"head","args":["2"]}`
	case n == 3 && depth == 0:
		return `{"type":"preview"}`
	case n == 4 && depth == 0:
		return `{"type":"parallel","branches":{"a":[` + c.stages(depth+1) + `],"b":[` + c.stages(depth+1) + `]}}`
	case n == 5 && depth == 0:
		return `{"type":"for_each",` + c.each() + `,"stages":[` + c.stages(depth+1) + `]}`
	case n == 6:
		return "{" + c.tool() + "}"
	}
	return "{" + c.tool() + `,"for_each":true,` + c.each() + "}"
}

func (c *randomPlan) stages(depth int) string {
	list := make([]string, 1+c.random.IntN(3))
	for i := range list {
		list[i] = c.stage(depth)
	}
	return strings.Join(list, ",")
}

// TestCounts compares the reports of random plans, run and rehearsed, whole, failed and ended early, with what tools have
// seen and what has come out.
func TestCounts(t *testing.T) {
	for seed := range uint64(parttest.Times(150, 1500)) {
		c := &randomPlan{world: newWorld(), random: rand.New(rand.NewPCG(seed, 16)), sent: map[string]*traffic{}}
		dry := c.random.IntN(4) == 0
		pipeline := "[" + c.stages(0) + "]"
		input := lines(1 + c.random.IntN(12))
		d := c.deps()
		d.Tools = c
		out, report, err := c.runWith(t, pipeline, input, d, stages.RunOptions{DryRun: dry})
		var wrong []string
		check := func(right bool, format string, args ...any) {
			if !right {
				wrong = append(wrong, fmt.Sprintf(format, args...))
			}
		}
		c.compare(report.Stages, dry, check)
		for name, sent := range c.sent {
			check(sent.calls == 0 && sent.bytes == 0, "%s: %d calls and %d bytes are in no report", name, sent.calls, sent.bytes)
		}
		n := len(report.Stages)
		came := int64(len(input))
		for _, s := range report.Stages {
			check(s.BytesIn <= came, "stage %s has read %d bytes of %d", s.Place, s.BytesIn, came)
			check(s.BytesIn == came || err != nil || c.heads || dry, "stage %s has read %d bytes, not %d", s.Place, s.BytesIn, came)
			came = s.BytesOut
		}
		check(err != nil || came == int64(len(out)) || report.DryRun != nil && report.DryRun.Place != "", "%d bytes came out, the last stage wrote %d", len(out), came)
		if d := report.DryRun; d != nil && d.Place != "" {
			for _, s := range report.Stages[d.Before:] {
				check(s.BytesOut == 0 && s.OK == 0, "stage %s was not run: %d bytes, %d ok", s.Place, s.BytesOut, s.OK)
			}
			for _, s := range report.Stages[n-d.After:] {
				check(s.BytesIn == 0 && s.Items == 0 && s.Calls == 0, "stage %s was not looked at: %+v", s.Place, s)
			}
		}
		if len(wrong) > 0 {
			text, _ := json.MarshalIndent(report.Stages, "", "  ")
			t.Fatalf("seed %d, dry run %t, error %v: %s < %q\n%s\n%s", seed, dry, err, pipeline, input, strings.Join(wrong, "\n"), text)
		}
	}
}

// compare takes what stages say of their calls from what was sent, and looks at what they say of items.
func (c *randomPlan) compare(list []stages.StageReport, dry bool, check func(bool, string, ...any)) {
	for _, s := range list {
		isTool := s.Label.Server != ""
		if sent := c.sent[s.Label.Name]; sent != nil {
			check(!dry || !s.Changes, "%s was called in a dry run", s.Label)
			sent.calls -= s.Calls
			sent.bytes -= s.Returned
		} else {
			check(s.Calls == 0 && s.Returned == 0, "%s: %d calls, %d bytes of a tool that was not called", s.Place, s.Calls, s.Returned)
		}
		var said int64
		for _, m := range s.Messages {
			said += m.Count
		}
		check(s.OK+s.Failed+s.Resumed <= s.Items, "%s: %d items, %d ok, %d failed", s.Place, s.Items, s.OK, s.Failed)
		check(s.Skipped <= s.Failed && said+s.OtherMessages == s.Failed, "%s: %d failed, %d skipped, %d said something", s.Place, s.Failed, s.Skipped, said+s.OtherMessages)
		check(!isTool || s.Items == 0 || s.OK <= s.Calls+s.Shared, "%s: %d ok of %d calls", s.Place, s.OK, s.Calls)
		c.compare(s.Stages, dry, check)
	}
}

// The report of a call that changes something says whether it was answered, with an error or not.
func TestCallOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		fault                   error
		calls, refused, unknown int64
	}{
		"answered":               {nil, 1, 0, 0},
		"answered with an error": {refused, 1, 1, 0},
		"sent and not answered":  {lost, 1, 0, 1},
		"never sent":             {unsent{lost}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.add("post", writes, "x", func(context.Context, map[string]any) (string, error) { return "", c.fault })
			for _, each := range []string{"", `, "for_each": true`} {
				_, report, _ := w.run(t, `[{"type": "tool", "server": "demo", "name": "post"`+each+`}]`, `{"x": 1}`)
				s := report.Stages[0]
				if s.Calls != c.calls || s.Refused != c.refused || s.Unknown != c.unknown {
					t.Errorf("%d calls, %d refused, %d unknown, want %d, %d, %d", s.Calls, s.Refused, s.Unknown, c.calls, c.refused, c.unknown)
				}
			}
		})
	}
}

// A check that ends because the run does leaves no note: its arguments are not too costly to check.
func TestCheckCutShort(t *testing.T) {
	w := newWorld()
	begun, cut := make(chan struct{}), false
	post := w.add("post", writes, "x", func(context.Context, map[string]any) (string, error) {
		<-begun
		return "", refused
	})
	post.info.Input.Check = func(ctx context.Context, args json.RawMessage, partial bool) ([]string, string) {
		if partial || !strings.Contains(string(args), "2") {
			return nil, ""
		}
		close(begun)
		<-ctx.Done()
		cut = true
		return nil, "arguments not checked here: " + context.Cause(ctx).Error()
	}
	_, report, err := w.run(t, `[{"type": "tool", "server": "demo", "name": "post", "for_each": true, "concurrency": 2}]`, `[{"x": 1}, {"x": 2}]`)
	if notes := report.Stages[0].Notes; !cut || err == nil || len(notes) > 0 {
		t.Errorf("notes %q, error %v", notes, err)
	}
}
