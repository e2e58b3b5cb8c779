//go:build linux

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/wire"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// echo is a program that reads some of its input, says it, complains about it and exits with the size.
func echo(some int64) programs.Runner {
	return func(_ context.Context, files programs.IO) int {
		n, err := io.Copy(files.Out, io.LimitReader(files.In, some))
		fmt.Fprint(files.Err, n, err)
		return int(n)
	}
}

// specOf is the frame of a spec.
func specOf(t testing.TB, s appletSpec) []byte {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return frame(t, frameSpec, text)
}

func frame(t testing.TB, kind byte, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := (&frameWriter{w: &b}).write(kind, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func echoes(some int64) func(appletSpec) (programs.Runner, error) {
	return func(appletSpec) (programs.Runner, error) { return echo(some), nil }
}

func TestAttend(t *testing.T) {
	large := strings.Repeat("0123456789", 3*frameMax/10)
	for _, some := range []int64{0, 3, wire.MaxData, frameMax, 10 * frameMax} {
		var out bytes.Buffer
		in := bytes.NewBuffer(specOf(t, appletSpec{}))
		w := frameWriter{w: in}
		items := []string{"abc", "", large, "defg", large}
		for _, item := range items {
			if item != "" {
				if n, err := w.write(frameData, []byte(item)); n != len(item) || err != nil {
					t.Fatal(n, err)
				}
			}
			if _, err := w.write(frameEnd, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := serveInputs(echoes(some), in, &out); err != nil {
			t.Fatalf("some %d: %v", some, err)
		}
		r := frameReader{r: bufio.NewReaderSize(&out, frameHeader+frameMax)}
		for i, item := range items {
			want := item[:min(len(item), int(some))]
			var said, messages strings.Builder
			status := -1
			for status < 0 {
				if err := r.next(); err != nil {
					t.Fatalf("some %d, item %d: %v", some, i, err)
				}
				var err error
				switch r.kind {
				case frameData:
					_, err = io.CopyN(&said, &r, int64(r.left))
				case frameMessage:
					_, err = io.CopyN(&messages, &r, int64(r.left))
				case frameStatus:
					status, err = r.status()
				}
				if err != nil {
					t.Fatalf("some %d, item %d: %v", some, i, err)
				}
			}
			if said.String() != want || messages.String() != fmt.Sprint(len(want), nil) || status != len(want) {
				t.Errorf("some %d, item %d: got %d bytes, %q, status %d, want %d bytes", some, i, said.Len(), messages.String(), status, len(want))
			}
		}
		if err := r.next(); err != io.EOF {
			t.Errorf("some %d: more frames: %v", some, err)
		}
	}
}

// TestAttendBroken: what is no item ends the applet with an error.
func TestAttendBroken(t *testing.T) {
	for _, test := range []struct{ name, in string }{
		{"cut header", "d\x00\x00"},
		{"cut item", "d\x00\x00\x00\x05ab"},
		{"no end", "d\x00\x00\x00\x02ab"},
		{"too long", "d\xff\x00\x00\x00"},
		{"unknown", "x\x00\x00\x00\x00"},
		{"end with a payload", "e\x00\x00\x00\x01a"},
	} {
		if err := serveInputs(echoes(10), io.MultiReader(bytes.NewReader(specOf(t, appletSpec{})), strings.NewReader(test.in)), io.Discard); err == nil {
			t.Errorf("%s: no error", test.name)
		}
	}
}

// FuzzFrames: whatever an applet says, reading it ends, and no frame is longer than it may be.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("d\x00\x00\x00\x02abe\x00\x00\x00\x00"))
	f.Add([]byte("m\x00\x00\x00\x01!s\x00\x00\x00\x04\xff\xff\xff\xff"))
	f.Add([]byte("d\x7f\xff\xff\xff"))
	f.Add([]byte("0\x00\x0000"))
	f.Add(append(specOf(f, appletSpec{Name: "jq", Args: []string{"-c", "."}, Memory: 1 << 20, Items: true, Check: true}), "e\x00\x00\x00\x00"...))
	f.Add(specOf(f, appletSpec{Inputs: []string{"users"}, Files: 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := io.MultiReader(bytes.NewReader(specOf(t, appletSpec{})), bytes.NewReader(data))
		if err := serveInputs(echoes(100), in, io.Discard); err == nil && len(data) > 0 && data[len(data)-1] == 'd' {
			t.Error("a frame without a length was taken")
		}
		r := frameReader{r: bufio.NewReaderSize(bytes.NewReader(data), frameHeader+frameMax)}
		for r.next() == nil {
			if r.left > frameMax {
				t.Fatalf("a frame of %d bytes", r.left)
			}
			if r.kind == frameStatus {
				if _, err := r.status(); err != nil {
					break
				}
			}
			if _, err := io.CopyN(io.Discard, &r, int64(r.left)); err != nil && err != io.ErrUnexpectedEOF { // a frame that is cut
				t.Fatal(err)
			}
		}
	})
}
