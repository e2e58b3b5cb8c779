package remote

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// read reads a stream to its end. An event that is too long is there as its size.
func read(t *testing.T, in io.Reader, limit int64) (got []string) {
	t.Helper()
	s := newEvents(in, limit, nil)
	for {
		e, err := s.next()
		var long *rpc.Overlong
		switch {
		case errors.As(err, &long):
			if long.Size <= limit || len(long.Head) > rpc.EdgeLength || len(long.Tail) > rpc.EdgeLength {
				t.Fatalf("%d bytes are too long; %d and %d of them are kept", long.Size, len(long.Head), len(long.Tail))
			}
			got = append(got, "too long")
			continue
		case err == io.EOF || errors.Is(err, rpc.ErrTooLarge): // it ends, or ends in one that is too long
			return got
		case err != nil:
			t.Fatal(err)
		case int64(len(e.data)) > limit:
			t.Fatalf("an event has %d bytes, of at most %d", len(e.data), limit)
		}
		got = append(got, e.name+"|"+e.id+"|"+string(e.data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                 {"", nil},
		"one":                     {"event: message\ndata: {}\n\n", []string{"message||{}"}},
		"without a space":         {"data:a\n\n", []string{"||a"}},
		"with two":                {"data:  a\n\n", []string{"|| a"}},
		"CR LF":                   {"id: 7\r\ndata: a\r\n\r\n", []string{"|7|a"}},
		"more lines":              {"data: a\ndata: b\ndata:\ndata: c\n\n", []string{"||a\nb\n\nc"}},
		"a comment":               {": here\n\ndata: a\n\n", []string{"||a"}},
		"a field without a colon": {"data: a\nretry\nwhat: ever\n\n", []string{"||a"}},
		"a name without data":     {"event: x\n\ndata: a\n\n", []string{"||a"}},
		"an id without data":      {"id: 7\n\ndata: a\n\n", []string{"|7|", "||a"}},
		"blank lines":             {"\n\n\ndata: a\n\n\n\n", []string{"||a"}},
		"half a message":          {"data: a\n\ndata: {\"b\":", []string{"||a"}},
		"a whole message":         {"data: {\"b\":1}", []string{"||{\"b\":1}"}},
		"too long":                {"data: " + long + "\n\ndata: a\n\n", []string{"too long", "||a"}},
		"too many lines":          {strings.Repeat("data: xxxxxxxxxxxxxxxx\n", 8) + "\ndata: a\n\n", []string{"too long", "||a"}},
		"too long, no blank line": {"data: " + long + "\n", []string{"too long"}},
		"too long, no end":        {"data: " + long, nil},
		"a comment too long":      {": " + long + "\n\ndata: a\n\n", []string{"too long", "||a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(t, strings.NewReader(tt.in), 64)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestEventsMemory: the lines of an event count as they come, and only those of the last event.
func TestEventsMemory(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<10) + "\n"
	event := strings.Repeat(line, 1<<10) + "\n"
	for name, tt := range map[string]struct {
		in    string
		lease int64
		want  int // events
	}{
		"many lines that do not fit": {event, 512 << 10, 0},
		"many events, one at a time": {strings.Repeat(event, 8), 8 << 20, 8},
		"many long lines":            {strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n\n", 8), 8 << 20, 8},
		"one long line":              {"data: " + strings.Repeat("x", 1<<20) + "\n\n", 512 << 10, 0},
		"events without data":        {strings.Repeat("data:\n\n", 1<<16) + event, 8 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEvents(strings.NewReader(tt.in), 4<<20, nil)
			s.lease = memory.New(tt.lease).Share("results", tt.lease).Lease()
			s.limiter = rpc.Limiter{PerSecond: 1e9, Burst: 1e9} // this is not about time
			got := 0
			_, err := s.next()
			for ; err == nil; _, err = s.next() {
				got++
			}
			if _, full := errors.AsType[*memory.Full](err); got != tt.want || full != (tt.want == 0) {
				t.Errorf("%d events, then %v; want %d", got, err, tt.want)
			}
		})
	}
}

// plainly reads a whole stream, however long its events are, as simply as can be.
func plainly(in string) (want []string) {
	var e event
	lines := strings.Split(in, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && (len(e.data) > 0 || e.id != ""):
			want = append(want, e.name+"|"+e.id+"|"+string(e.data))
			e = event{}
		case line == "":
			e = event{}
		case name == "data" && e.data != nil:
			e.data = append(append(e.data, '\n'), value...)
		case name == "data":
			e.data = []byte(value)
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		}
		if _, whole := rpc.Scan(e.data); whole && line != "" && i == len(lines)-1 {
			want = append(want, e.name+"|"+e.id+"|"+string(e.data))
		}
	}
	return want
}

// FuzzEvents: however a stream comes, it holds the same events, and those that are too long do no harm to others.
func FuzzEvents(f *testing.F) {
	for _, in := range []string{
		"event: message\nid: 1\ndata: {}\n\n", "data: a\r\ndata: b\r\n\r\n: x\n\n", "data: {\"a\":1}", "id\n\ndata\ndata\n\n",
		"data: " + strings.Repeat("x", 5000) + "\n\ndata: a\n\n", "\n\n\n", "data:\ndata:\n\n", "data: a\rdata: b\n\n",
	} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		want := plainly(in)
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			if diff := cmp.Diff(want, read(t, r, int64(len(in))+1)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		whole := append([]byte(in), "\n\ndata: the last one\n\n"...)
		got := read(t, bytes.NewReader(whole), 32)
		if len(got) == 0 || got[len(got)-1] != "||the last one" {
			t.Errorf("the last event is not among %q", got)
		}
	})
}

// TestLongFields: of a line that is no data little is read; an id that long would come back to the server in a header.
func TestLongFields(t *testing.T) {
	for _, field := range []string{"id: ", "event: ", ":", "retry: 1", "what: "} {
		long := field + strings.Repeat("x", 20<<10) + "\n"
		for _, in := range []string{long + "data: a\n\n", "data: a\n" + long + "\n"} {
			if diff := cmp.Diff([]string{"||a"}, read(t, strings.NewReader(in), 1<<20)); diff != "" {
				t.Errorf("%s: -want +got:\n%.300s", field, diff)
			}
		}
	}
}
