package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// inputsOf is a command stage that reads its input and then the named inputs b and c.
func inputsOf(more, b, c string) string {
	return fmt.Sprintf(`{"type":"command","command":"append","args":["@b","@c"]%s,"inputs":{"b":[%s],"c":[%s]}}`, more, b, c)
}

func call(name, args string) string {
	return fmt.Sprintf(`{"type":"tool","server":"demo","name":%q,"args":%s}`, name, args)
}

// TestInputsRunBeside: the inputs run at the same time as each other and as what is before their command, also where
// the command stands deeper and runs often.
func TestInputsRunBeside(t *testing.T) {
	second := inputsOf("", call("slow", `{"ms":2000}`), call("slow", `{"ms":3000}`))
	for _, list := range []string{
		call("slow", `{"ms":1000}`) + "," + second,
		call("slow", `{"ms":1000}`) + "," + inputsOf(`,"for_each":true`, call("slow", `{"ms":2000}`), call("slow", `{"ms":3000}`)),
		call("slow", `{"ms":1000}`) + `,{"type":"for_each","stages":[{"type":"parallel","branches":{"x":[` + second + `]}}]}`,
		inputsOf("", second, call("slow", `{"ms":1000}`)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			start := time.Now()
			if _, _, err := w.run(t, "["+list+"]", ""); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != 3*time.Second {
				t.Errorf("%s took %s of fake time, want 3s", list, got)
			}
		})
	}
}

// TestInputFailsAtOnce: the failure of an input ends a run that waits for something else.
func TestInputFailsAtOnce(t *testing.T) {
	bad := inputsOf("", call("get", `{"id":13}`), call("slow", `{"ms":70000}`))
	for _, list := range []string{
		call("slow", `{"ms":50000}`) + "," + bad,
		call("slow", `{"ms":50000}`) + `,{"type":"for_each","stages":[` + bad + `]}`,
		call("slow", `{"ms":50000}`) + "," + inputsOf("", bad, call("say", `{"text":"c"}`)),
		inputsOf("", bad, call("slow", `{"ms":50000}`)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			start := time.Now()
			_, _, err := w.run(t, "["+list+"]", "")
			var e *stages.Error
			if !errors.As(err, &e) || e.Label != "tool demo/get" || e.Item != 0 {
				t.Errorf("%s: got %v, want the failure of demo/get", list, err)
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("%s took %s of fake time, want none", list, got)
			}
		})
	}
}

// TestInputNotWanted: an input that nobody reads any more is ended as by early stop.
func TestInputNotWanted(t *testing.T) {
	slow := call("slow", `{"ms":50000}`)
	for _, list := range []string{
		call("numbers", `{"n":0}`) + "," + inputsOf(`,"for_each":true`, slow, slow),
		call("numbers", `{"n":0}`) + `,{"type":"for_each","stages":[` + inputsOf("", slow, inputsOf("", slow, slow)) + `]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			start := time.Now()
			p, errs := stages.Compile(t.Context(), []byte("["+list+"]"), w.deps())
			if errs != nil {
				t.Fatal(errs)
			}
			_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{})
			if got := time.Since(start); err != nil || got != 0 {
				t.Errorf("%s: %v after %s of fake time", list, err, got)
			}
			if n := w.tools["slow"].active.Load(); n != 0 {
				t.Errorf("%s: %d calls go on", list, n)
			}
		})
	}
}

// TestInputWithEffects: a call that may have changed something finishes and is reported, whatever fails beside it.
func TestInputWithEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		finished := false
		w.add("slow_write", writes, "x", func(ctx context.Context, _ map[string]any) (string, error) {
			time.Sleep(time.Second)
			finished = ctx.Err() == nil
			return "written", ctx.Err()
		})
		w.add("fail_late", reads, "x", func(context.Context, map[string]any) (string, error) {
			time.Sleep(100 * time.Millisecond) // when the other call is under way
			return "", errors.New("too late")
		})
		_, report, err := w.run(t, "["+inputsOf("", call("slow_write", `{"x":1}`), call("fail_late", `{"x":1}`))+"]", "")
		var e *stages.Error
		if !errors.As(err, &e) || e.Place != "1.c.1" || len(e.Changed) != 1 || e.Changed[0] != "demo/slow_write: 1" {
			t.Errorf("got %v, changed %v, want the failure of 1.c.1 and one call of slow_write", err, e.Changed)
		}
		if !finished {
			t.Error("the call in flight did not finish")
		}
		if s := report.Stages[0].Stages; len(s) != 2 || s[0].Input != "b" || s[0].Place != "1.b.1" || s[0].Calls != 1 || !s[0].Changes {
			t.Errorf("got the report %+v", s)
		}
	})
}

// TestInputHoldsMainBack: while an input is made, what comes before its command is held back by its pipe.
func TestInputHoldsMainBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var before int64
		w.add("late", reads, "x", func(context.Context, map[string]any) (string, error) {
			time.Sleep(10 * time.Second)
			before = w.tools["quick"].calls.Load()
			return "late", nil
		})
		quick := w.add("quick", reads, "x", func(_ context.Context, args map[string]any) (string, error) {
			time.Sleep(time.Millisecond)
			return encode(args), nil
		})
		out, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"quick","for_each":true,"collect":"lines"},`+
			inputsOf("", call("late", `{"x":1}`), call("say", `{"text":"c"}`))+"]", lines(1000))
		if err != nil || before > 2*8+8 {
			t.Errorf("%v; %d calls were made before the input was there, want at most 24", err, before)
		}
		if after := quick.calls.Load(); after != 1000 || len(out) != 9895 {
			t.Errorf("%d calls and %d bytes in all", after, len(out))
		}
	})
}

// TestInputsRunOften: a compiled pipeline has inputs of its own in every run, also side by side.
func TestInputsRunOften(t *testing.T) {
	w := newWorld()
	p := compiled(t, w.deps(), "["+inputsOf("", call("say", `{"text":"b"}`), call("say", `{"text":"c"}`))+"]")
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{})
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := w.tools["say"].calls.Load(); n != 40 {
		t.Errorf("%d calls, want 40", n)
	}
}
