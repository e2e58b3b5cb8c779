package jq

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// generator writes random values as repr and pprint print them, and the same values as JSON, each as a JSON string a line.
const generator = `
import json, math, pprint, random
random.seed(16)
letters = ["a", "B", "'", '"', "\\", "\n", "\r", "\t", "\x00", "\x7f", "\x85", "\xa0", "\xe9", "\u2028", "\u20ac", "\U0001f600", "\ud83d", "\ude00", "{", "]", ",", ":", " "]

def text():
    return "".join(random.choice(letters) for _ in range(random.choice([0, 1, 3, 9, 120])))

def scalar():
    return random.choice([
        lambda: None, lambda: True, lambda: False, text, text, lambda: random.randint(-9, 9),
        lambda: random.choice([-1, 1]) * random.getrandbits(random.choice([31, 53, 60, 64, 200])),
        lambda: random.uniform(-1, 1) * 10 ** random.randint(-320, 300), lambda: random.choice([0.0, -0.0, 1.0, 1e16, 5e-324, math.nan, math.inf, -math.inf]),
    ])()

def value(depth):
    n = random.choice([0, 1, 2, 5])
    return random.choice([scalar, scalar, lambda: [value(depth + 1) for _ in range(n)], lambda: tuple(value(depth + 1) for _ in range(n)),
        lambda: {text(): value(depth + 1) for _ in range(n)}, lambda: {random.randint(0, 10**20): value(depth + 1), None: 1, True: 2}])() if depth < 6 else scalar()

def plain(v):
    if isinstance(v, float) and not math.isfinite(v):
        return None
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return v

for i in range(3000):
    v = value(0)
    shown = pprint.pformat(v, width=40) if i % 3 == 0 else repr(v)
    print(json.dumps(shown), json.dumps(json.dumps(plain(v))))
`

// TestFromPython: what Python prints is what its json module writes.
func TestFromPython(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		parttest.Missing(t, "python3 is not installed")
	}
	out, err := exec.CommandContext(t.Context(), path, "-c", generator).Output()
	if err != nil {
		t.Fatal(err)
	}
	// A lone surrogate has no UTF-8: json.Unmarshal makes U+FFFD of it in the text, and so does frompy of its escape.
	pairs := json.NewDecoder(strings.NewReader(string(out)))
	n := 0
	for ; ; n++ {
		var shown, text string
		if err := pairs.Decode(&shown); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := pairs.Decode(&text); err != nil {
			t.Fatal(err)
		}
		want, err := decodeAll(strings.NewReader(text))
		if err != nil || len(want) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		if got := fromPython(shown, nil); !cmp.Equal(want[0], got) {
			t.Errorf("%s: got %v, want %s", shown, got, text)
		}
	}
	if n != 3000 {
		t.Errorf("Python has printed %d values, want 3000", n)
	}
}

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
