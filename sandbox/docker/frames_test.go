package docker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/mcsh-dev/mcsh/sandbox"
)

func frame(kind byte, payload string) []byte {
	h := make([]byte, frameHeader)
	h[0] = kind
	binary.BigEndian.PutUint32(h[4:], uint32(len(payload)))
	return append(h, payload...)
}

func TestFrames(t *testing.T) {
	long := string(bytes.Repeat([]byte{0x10, 0x11, 0, 1}, 100_000))
	whole := bytes.Join([][]byte{frame(1, "ab"), frame(2, "oops\n"), frame(1, ""), frame(1, long)}, nil)
	for _, test := range []struct {
		name   string
		stream []byte
		out    string
		said   string
		err    error
	}{
		{"whole", whole, "ab" + long, "oops", nil},
		{"nothing", nil, "", "", nil},
		{"cut in a payload", whole[:len(whole)-1], "ab" + long[:len(long)-1], "oops", errCut},
		{"cut after a header", frame(1, "a")[:8], "", "", errCut},
		{"cut in a header", whole[:12], "ab", "", errCut},
		{"cut in standard error", frame(2, "oops")[:10], "", "oo", errCut},
		{"kind 9", frame(9, "x"), "", "", errFrame},
		{"standard input", frame(0, "x"), "", "", errFrame},
		{"no zeros", append([]byte{1, 1}, frame(1, "x")[2:]...), "", "", errFrame},
	} {
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(test.stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(test.stream)),
		} {
			var s sandbox.StderrHead
			out, err := io.ReadAll(newFrames(r, &s))
			if string(out) != test.out || s.String() != test.said || !errors.Is(err, test.err) {
				t.Errorf("%s %s: got %d bytes, %q, %v, want %d, %q, %v", test.name, name, len(out), s.String(), err, len(test.out), test.said, test.err)
			}
		}
	}
	var s sandbox.StderrHead
	if _, err := io.ReadAll(newFrames(bytes.NewReader(frame(3, "no space")), &s)); err == nil || err.Error() != "the engine says: no space" {
		t.Errorf("an engine's error: got %v", err)
	}
}

// FuzzFrames compares with the engine's own code, which is more lenient: whatever both take must be the same, and a
// stream that was cut is never a clean end here.
func FuzzFrames(f *testing.F) {
	f.Add(append(frame(1, "ab"), frame(2, "x")...), 1)
	f.Add(frame(1, "abc")[:9], 3)
	f.Add(frame(3, "fault"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		if size < 1 || size > 1000 {
			size = 7
		}
		var s sandbox.StderrHead
		var got bytes.Buffer
		_, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{newFrames(bytes.NewReader(stream), &s)}, make([]byte, size))
		if err != nil {
			return
		}
		var out, errs bytes.Buffer
		if _, err := stdcopy.StdCopy(&out, &errs, bytes.NewReader(stream)); err != nil {
			t.Fatalf("stdcopy refuses what was read: %v", err)
		}
		if !bytes.Equal(got.Bytes(), out.Bytes()) {
			t.Errorf("got %q, stdcopy %q", got.Bytes(), out.Bytes())
		}
		consumed := 0
		for rest := stream; len(rest) > 0; {
			if len(rest) < frameHeader {
				t.Fatalf("a stream that was cut after %d bytes ended well", consumed)
			}
			n := frameHeader + int(binary.BigEndian.Uint32(rest[4:]))
			if len(rest) < n {
				t.Fatalf("a stream that was cut after %d bytes ended well", consumed)
			}
			rest, consumed = rest[n:], consumed+n
		}
	})
}
