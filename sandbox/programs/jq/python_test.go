package jq

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFromPythonDepth: nesting is bounded, and what is not closed is an error.
func TestFromPythonDepth(t *testing.T) {
	for _, tt := range []struct{ open, shut string }{{"[", "]"}, {"(", ",)"}, {"{1: ", "}"}, {"(", ")"}} {
		for depth, want := range map[int]string{maxDepth: "", maxDepth + 1: "more than 10000 lists, tuples and dicts"} {
			text := strings.Repeat(tt.open, depth) + "1" + strings.Repeat(tt.shut, depth)
			err, _ := fromPython(text, nil).(error)
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q x %d: error %v, want %q", tt.open, depth, err, want)
			}
		}
		if err, ok := fromPython(strings.Repeat(tt.open, 1<<20), nil).(error); !ok {
			t.Errorf("%q without end: error %v", tt.open, err)
		}
	}
}

// FuzzFromPython: whatever comes is a value that jq can write, or an error with its place.
func FuzzFromPython(f *testing.F) {
	for _, text := range append(seeds, `{'a': (None, True, -1.5e-07), 2: "x\'\x41\u00e9\ud83d\ude00" 'y'}`, `[1, {2, 3}]`, `datetime.date(2024, 5, 6)`, `b'\xff'`, "(('a'\n 'b'),)") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := fromPython(text, nil)
		if err, failed := v.(error); failed {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 || syntax.Column > len(text)+1 {
				t.Fatalf("%q: error %#v", text, err)
			}
			return
		}
		checkPrinter(t, v)
	})
}

// FuzzCSV: records are those of encoding/csv, which makes LF of CR LF in quoted fields.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\"a\"\"\r\n\",\"b\r\"\r\n\r\n,\r", "a\"b,c\n", "\"a\" b\n", "\"a", "\n\n,\n", "a\rb\r\n", "\"\r\r\n\""} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, lazy bool) {
		text = strings.TrimRight(text, "\r") // which encoding/csv drops even within quotes
		want := csv.NewReader(strings.NewReader(text))
		want.FieldsPerRecord, want.LazyQuotes = -1, lazy
		got := &csvReader{text: text, separator: ',', lazy: lazy}
		for {
			a, wantErr := want.Read()
			b, err := got.record()
			if (err == nil) != (wantErr == nil) || errors.Is(err, io.EOF) != errors.Is(wantErr, io.EOF) {
				t.Fatalf("%q: %q, %v; encoding/csv: %q, %v", text, b, err, a, wantErr)
			}
			if err != nil {
				return
			}
			for i := range b {
				b[i] = strings.ReplaceAll(b[i], "\r\n", "\n")
			}
			if !cmp.Equal(a, b) {
				t.Fatalf("%q: %q, encoding/csv has %q", text, b, a)
			}
		}
	})
}
