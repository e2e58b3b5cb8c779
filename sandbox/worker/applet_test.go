//go:build linux

package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzSpec: what is written is read again, and anything else is read or refused; neither takes a byte of what follows.
func FuzzSpec(f *testing.F) {
	for _, s := range []appletSpec{
		{},
		{Name: "jq", Args: []string{"-c", "", ".a"}, Memory: 512 << 20, Inputs: []string{"users", "b"}, Keep: true},
		{Name: "jq", Args: []string{strings.Repeat("\x00é", 1000)}},
	} {
		text, err := s.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		got, err := readSpec(bytes.NewReader(text))
		if diff := cmp.Diff(s, got); err != nil || diff != "" {
			f.Errorf("%v, sent (-) and read (+):\n%s", err, diff)
		}
		for n := range text {
			if _, err := readSpec(bytes.NewReader(text[:n])); err == nil {
				f.Errorf("%d bytes of %d were taken for a spec", n, len(text))
			}
		}
		if _, err := readSpec(bytes.NewReader(append([]byte{0, 0, byte((len(text) - 3) >> 8), byte(len(text) - 3)}, append(text[4:], 'x')...))); !errors.Is(err, errFrames) {
			f.Errorf("a byte too many: got %v", err)
		}
	}
	if _, err := (appletSpec{Args: []string{strings.Repeat("x", maxSpec)}}).encode(); err == nil {
		f.Error("a spec that nobody reads was written")
	}
	f.Add([]byte{0, 0, 0, 9, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, text []byte) {
		in := bytes.NewReader(text)
		s, err := readSpec(in)
		if err != nil {
			return
		}
		again, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := readSpec(bytes.NewReader(again))
		if diff := cmp.Diff(s, read); err != nil || diff != "" {
			t.Errorf("%v, sent (-) and read (+):\n%s", err, diff)
		}
		if want := len(text) - 4 - int(binary.BigEndian.Uint32(text)); in.Len() != want {
			t.Errorf("%d bytes are left, want %d", in.Len(), want)
		}
	})
}
