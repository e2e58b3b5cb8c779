package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// checking is a worker whose checks of scripts do what check does.
func checking(check wire.Runner) *scripted {
	answers := versions(nil)
	return good(func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		if c.Commands[0].Check != nil {
			return check(ctx, s, c)
		}
		return answers(ctx, s, c)
	})
}

func says(verdict string) wire.Runner {
	return func(_ context.Context, s *wire.Stream, _ wire.Chain) wire.Outcome {
		_, _ = io.WriteString(s, verdict)
		return wire.Outcome{}
	}
}

func failsWith(f wire.Failure) wire.Runner {
	return func(context.Context, *wire.Stream, wire.Chain) wire.Outcome { return wire.Outcome{Failure: &f} }
}

func jqOf(filter string) stages.Command {
	return stages.Command{Name: "jq", Args: []string{"-c", filter}}
}

// TestVerdicts: what a check comes to. Without a verdict there is no run.
func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		name      string
		check     wire.Runner
		code      stages.Code
		msg, hint string
		traits    stages.Traits
	}{
		{"accepted", says(`{}`), "", "", "", stages.Traits{Replayable: true, Values: true}},
		{"traits", says(`{"StopsEarly":true,"Varies":true}`), "", "", "", stages.Traits{StopsEarly: true, Values: true}},
		{"a mistake", says(`{"Mistake":"it is wrong","Hint":"do it right"}`), stages.DisallowedArgument, "jq: it is wrong", "do it right", stages.Traits{}},
		{"a long mistake", says(`{"Mistake":"` + strings.Repeat("x", 200<<10) + `"}`), stages.DisallowedArgument, "xxx…", "", stages.Traits{}},
		{"memory", failsWith(wire.Failure{Reason: wire.MemoryLimit, Limit: 128 << 20}), stages.LimitExceeded, "the program of 2 bytes is too costly to check: checking it takes more than 128 MiB of memory (limit check-memory)", "smaller", stages.Traits{}},
		{"processor", failsWith(wire.Failure{Reason: wire.CPULimit}), stages.LimitExceeded, "more than 1s of processor time (limit check)", "smaller", stages.Traits{}},
		{"a crash", failsWith(wire.Failure{Reason: wire.Signal, Signal: "killed"}), stages.LimitExceeded, "killed", "smaller", stages.Traits{}},
		{"another status", failsWith(wire.Failure{Reason: wire.Exit, Status: 1}), stages.LimitExceeded, "(limit check)", "smaller", stages.Traits{}},
		{"no process", failsWith(wire.Failure{Reason: wire.Refused, Detail: "no memory for a process"}), stages.SandboxUnavailable, "no memory for a process", "doctor", stages.Traits{}},
		{"no answer", says(""), stages.LimitExceeded, "cannot be read", "smaller", stages.Traits{}},
		{"no verdict", says("[]"), stages.LimitExceeded, "cannot be read", "smaller", stages.Traits{}},
		{"an endless answer", says(`{"Mistake":"` + strings.Repeat("x", 300<<10)), stages.LimitExceeded, "", "smaller", stages.Traits{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPool(t, checking(test.check), sandbox.Options{Warm: -1})
			traits, err := p.Plan("somebody", "", "").Check(t.Context(), jqOf(".a"))
			if test.code == "" {
				if err != nil || traits != test.traits {
					t.Errorf("got %+v, %v, want %+v", traits, err, test.traits)
				}
				return
			}
			var e *stages.Error
			if !errors.As(err, &e) || e.Code != test.code || !strings.Contains(e.Msg, test.msg) || !strings.Contains(e.Hint, test.hint) || len(e.Msg) > 4<<10 {
				t.Errorf("got %.300v, want %s with %q and hint %q", err, test.code, test.msg, test.hint)
			}
		})
	}
}

