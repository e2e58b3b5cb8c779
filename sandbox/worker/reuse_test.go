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
	if n := all.renew(maxSpares); n != 3 {
		t.Errorf("%d are left, want 3", n)
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
	frame := func(kind byte, text []byte) []byte {
		var b bytes.Buffer
		if _, err := (&frameWriter{w: &b}).write(kind, text); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	spec := func(s appletSpec) []byte {
		text, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := appletSpec{Name: "say", Args: []string{"one"}, Keep: true}
	two := spec(appletSpec{Name: "say", Args: []string{"two"}, Keep: true})
	item := append(frame(frameData, []byte("x")), frame(frameEnd, nil)...)
	for _, test := range []struct {
		name string
		in   [][]byte
		out  string
		want error // nil: the end of the input
	}{
		{"no other", [][]byte{item, item}, "[one](x)<nil> [one](x)<nil> ", nil},
		{"another", [][]byte{item, frame(frameSpec, two), item}, "[one](x)<nil> [two](x)<nil> ", nil},
		{"none between", [][]byte{frame(frameSpec, nil), frame(frameSpec, two), frame(frameSpec, two), item}, "[two](x)<nil> ", nil},
		{"forgotten", [][]byte{item, frame(frameSpec, nil)}, "[one](x)<nil> ", nil},
		{"an item after it was forgotten", [][]byte{frame(frameSpec, nil), item}, "", errFrames},
		{"within an item", [][]byte{frame(frameData, []byte("x")), frame(frameSpec, two), item}, "[one](x)not a frame ", errFrames},
		{"no program", [][]byte{frame(frameSpec, spec(appletSpec{Name: "other", Keep: true})), item}, "", errNoApplet},
		{"cut", [][]byte{frame(frameSpec, two[:len(two)-1]), item}, "", errFrames},
		{"a byte too many", [][]byte{frame(frameSpec, append(bytes.Clone(two), 0)), item}, "", errFrames},
		{"garbage", [][]byte{frame(frameSpec, bytes.Repeat([]byte{0xff}, 100)), item}, "", errFrames},
		{"not to be kept", [][]byte{frame(frameSpec, spec(appletSpec{Name: "say"})), item}, "", errFrames},
		{"with inputs", [][]byte{frame(frameSpec, spec(appletSpec{Name: "say", Keep: true, Inputs: []string{"a"}})), item}, "", errFrames},
		{"with files", [][]byte{frame(frameSpec, spec(appletSpec{Name: "say", Keep: true, Files: 1})), item}, "", errFrames},
	} {
		var out bytes.Buffer
		err := attend(first, ready, bytes.NewReader(bytes.Join(test.in, nil)), &out)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got error %v, want %v", test.name, err, test.want)
		}
		if said := data(t, out.Bytes()); test.want == nil && said != test.out {
			t.Errorf("%s: got %q, want %q", test.name, said, test.out)
		}
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
