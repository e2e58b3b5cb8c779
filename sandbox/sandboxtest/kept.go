package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// each is a command that runs once per item.
func each(c stages.Command) stages.Command {
	c.Each = true
	return c
}

// A result is all that one call of a filter shows, but for the time it took.
type result struct {
	Out, Code, Place, Msg, Hint, Sample string
	Cut                                 bool
	In, Bytes                           []int64
}

// unread are the last arguments of jq with which it ends before its input does.
var unread = []string{"first(inputs)", "1", "halt", "--version", "$u | ."}

func endsUnread(c stages.Command) bool {
	n := len(c.Args)
	return n > 0 && slices.Contains(unread, c.Args[n-1])
}

// resultOf runs a chain on an item.
func resultOf(t *testing.T, s stages.Session, item string, chain ...stages.Command) (r result) {
	t.Helper()
	used := func(_ int, u stages.Usage) {
		r.In, r.Bytes = append(r.In, u.BytesIn), append(r.Bytes, u.BytesOut)
		if u.Elapsed <= 0 || u.CPU < 0 {
			t.Errorf("item %.40q: got usage %+v, want some time", item, u)
		}
	}
	out, err := run(t.Context(), prepare(t, s, used, chain...), item)
	r.Out = out
	var e *stages.Error
	if errors.As(err, &e) {
		r.Code, r.Place, r.Msg, r.Hint, r.Sample, r.Cut = string(e.Code), string(e.Place), e.Msg, e.Hint, string(e.Sample), e.Cut
	} else if err != nil {
		t.Errorf("item %.40q: %v", item, err)
	}
	if err != nil {
		r.In, r.Bytes = nil, nil // how far the data came before the failure is a matter of chance
	}
	if endsUnread(chain[0]) {
		r.In, r.Sample, r.Cut = nil, "", false // likewise
	}
	return r
}

// testKeptFew and testKept compare, item by item, one process for all of them with one process for each: for some commands of
// each sort, and for the others.
func testKeptFew(t *testing.T, open func() sandbox.Driver) {
	compareKept(t, open, [][]stages.Command{
		{command("jq", "-c", ".")},
		{command("jq", "-c", ". as $x | debug, (1 | stderr), halt_error")},
		{command("jq", "--stream", "-c", ".")},
		{withInputs(1, []string{"users"}, "jq", "-c", "--slurpfile", "u", "@users", "$u, ($u[0].id = 9)")},
		{command("tr", "a-z", "A-Z"), command("jq", "-c", "."), command("tr", "a-z", "A-Z")},
		{command("jq", "-R", "length + 1"), command("awk", "END {exit 3}")},
	})
}

func testKept(t *testing.T, open func() sandbox.Driver) {
	compareKept(t, open, [][]stages.Command{
		{command("jq", ".a")},
		{command("jq", "-c", ".a.b")},
		{command("jq", "-c", ".[]?")},
		{command("jq", "-c", "[., input]")},
		{command("jq", "-c", "reduce inputs as $x (0; . + 1), input_line_number")},
		{command("jq", "-n", "first(inputs)")},
		{command("jq", "-n", "1")},
		{command("jq", "-c", "limit(2; repeat(.))")},
		{command("jq", "-e", ".a?")},
		{command("jq", `"bye\n" | halt_error(3)`)},
		{command("jq", "halt")},
		{command("jq", "-R", "length")},
		{command("jq", "-Rs", "length")},
		{command("jq", "-s", "length")},
		{command("jq", "-j", "--arg", "x", "y", "--args", "$x, $ARGS.positional[0], (.a? = 5)", "p")},
		{command("jq", "-c", ".a? |= ., try error(\"x\") catch ., error({a: 1})")},
		{command("jq", "--version")},
		{withInputs(2, []string{"bad"}, "jq", "-c", "--slurpfile", "u", "@bad", "$u | .")},
		{command("jq", "-c", ".a?"), command("jq", "-c", "[.]"), command("head", "-n", "1")},
	})
}

