//go:build linux

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestReusable: an applet that has done more than a little gets no other program.
func TestReusable(t *testing.T) {
	limits := jail.Limits{CPU: 61 * time.Second, Data: 512 << 20}
	for _, test := range []struct {
		name string
		k    *kept
		want bool
	}{
		{"new", &kept{limits: limits, turns: 1, used: 3 * time.Millisecond, alone: 1 << 20, data: 76 << 20}, true},
		{"has had its turns", &kept{limits: limits, turns: maxTurns}, false},
		{"has named inputs", &kept{limits: limits, bound: true}, false},
		{"has worked long", &kept{limits: limits, used: reuseCPU + 1}, false},
		{"has worked long for its limit", &kept{limits: jail.Limits{CPU: 3 * time.Second}, used: 400 * time.Millisecond}, false},
		{"has much memory", &kept{limits: limits, alone: reuseMemory + 1}, false},
		{"has taken much of its limit", &kept{limits: limits, data: startData + 1}, false},
		{"has stacks of its own for its threads", &kept{limits: limits, born: 113 << 20, data: 138 << 20}, true},
		{"has those, and a second piece of heap", &kept{limits: limits, born: 113 << 20, data: 186 << 20}, false},
		{"was seen before it had started", &kept{limits: limits, born: 5 << 20, data: 138 << 20}, false},
	} {
		if got := test.k.reusable(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestRenew: between two runs applets forget their programs and keep their order, that in which they have waited.
func TestRenew(t *testing.T) {
	var all idlePool
	for n := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		all.idle = append(all.idle, &kept{key: "a program", turns: n, limits: jail.Limits{CPU: time.Minute}, in: w, send: frameWriter{w: w}})
	}
	if all.renew(); len(all.idle) != 3 {
		t.Errorf("%d are left, want 3", len(all.idle))
	}
	for n, k := range all.idle {
		if k.turns != n || k.key != "" {
			t.Errorf("applet %d waits as number %d, with the program %q", k.turns, n, k.key)
		}
	}
}

// TestLearn: what comes on an applet's input gives it one program after another, of which the present one alone serves
// items; what is no program ends it.
func TestLearn(t *testing.T) {
	ready := func(s appletSpec) (programs.Runner, error) {
		if s.Name != "say" {
			return nil, errNoApplet
		}
		return func(_ context.Context, files programs.IO) int {
			in, err := io.ReadAll(files.In)
			fmt.Fprintf(files.Out, "%s(%s)%v ", s.Args, in, err)
			return 0
		}, nil
	}
	first, two := appletSpec{Name: "say", Args: []string{"one"}}, appletSpec{Name: "say", Args: []string{"two"}}
	item, none := append(frame(t, frameData, []byte("x")), frame(t, frameEnd, nil)...), frame(t, frameSpec, nil)
	text := specOf(t, two)[frameHeader:]
	for _, test := range []struct {
		name string
		in   [][]byte
		out  string
		want error // nil: the end of the input
	}{
		{"no other", [][]byte{item, item}, "[one](x)<nil> [one](x)<nil> ", nil},
		{"another", [][]byte{item, specOf(t, two), item}, "[one](x)<nil> [two](x)<nil> ", nil},
		{"none between", [][]byte{none, specOf(t, two), specOf(t, two), item}, "[two](x)<nil> ", nil},
		{"forgotten", [][]byte{item, none}, "[one](x)<nil> ", nil},
		{"an item after it was forgotten", [][]byte{none, item}, "", errFrames},
		{"within an item", [][]byte{frame(t, frameData, []byte("x")), specOf(t, two), item}, "[one](x)not a frame ", errFrames},
		{"no program", [][]byte{specOf(t, appletSpec{Name: "other"}), item}, "", errNoApplet},
		{"cut", [][]byte{frame(t, frameSpec, text[:len(text)-1]), item}, "", errFrames},
		{"a byte too many", [][]byte{frame(t, frameSpec, append(bytes.Clone(text), 0)), item}, "", errFrames},
		{"garbage", [][]byte{frame(t, frameSpec, bytes.Repeat([]byte{0xff}, 100)), item}, "", errFrames},
		{"with inputs", [][]byte{specOf(t, appletSpec{Name: "say", Inputs: []string{"a"}}), item}, "", errFrames},
		{"with files", [][]byte{specOf(t, appletSpec{Name: "say", Files: 1}), item}, "", errFrames},
	} {
		var out bytes.Buffer
		err := serveInputs(ready, io.MultiReader(bytes.NewReader(specOf(t, first)), bytes.NewReader(bytes.Join(test.in, nil))), &out)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got error %v, want %v", test.name, err, test.want)
		}
		if said := data(t, out.Bytes()); test.want == nil && said != test.out {
			t.Errorf("%s: got %q, want %q", test.name, said, test.out)
		}
	}
}

// TestCheckThenRun: the first item of a program that is checked is answered with its verdict, and those that follow by the
// program, which was compiled once.
func TestCheckThenRun(t *testing.T) {
	compiled := 0
	o := Options{Extra: []programs.Program{{Name: "say", Script: true, Ready: func(args []string, _ func(string) (io.Reader, error)) (programs.Runner, programs.Verdict) {
		compiled++
		return func(_ context.Context, files programs.IO) int {
			fmt.Fprint(files.Out, "ran ", args)
			return 0
		}, programs.Verdict{StopsEarly: true}
	}}}}
	var out bytes.Buffer
	in := bytes.NewBuffer(specOf(t, appletSpec{Name: "say", Args: []string{"x"}, Check: true}))
	items := frameWriter{w: in}
	for range 3 {
		if _, err := items.write(frameEnd, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := serveInputs(o.ready, in, &out); err != nil {
		t.Fatal(err)
	}
	if got, want := data(t, out.Bytes()), "{\"StopsEarly\":true}\nran [x]ran [x]"; got != want || compiled != 1 {
		t.Errorf("got %q and %d compilations, want %q and one", got, compiled, want)
	}
}

// TestCheckWithoutScript: a linked program that has no script is tried out by running it, and has no verdict.
func TestCheckWithoutScript(t *testing.T) {
	program := programs.Program{Name: "say", Ready: func([]string, programs.Inputs) (programs.Runner, programs.Verdict) {
		return func(context.Context, programs.IO) int { return 3 }, programs.Verdict{}
	}}
	o := Options{Extra: []programs.Program{program}}
	p := &process{tool: &tool{Program: program}}
	run, err := o.ready(p.spec(wire.Command{Name: "say", Argv: []string{"say"}, Check: &wire.Check{}}, wire.Chain{}))
	if err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), programs.IO{Out: io.Discard}); status != 3 {
		t.Errorf("a trial has status %d, want that of the program", status)
	}
	if _, err := o.ready(appletSpec{Name: "say", Check: true}); !errors.Is(err, errNoApplet) {
		t.Errorf("a verdict on it: got %v, want %v", err, errNoApplet)
	}
}

// data returns what frames hold of output.
func data(t *testing.T, frames []byte) (out string) {
	t.Helper()
	for len(frames) > 0 {
		n := frameHeader + int(frames[4]) // all are short
		if frames[0] == frameData {
			out += string(frames[frameHeader:n])
		}
		frames = frames[n:]
	}
	return out
}
