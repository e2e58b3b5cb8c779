//go:build linux

package worker

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// FuzzPart: however the input comes in, its part goes out, as cutting all of it says.
func FuzzPart(f *testing.F) {
	f.Add([]byte("a\nb\nc"), int64(1), int64(1), false, false, byte(2))
	f.Add([]byte("a\x00b\x00"), int64(0), int64(1), false, true, byte(1))
	f.Add([]byte("abcdef"), int64(2), int64(-1), true, false, byte(4))
	f.Add([]byte("abc"), int64(0), int64(0), false, false, byte(3))
	f.Fuzz(func(t *testing.T, data []byte, skip, take int64, byBytes, zero bool, chunk byte) {
		which := wire.Part{Skip: max(skip, 0), Take: take, Bytes: byBytes, Zero: zero}
		p := &process{}
		exits := make(chan *process, 1)
		e := p.pass(which, 0, exits)
		go func() {
			for rest := data; len(rest) > 0; {
				n := min(len(rest), int(chunk)+1)
				if _, err := e.in.Write(rest[:n]); err != nil {
					break
				}
				rest = rest[n:]
			}
			e.in.Close()
		}()
		got, err := io.ReadAll(e.out)
		if want := cut(data, which); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v of %q is %q, %v, want %q", which, data, got, err, want)
		}
		if <-exits != p {
			t.Error("it has not exited")
		}
	})
}

func cut(data []byte, which wire.Part) []byte {
	mark := []byte{'\n'}
	switch {
	case which.Bytes:
		mark = nil // bytes.SplitAfter would look for characters
	case which.Zero:
		mark = []byte{0}
	}
	var units [][]byte
	if mark != nil {
		units = bytes.SplitAfter(data, mark)
	} else {
		for i := range data {
			units = append(units, data[i:i+1])
		}
	}
	units = units[min(which.Skip, int64(len(units))):]
	if which.Take >= 0 {
		units = units[:min(which.Take, int64(len(units)))]
	}
	return bytes.Join(units, nil)
}

// dialParts returns a client of a worker without programs: it can only wait and pass on parts.
func dialParts(t *testing.T) *wire.Client {
	t.Helper()
	ours, theirs := net.Pipe()
	w := &worker{}
	w.meter.inputs, w.meter.idle = &w.inputs, &w.idle
	served := make(chan error, 1)
	go func() {
		served <- wire.Serve(context.Background(), theirs, wire.Hello{}, wire.Host{Run: w.run})
	}()
	c, err := wire.Dial(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-served })
	return c
}

// start runs a chain.
func start(t *testing.T, c *wire.Client, commands ...wire.Command) *wire.Stream {
	t.Helper()
	id, err := wire.Prepare(wire.Chain{Commands: commands})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPartChains: parts and timers, as many as a chain may have, give what one after the other gives, and leave nothing
// that still runs, however they are ended.
func TestPartChains(t *testing.T) {
	c := dialParts(t)
	before := runtime.NumGoroutine()
	for seed := range uint64(parttest.Times(30, 80)) {
		random := rand.New(rand.NewPCG(seed, 0))
		in := []byte(strings.Repeat("a line\nb\x00\n\n", random.IntN(20_000)))
		sleeps, cancelled := random.IntN(4) == 0, random.IntN(4) == 0
		want := in
		commands := make([]wire.Command, 1+random.IntN(64))
		for i := range commands {
			if sleeps && random.IntN(10) == 0 {
				commands[i] = wire.Command{Timer: time.Duration(1 + random.IntN(3_000_000)), Timeout: time.Minute}
				want = nil
				continue
			}
			p := wire.Part{Skip: random.Int64N(3), Take: random.Int64N(40_000) - 1, Bytes: random.IntN(3) == 0, Zero: random.IntN(5) == 0}
			commands[i] = wire.Command{Part: &p, Timeout: time.Minute}
			want = cut(want, p)
		}
		s := start(t, c, commands...)
		go func() {
			if _, err := s.Write(in); err == nil {
				_ = s.End() // a lost connection shows below
			}
		}()
		if cancelled {
			time.AfterFunc(time.Duration(random.IntN(3_000_000)), func() { _ = s.Cancel() })
		}
		got, _ := io.ReadAll(s) // likewise
		o, err := s.Outcome()
		switch f := o.Failure; {
		case err != nil:
			t.Fatal(err)
		case cancelled && (f == nil || f.Reason == wire.Cancelled):
		case f != nil || !bytes.Equal(got, want) || o.Usage[len(commands)-1].Out != int64(len(want)):
			t.Fatalf("seed %d: got %d bytes, %+v, want %d", seed, len(got), o, len(want))
		}
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}

// TestPartTakesNoTime: a part whose reader is slow, but always there, is not held to its timeout.
func TestPartTakesNoTime(t *testing.T) {
	const timeout = time.Second
	s := start(t, dialParts(t), wire.Command{Part: &wire.Part{Take: -1}, Timeout: timeout})
	go func() {
		for {
			if _, err := s.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 32<<10)
	for began := time.Now(); time.Since(began) < 4*timeout; time.Sleep(timeout / 40) { // is what is tested, no synchronisation
		if _, err := s.Read(buf); err != nil {
			break
		}
	}
	_ = s.Cancel() // a lost connection shows below
	if o, err := s.Outcome(); err != nil || o.Failure == nil || o.Failure.Reason != wire.Cancelled {
		t.Errorf("got %+v, %v, want it cancelled", o.Failure, err)
	}
}

// TestPartAbandons: what has ended its output and goes on is killed when the part behind it has exited, and not while that
// waits for it.
func TestPartAbandons(t *testing.T) {
	for _, exited := range []bool{false, true} {
		killed := false
		full := &process{index: 1, exited: exited}
		full.enough.Store(true)
		r := &run{
			processes: []*process{{cancel: func() { killed = true }}, full},
			chain:     wire.Chain{Commands: []wire.Command{{Timer: time.Hour}, {Part: &wire.Part{}}}},
		}
		r.tick(tick)
		if killed != exited {
			t.Errorf("the part has exited: %v, and what is before it was killed: %v", exited, killed)
		}
	}
}