func compareKept(t *testing.T, open func() sandbox.Driver, chains [][]stages.Command) {
	t.Helper()
	items := []string{
		`{"a":1,"b":[1,2,3]}`, ``, "{\"a\":2}\n{\"a\":3}\n", `{"a":`, `[[1],[2],["x"]]`, `{"a":"text"}`, "null", "1 2 3 4", `"é\u0000"`,
		`{"a":{"b":12345678901234567890.5}}`, "not json", strings.Repeat(`{"a":3} `, 50), `[` + strings.Repeat(`{"a":[1,2]},`, parttest.Times(6_000, 20_000)) + `1]`, `{"a":1}`,
	}
	s := newSession(t, open)
	keep(t, s, 1, "users", `{"id":1} {"id":2}`)
	keep(t, s, 2, "bad", `{"id":`)
	for _, chain := range chains {
		t.Run(strings.ReplaceAll(fmt.Sprint(chain[0].Args), "/", "_"), func(t *testing.T) {
			var one []stages.Command
			for _, c := range chain {
				one = append(one, each(c))
			}
			for i, item := range items {
				want, got := resultOf(t, s, item, chain...), resultOf(t, s, item, one...)
				if want.Code != "" && (strings.HasPrefix(want.Out, got.Out) || strings.HasPrefix(got.Out, want.Out)) {
					want.Out = got.Out // how far it came is a matter of chance too
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("item %d, a process for it (-), one for all (+):\n%.2000s", i, diff)
				}
			}
		})
	}
}

// testKeptFaults has items fail in every way between others that do not.
func testKeptFaults(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	const program = `if . == "loop" then def f: f; f elif . == "memory" then reduce range(40) as $n ("xxxxxxxx"; . + .) | length ` +
		`elif . == "output" then range(300000) elif . == "noise" then range(200000) | debug | empty ` +
		`elif . == "deep" then def g: [g]; g elif . == "error" then error("no") else . end`
	c := each(command("jq", "-c", program))
	quick := c
	quick.Timeout = loopTime // the items before and behind have to be done by then
	var output strings.Builder
	for i := range 300_000 {
		fmt.Fprintln(&output, i)
	}
	for _, test := range []struct {
		item, out string
		command   stages.Command
		code      stages.Code
		msg       string
	}{
		{`"loop"`, "", quick, stages.Timeout, loopTime.String()},
		{`"memory"`, "", c, stages.LimitExceeded, "memory"},
		{`"deep"`, "", c, stages.LimitExceeded, ""},
		{`"output"`, output.String(), c, "", ""},
		{`"noise"`, "", c, "", ""},
		{`"error"`, "", c, stages.CommandFailed, "no"},
	} {
		t.Run(test.item, func(t *testing.T) {
			f := prepare(t, s, nil, test.command)
			if out, err := run(t.Context(), f, "1"); err != nil || out != "1\n" {
				t.Errorf("before: got %.100q, %v", out, err)
			}
			out, err := run(t.Context(), f, test.item)
			if test.code == "" {
				if err != nil || out != test.out {
					t.Errorf("got %d bytes, %v, want %d", len(out), err, len(test.out))
				}
			} else if e := asError(t, err); e.Code != test.code || !strings.Contains(e.Msg, test.msg) {
				t.Errorf("got %s: %s, want %s with %q", e.Code, e.Msg, test.code, test.msg)
			}
			if out, err := run(t.Context(), f, "2"); err != nil || out != "2\n" {
				t.Errorf("afterwards: got %.100q, %v", out, err)
			}
		})
	}
}

// testKeptFlow sends large items side by side, one of which has a reader that reads nothing until the others are done,
// and cancels one that waits.
func testKeptFlow(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	f := prepare(t, s, nil, each(command("jq", "-c", ".")))
	line := `{"a":"` + strings.Repeat("x", 1000) + "\"}\n"
	item := strings.Repeat(line, parttest.Times(6<<20, 16<<20)/len(line))
	released := make(chan struct{})
	var others, blocked errgroup.Group
	blocked.Go(func() error {
		var out bytes.Buffer
		err := f(t.Context(), strings.NewReader(item), writerFunc(func(p []byte) (int, error) { <-released; return out.Write(p) }))
		if err == nil && out.String() != item {
			err = fmt.Errorf("got %d bytes of %d", out.Len(), len(item))
		}
		return err
	})
	for range 3 {
		others.Go(func() error {
			out, err := run(t.Context(), f, item)
			if err == nil && out != item {
				err = fmt.Errorf("got %d bytes of %d", len(out), len(item))
			}
			return err
		})
	}
	err := others.Wait()
	close(released)
	if err := errors.Join(err, blocked.Wait()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
		go func() {
			_, _ = io.WriteString(w, "1\n") // and more to come
		}()
		err := f(ctx, r, writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
		if e := asError(t, err); e.Code != stages.Cancelled {
			t.Errorf("got %s, want %s", e.Code, stages.Cancelled)
		}
		if err := f(t.Context(), strings.NewReader(item), &closing{1 << 10}); err != nil {
			t.Errorf("a reader that has enough: got %v", err)
		}
		if out, err := run(t.Context(), f, "3"); err != nil || out != "3\n" {
			t.Errorf("afterwards: got %q, %v", out, err)
		}
	}
}
