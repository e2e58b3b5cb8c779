package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestItems: items arrive as they were sent, however the data is cut, and no larger ones than are allowed.
func TestItems(t *testing.T) {
	items := []string{"", "a", "\x00\xff\n", strings.Repeat("x", wire.MaxItem), ""}
	var all []byte
	for _, item := range items {
		all = wire.AppendItem(all, []byte(item))
	}
	buf := make([]byte, wire.MaxItem)
	for _, r := range []io.Reader{bytes.NewReader(all), iotest.OneByteReader(bytes.NewReader(all))} {
		from := bufio.NewReader(r)
		for i, item := range items {
			if got, err := wire.ReadItem(from, buf); err != nil || string(got) != item {
				t.Errorf("item %d: got %.20q, %v", i, got, err)
			}
		}
		if _, err := wire.ReadItem(from, buf); err != io.EOF {
			t.Errorf("after the last one: got %v, want the end", err)
		}
	}
	for _, test := range []struct {
		data []byte
		want error
	}{
		{[]byte{0, 0}, io.ErrUnexpectedEOF},
		{[]byte{0, 0, 0, 2, 'x'}, io.ErrUnexpectedEOF},
		{[]byte{0, 0, 0, 2}, io.ErrUnexpectedEOF},
	} {
		if _, err := wire.ReadItem(bufio.NewReader(bytes.NewReader(test.data)), buf); !errors.Is(err, test.want) {
			t.Errorf("%q: got %v, want %v", test.data, err, test.want)
		}
	}
	var wrong *wire.ProtocolError
	if _, err := wire.ReadItem(bufio.NewReader(bytes.NewReader(wire.AppendItem(nil, make([]byte, wire.MaxItem+1)))), buf); !errors.As(err, &wrong) {
		t.Errorf("an item that is too large: got %v", err)
	}
}

// said is what an answer comes to.
type said struct {
	Out string
	End *wire.Outcome
}

// answers reads all answers of data.
func answers(r io.Reader) (all []said, err error) {
	a := wire.NewAnswers(r)
	var out strings.Builder
	for {
		part, end, err := a.Next()
		if err != nil {
			return all, err
		}
		out.Write(part)
		if end != nil {
			kept := *end // which the next answer takes the place of
			kept.Usage = slices.Clone(end.Usage)
			all = append(all, said{out.String(), &kept})
			out.Reset()
		}
	}
}

// TestAnswers: answers arrive as they were given, however the data is cut.
func TestAnswers(t *testing.T) {
	used := wire.Usage{In: 1, Out: 1 << 40, Elapsed: time.Hour, CPU: time.Nanosecond}
	failed := wire.Outcome{Usage: []wire.Usage{used}, Failure: &wire.Failure{Reason: wire.Exit, Status: 5, Sample: []byte{0xff}}}
	large := strings.Repeat("y", wire.MaxData)
	var data []byte
	data = wire.AppendDone(wire.AppendOutput(wire.AppendOutput(data, []byte("abc")), []byte(large)), used)
	data = wire.AppendDone(data, wire.Usage{})
	data, err := wire.AppendFailed(wire.AppendOutput(wire.AppendOutput(data, nil), []byte("x")), failed)
	if err != nil {
		t.Fatal(err)
	}
	want := []said{
		{"abc" + large, &wire.Outcome{Usage: []wire.Usage{used}}},
		{"", &wire.Outcome{Usage: []wire.Usage{{}}}},
		{"x", &failed},
	}
	for _, r := range []io.Reader{bytes.NewReader(data), iotest.OneByteReader(bytes.NewReader(data))} {
		got, err := answers(r)
		if err != io.EOF {
			t.Errorf("got %v, want the end", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%.2000s", diff)
		}
	}
	for i := 1; i < 5; i++ {
		if _, err := answers(bytes.NewReader(data[:len(data)-i])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("without the last %d bytes: got %v", i, err)
		}
	}
}

// TestUsedBelowZero: counts that would make those of the gateway go backwards are no answer.
func TestUsedBelowZero(t *testing.T) {
	used := wire.Usage{In: 1, CPU: -5}
	failed, err := wire.AppendFailed(nil, wire.Outcome{Usage: []wire.Usage{used}, Failure: &wire.Failure{Reason: wire.Exit}})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{wire.AppendDone(nil, used), failed} {
		if got, err := answers(bytes.NewReader(data)); len(got) > 0 || err == nil || !strings.Contains(err.Error(), "used -5") {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{"", "o\x00\x00\x00\x01x", "u\x00\x00\x00\x20" + strings.Repeat("\x01", 32), "f\x00\x00\x00\x02{}", "o\xff\xff\xff\xff", "z\x00\x00\x00\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := answers(bytes.NewReader(data))
		if err == nil {
			t.Fatal("there is no end")
		}
		for _, a := range got {
			if a.End.Failure == nil && len(a.End.Usage) != 1 {
				t.Errorf("a success of %d commands", len(a.End.Usage))
			}
		}
	})
}
