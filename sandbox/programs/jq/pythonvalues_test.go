//go:build !race

package jq

import (
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
