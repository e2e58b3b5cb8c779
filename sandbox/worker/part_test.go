//go:build linux

package worker

import (
	"bytes"
	"io"
	"testing"

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