// TestCheckLimits: a check has the limits that are set, and its error names them.
func TestCheckLimits(t *testing.T) {
	given := make(chan wire.Check, 1)
	fails := func(reason wire.Reason) *scripted {
		return checking(func(_ context.Context, _ *wire.Stream, c wire.Chain) wire.Outcome {
			given <- *c.Commands[0].Check
			return wire.Outcome{Failure: &wire.Failure{Reason: reason, Limit: c.Commands[0].Check.Memory}}
		})
	}
	for _, test := range []struct {
		limit  string
		reason wire.Reason
		o      sandbox.Options
		want   wire.Check
		msg    string
	}{
		{"check", wire.CPULimit, sandbox.Options{}, wire.Check{CPU: time.Second, Memory: 128 << 20}, "more than 1s of processor time"},
		{"check", wire.CPULimit, sandbox.Options{Check: time.Minute}, wire.Check{CPU: time.Minute, Memory: 128 << 20}, "more than 1m0s of processor time"},
		{"check-memory", wire.MemoryLimit, sandbox.Options{CheckMemory: 1 << 20}, wire.Check{CPU: time.Second, Memory: 1 << 20}, "more than 1 MiB of memory"},
		{"check-memory", wire.MemoryLimit, sandbox.Options{Budget: sandbox.Budget{Memory: 64 << 20}}, wire.Check{CPU: time.Second, Memory: 64 << 20}, "more than 64 MiB of memory"},
	} {
		test.o.Warm, test.want.Script = -1, true
		_, err := newPool(t, fails(test.reason), test.o).Plan("somebody", "", "").Check(t.Context(), jqOf(".a"))
		if got := <-given; got != test.want {
			t.Errorf("the worker was given %+v, want %+v", got, test.want)
		}
		e, ok := errors.AsType[*stages.Error](err)
		if !ok || e.Limit != test.limit || !strings.Contains(e.Msg, test.msg+" (limit "+test.limit+")") || !strings.Contains(e.Hint, "--limit "+test.limit+"=VALUE") {
			t.Errorf("got %v, want limit %s and %q", err, test.limit, test.msg)
		}
	}
	_, err := sandbox.New(t.Context(), sandbox.Options{Driver: fails(""), Budget: sandbox.Budget{Memory: 64 << 20}, CheckMemory: 65 << 20})
	if err == nil || !strings.Contains(err.Error(), "--limit check-memory=SIZE") {
		t.Errorf("more memory than there is: %v", err)
	}
}

// TestCostlyArguments: the hint at arguments whose check took too much is about them, and speaks of no script.
func TestCostlyArguments(t *testing.T) {
	for _, test := range []struct {
		c    stages.Command
		hint string
	}{
		{stages.Command{Name: "shuf", Args: []string{"-i", "1-1000000000000"}}, "a sample of it with -n 10"},
		{stages.Command{Name: "sort", Args: []string{"-k", "1"}}, "ask for less"},
	} {
		d := checking(failsWith(wire.Failure{Reason: wire.MemoryLimit, Limit: 128 << 20}))
		d.hello.Programs = append(d.hello.Programs, wire.Found{Name: "shuf", Path: "/usr/bin/shuf"})
		_, err := newPool(t, d, sandbox.Options{Warm: -1}).Plan("somebody", "", "").Check(t.Context(), test.c)
		e, ok := errors.AsType[*stages.Error](err)
		if !ok || e.Limit != "check-memory" || !strings.Contains(e.Hint, test.hint) || strings.Contains(e.Hint, "program") {
			t.Errorf("%s: got %v, want the hint %q", test.c.Name, err, test.hint)
		}
	}
}

// TestVerdictsKept: a verdict is asked for once, for all callers. A check that a limit has ended is made again.
func TestVerdictsKept(t *testing.T) {
	for _, test := range []struct {
		name  string
		check wire.Runner
		asked int64
	}{
		{"accepted", says(`{}`), 1},
		{"a mistake", says(`{"Mistake":"it is wrong"}`), 1},
		{"a limit", failsWith(wire.Failure{Reason: wire.CPULimit}), 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int64
			d := checking(func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
				asked.Add(1)
				return test.check(ctx, s, c)
			})
			p := newPool(t, d, sandbox.Options{Warm: -1})
			before := d.opened
			for _, caller := range []string{"a", "b", "a"} {
				plan := p.Plan(caller, "", "")
				_, _ = plan.Check(t.Context(), jqOf(".a"))
				_ = plan.Close()
			}
			if n := asked.Load(); n != test.asked {
				t.Errorf("%d checks, want %d", n, test.asked)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if n := int64(d.opened - before); n != test.asked {
				t.Errorf("%d workers were started, want %d", n, test.asked)
			}
		})
	}
}

// TestCheckLost: a worker that dies during a check fails that check, and not the next one.
func TestCheckLost(t *testing.T) {
	var d *scripted
	d = checking(func(_ context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		if strings.Contains(c.Commands[0].Argv[len(c.Commands[0].Argv)-1], "deadly") {
			d.mu.Lock()
			defer d.mu.Unlock()
			_ = d.last.Close()
			return wire.Outcome{}
		}
		return says(`{}`)(nil, s, c)
	})
	p := newPool(t, d, sandbox.Options{Warm: -1})
	plan := p.Plan("somebody", "", "")
	var e *stages.Error
	if _, err := plan.Check(t.Context(), jqOf(".deadly")); !errors.As(err, &e) || e.Code != stages.SandboxUnavailable || !strings.Contains(e.Msg, "the worker was lost during the check") {
		t.Errorf("got %v, want %s and that the worker was lost", err, stages.SandboxUnavailable)
	}
	if _, err := plan.Check(t.Context(), jqOf(".a")); err != nil {
		t.Errorf("the next check: %v", err)
	}
}

