//go:build !race

package programs_test

import (
	"io"
	"runtime"
	"strings"
	"testing"
)

// endless repeats a text until n bytes have been read, and sees how much memory is in use meanwhile.
type endless struct {
	text string
	left int
	peak uint64
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(e.text) <= len(p) && e.left > 0 {
		n += copy(p[n:], e.text)
		e.left -= len(e.text)
	}
	if e.read++; e.read%10 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		e.peak = max(e.peak, m.HeapInuse)
	}
	return n, nil
}

// TestJQMemory: neither many documents nor one array of many elements take more memory than one of them does.
func TestJQMemory(t *testing.T) {
	const size, limit = 4 << 20, 16 << 20
	const doc = `{"id": 123456, "name": "some \"thing\"", "tags": ["a", "b"], "nested": {"x": 1.5, "y": null}},` + "\n"
	tests := []struct {
		name string
		args []string
		in   func(e *endless) io.Reader
	}{
		{"documents", []string{"-c", "{id, name}"}, func(e *endless) io.Reader { e.text = strings.Replace(doc, "}},", "}}", 1); return e }},
		{"array", []string{"-c", "map(.id)"}, func(e *endless) io.Reader {
			return io.MultiReader(strings.NewReader("["), e, strings.NewReader("0]"))
		}},
		{"inputs", []string{"-n", "reduce inputs as $x (0; . + $x.id)"}, func(e *endless) io.Reader { e.text = strings.Replace(doc, "}},", "}}", 1); return e }},
		{"events", []string{"-c", "--stream", "select(false)"}, func(e *endless) io.Reader {
			return io.MultiReader(strings.NewReader("["), e, strings.NewReader("0]"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &endless{text: doc, left: size}
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			args := tt.args
			if tt.name == "array" {
				args = []string{"-c", "map(.id?)"}
			}
			if msg, exit := runJQ(t, args, tt.in(e), io.Discard); exit != 0 {
				t.Fatalf("exit %d: %s", exit, msg)
			}
			if e.peak == 0 || e.peak > before.HeapInuse+limit {
				t.Errorf("%d MiB of input took %d MiB of memory", size>>20, (e.peak-before.HeapInuse)>>20)
			}
		})
	}
}

// TestJQNesting: a document that is nested too deeply is an error that says so, not a crash.
func TestJQNesting(t *testing.T) {
	for _, depth := range []int{9_999, 10_000, 10_001, 200_000} {
		for _, open := range []string{"[", `{"a":`} {
			in := strings.Repeat(open, depth) + "1" + strings.Repeat(map[string]string{"[": "]"}[open]+strings.Repeat("}", len(open)/5), depth)
			for _, args := range [][]string{{"-c", "."}, {"-c", ".[]"}, {"-c", "--stream", "length"}, {"-c", "[.]"}} {
				msg, exit := runJQ(t, args, strings.NewReader(in), io.Discard)
				if want := map[bool]int{true: 0, false: 2}[depth <= 10_000]; exit != want {
					t.Errorf("%q x %d: jq %q: exit %d, want %d (%s)", open, depth, args, exit, want, msg)
				}
				if depth > 10_000 && !strings.Contains(msg, "more than 10000 arrays and objects inside of one another") {
					t.Errorf("%q x %d: jq %q: message %q", open, depth, args, msg)
				}
			}
		}
	}
}
