package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestItems: items arrive as they were sent, and none that is cut off or larger than is allowed.
func TestItems(t *testing.T) {
	items := []string{"", "a", "\x00\xff\n", strings.Repeat("x", wire.MaxItem), ""}
	var left []byte
	for _, item := range items {
		left = wire.AppendItem(left, []byte(item))
	}
	for i, want := range items {
		item, rest, ok := wire.CutItem(left)
		if !ok || string(item) != want {
			t.Fatalf("item %d: got %.20q, %v", i, item, ok)
		}
		left = rest
	}
	if len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	for _, data := range [][]byte{nil, {0, 0}, {0, 0, 0, 2}, {0, 0, 0, 2, 'x'}, {0xff, 0xff, 0xff, 0xff}, wire.AppendItem(nil, make([]byte, wire.MaxItem+1))} {
		if item, rest, ok := wire.CutItem(data); ok || !bytes.Equal(rest, data) {
			t.Errorf("%.20q: got item %.20q", data, item)
		}
	}
}

// FuzzCutItem: what is cut off data and what is left of it are the data, as items and as answers.
func FuzzCutItem(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01ab"))
	f.Add([]byte("\x00\x01\x00\x01"))
	f.Add([]byte("\x00\x00\x00\x05\xff\xff\xff\xffab"))
	f.Fuzz(func(t *testing.T, data []byte) {
		item, rest, ok := wire.CutItem(data)
		if again := append(wire.AppendItem(nil, item), rest...); ok && !bytes.Equal(again, data) || len(item) > wire.MaxItem {
			t.Errorf("%q: got item %q and %q", data, item, rest)
		}
		status, text, rest, ok := wire.CutAnswer(data)
		if again := append(wire.AppendAnswer(nil, status, text), rest...); ok && !bytes.Equal(again, data) || len(text) > wire.MaxAnswer {
			t.Errorf("%q: got status %d, %q and %q", data, status, text, rest)
		}
	})
}