// TestCheckWithoutWorker: that there is no worker is a mistake like others, and comes with them.
func TestCheckWithoutWorker(t *testing.T) {
	d := checking(says(`{}`))
	p := newPool(t, d, sandbox.Options{Warm: -1})
	d.mu.Lock()
	d.down = errors.New("the engine is down")
	d.mu.Unlock()
	_, errs := stages.Compile(t.Context(), []byte(`[{"type":"command","command":"jq","args":["."]},{"type":"command","command":"sort","args":["-x"]},
		{"type":"nosuch"},{"type":"command","command":"jq","args":["--nosuch"]}]`), stages.Deps{Commands: p})
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprint(e.Place, " ", e.Code))
	}
	if want := "1 SANDBOX_UNAVAILABLE,2 DISALLOWED_ARGUMENT,3 INVALID_PIPELINE,4 DISALLOWED_ARGUMENT"; strings.Join(got, ",") != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !strings.Contains(errs[0].Msg, "the engine is down") || errs[0].Hint == "" {
		t.Errorf("got %q, hint %q", errs[0].Msg, errs[0].Hint)
	}
}

// TestCheckCancelled: the end of a call ends its check, one that waits for its turn too.
func TestCheckCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	d := checking(func(ctx context.Context, _ *wire.Stream, _ wire.Chain) wire.Outcome {
		close(began)
		<-ctx.Done()
		close(ended)
		return wire.Outcome{}
	})
	p := newPool(t, d, sandbox.Options{Warm: -1})
	ctx, cancel := context.WithCancel(t.Context())
	plan, results := p.Plan("somebody", "", ""), make(chan error, 2)
	for range cap(results) {
		go func() {
			_, err := plan.Check(ctx, jqOf(".a"))
			results <- err
		}()
	}
	<-began
	cancel()
	<-ended
	for range cap(results) {
		var e *stages.Error
		if err := <-results; !errors.As(err, &e) || e.Code != stages.Cancelled {
			t.Errorf("got %v, want %s", err, stages.Cancelled)
		}
	}
}

// TestChecksTakeTurns: a plan of many checks does not keep another one waiting, and there are no more checks at a time
// than processors.
func TestChecksTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		release := make(chan struct{})
		d := checking(func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-release
			running.Add(-1)
			return says(`{}`)(ctx, s, c)
		})
		p := newPool(t, d, sandbox.Options{Warm: -1})
		processors := runtime.GOMAXPROCS(0)
		var done atomic.Int64
		for plan := range 2 * processors {
			large := p.Plan(fmt.Sprint(plan), "", "")
			for i := range 16 {
				go func() {
					_, _ = large.Check(t.Context(), jqOf(fmt.Sprintf(".a%d_%d", plan, i)))
					done.Add(1)
				}()
			}
		}
		synctest.Wait()
		small := make(chan error, 1)
		go func() {
			_, err := p.Plan("small", "", "").Check(t.Context(), jqOf(".small"))
			small <- err
		}()
		synctest.Wait()
		for finished := false; !finished; {
			release <- struct{}{}
			synctest.Wait()
			select {
			case err := <-small:
				if err != nil {
					t.Error(err)
				}
				finished = true
			default:
			}
		}
		if n := done.Load(); n > int64(3*processors) {
			t.Errorf("%d checks of large plans came before the only one of a small plan, of %d plans", n, 2*processors)
		}
		if n := most.Load(); n != int64(processors) {
			t.Errorf("%d checks at a time, want %d", n, processors)
		}
		close(release)
	})
}

// TestPagesHoldUpNoCheck: pages that take long to convert hold up no plan.
func TestPagesHoldUpNoCheck(t *testing.T) {
	converting := make(chan struct{})
	answers := versions(nil)
	p := newPool(t, good(func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		switch {
		case c.Commands[0].Name == programs.HTML:
			converting <- struct{}{}
			<-ctx.Done()
			return wire.Outcome{Failure: &wire.Failure{Reason: wire.Cancelled}}
		case c.Commands[0].Check != nil:
			return says(`{}`)(ctx, s, c)
		}
		return answers(ctx, s, c)
	}), sandbox.Options{Warm: -1})
	ctx, cancel := context.WithCancel(t.Context())
	var pages sync.WaitGroup
	defer pages.Wait()
	defer cancel()
	for range runtime.GOMAXPROCS(0) {
		pages.Go(func() { _, _ = p.Markdown(ctx, "<p>a", "") })
		<-converting
	}
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if _, err := p.Plan("somebody", "", "").Check(within, jqOf(".a")); err != nil {
		t.Errorf("a check while pages are converted: %v", err)
	}
}
