package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// chunks are the streams of one connection.
func chunks(t testing.TB, streams ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := wire.NewChunkWriter(&b)
	for _, s := range streams {
		if n, err := io.WriteString(w, s); err != nil || n != len(s) {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestChunks: streams come one after another as they were sent, whatever is in them, and a connection that ends is no end
// of a stream.
func TestChunks(t *testing.T) {
	streams := []string{"ab", "", "\x00\x00\x00\x00", strings.Repeat("0123456789abcde\n", 10_000), "z"}
	sent := chunks(t, streams...)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(sent))} {
		c := wire.NewChunkReader(r)
		for i, want := range streams {
			if got, err := io.ReadAll(c); err != nil || string(got) != want {
				t.Errorf("%s: stream %d: got %d bytes, %v, want %d", name, i, len(got), err, len(want))
			}
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: after the last stream: %v, want that the connection has ended", name, err)
		}
	}
	whole := chunks(t, "abc")
	for n := range whole {
		_, err := io.ReadAll(wire.NewChunkReader(bytes.NewReader(whole[:n])))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v, want that the connection has ended", n, err)
		}
	}
	var wrong *wire.ProtocolError
	if _, err := io.ReadAll(wire.NewChunkReader(strings.NewReader("\x7f\x00\x00\x01abc"))); !errors.As(err, &wrong) {
		t.Errorf("a chunk that is too long: %v", err)
	}
}

// FuzzChunks: whatever comes is read, once, or is an error, and what was read can be sent again.
func FuzzChunks(f *testing.F) {
	f.Add(chunks(f, "ab", "", "c"))
	f.Add([]byte{0, 1, 0, 1, 0})
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := wire.NewChunkReader(bytes.NewReader(sent))
		var streams []string
		for read := 0; ; {
			got, err := io.ReadAll(c)
			if read += len(got); read > len(sent) {
				t.Fatalf("%d bytes of %d", read, len(sent))
			}
			if err != nil {
				break
			}
			streams = append(streams, string(got))
		}
		c = wire.NewChunkReader(bytes.NewReader(chunks(t, streams...)))
		for i, want := range streams {
			if got, err := io.ReadAll(c); err != nil || string(got) != want {
				t.Errorf("stream %d: %q, %v, want %q", i, got, err, want)
			}
		}
	})
}

// TestSilentWorker: a worker that hangs is given up after a while, and one that answers is not, however long nothing
// runs in it.
func TestSilentWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		awake := connect(t)
		r, w := io.Pipe()
		go func() { _, _ = w.Write(greeting) }()
		still, err := wire.Dial(t.Context(), duplex{r, io.Discard, func() { w.Close() }})
		if err != nil {
			t.Fatal(err)
		}
		defer still.Close()
		time.Sleep(wire.Silence)
		if err := errors.Join(awake.Err(), still.Err()); err != nil {
			t.Errorf("given up too early: %v", err)
		}
		time.Sleep(wire.Silence + time.Second)
		if still.Err() == nil {
			t.Error("a worker that hangs is not given up")
		}
		time.Sleep(10 * wire.Silence)
		if err := awake.Err(); err != nil {
			t.Errorf("a worker that answers is given up: %v", err)
		}
	})
}
