package stages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestPath checks what a path finds, to the byte, and at which character a text stops to be one.
func TestPath(t *testing.T) {
	const value = `{"a-b": [{"n": 1.50}, {"n": 12345678901234567890 }], "a": null, "d": 1, "d": 2e0, "é\"": {"x": "\u00e9"}}`
	tests := []struct{ text, want string }{
		{".", value},
		{" .d ", "2e0"},
		{`."a-b"[0].n`, "1.50"},
		{`.["a-b"][-1]["n"]`, "12345678901234567890"},
		{`."a-b"[].n`, "1.50 12345678901234567890"},
		{`."a-b".[1].n`, "12345678901234567890"},
		{".a.b.c[3]", "null"},
		{".none", "null"},
		{`."é\"".x`, `"\u00e9"`},
		{".a[]?", ""},
		{".d.x?", ""},
		{".d.x", "cannot go to .x of the number 2e0"},
		{".a[]", "cannot go to .[] of null"},
		{`."a-b"[7]`, "null"},
		{`."a-b"[-7]`, "null"},
		{".[]?.x?", `null "\u00e9"`},
		{"..", `unexpected ".." at character 1 of ".."`},
		{".a|.b", `unexpected "|.b" at character 3 of ".a|.b"`},
		{".a b", `unexpected "b" at character 4 of ".a b"`},
		{"  .é", `unexpected ".é" at character 3 of "  .é"`},
		{"a", `unexpected "a" at character 1 of "a"`},
		{".a.", `unexpected "." at character 3 of ".a."`},
		{"", `unexpected "" at character 1 of ""`},
		{"[0]", `unexpected "[0]" at character 1 of "[0]"`},
		{`."a\(1)"`, `unexpected ".\"a\\(1)\"" at character 1 of ".\"a\\(1)\""`},
		{".[1:]", `unexpected ".[1:]" at character 1 of ".[1:]"`},
		{".a[99999999999999999999]", `unexpected "[9999999999999999999…" at character 3 of ".a[99999999999999999999]"`},
		{"." + strings.Repeat("[0]", 32), "cannot go to .[0] of an object"},
		{"." + strings.Repeat("[0]", 33), "a path has at most 32 steps"},
		{"." + strings.Repeat("a", 1023), "null"},
		{"." + strings.Repeat("a", 1024), "a path has at most 1024 bytes, got 1025"},
	}
	for _, test := range tests {
		found, err := stages.Follow(t.Context(), test.text, []byte(value))
		got := strings.Join(found, " ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s gives %s, want %s", test.text, got, test.want)
		}
	}
}

// TestPathCancelled stops in the middle of an iteration.
func TestPathCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	n := 0
	err := stages.FollowEach(ctx, ".[][]", []byte("["+strings.Repeat("[1,2,3],", 1000)+"[]]"), func([]byte) {
		if n++; n == 5 {
			cancel(enough)
		}
	})
	if n != 5 || !errors.Is(err, enough) {
		t.Errorf("%d values and error %v, want 5 and %v", n, err, enough)
	}
}

// FuzzPath compares paths with jq: they succeed together, and give the same values. A path that is written again is the
// same path.
func FuzzPath(f *testing.F) {
	for _, text := range []string{
		".", ".a", `."a-b"`, `.["a"]`, ".[0]", ".[-1].b", ".[]", ".a?.b", ".a[]?.c", ".. | .a", ".a[1:]", ".a.[0]", `.a.["b"]?`, ".a[-]", ".a??",
	} {
		f.Add(text, []byte(`{"a":[{"b":1,"c":[true]},{"b":2}],"a-b":null}`))
		f.Add(text, []byte(`[[{"b":"x"}],1.0,{"a":{"b":{}}}]`))
	}
	f.Fuzz(func(t *testing.T, text string, value []byte) {
		again, err := stages.ParsePath(text)
		if err != nil {
			return
		}
		if twice, err := stages.ParsePath(again); err != nil || twice != again {
			t.Fatalf("%q is written as %q, which is read as %q: %v", text, again, twice, err)
		}
		value, ok := ordered(value)
		if !ok {
			return
		}
		found, err := stages.Follow(t.Context(), text, value)
		if err != nil && strings.Contains(err.Error(), "of the string") {
			return // gojq takes strings for arrays of characters
		}
		filter, wrong := jq.Compile(jq.Options{Filter: text})
		if wrong != nil {
			t.Fatalf("%q is taken for a path, but jq says %v", text, wrong)
		}
		var out, words strings.Builder
		if status := filter.Run(t.Context(), bytes.NewReader(value), &out, &words); (status != 0) != (err != nil) {
			t.Fatalf("%q of %s: error %v, but jq ends with %d: %s", text, value, err, status, words.String())
		}
		if err == nil && normal(t, strings.Join(found, "\n")) != out.String() {
			t.Errorf("%q of %s gives %s, jq gives %s", text, value, found, out.String())
		}
	})
}

// ordered is a small JSON value whose objects are sorted and have no name twice, because jq iterates over them so.
func ordered(value []byte) ([]byte, bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if len(value) > 1<<12 || dec.Decode(&v) != nil {
		return nil, false
	}
	value, err := json.Marshal(v)
	return value, err == nil
}

// normal is JSON as jq writes it.
func normal(t *testing.T, text string) string {
	filter, err := jq.Compile(jq.Options{Filter: "."})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	filter.Run(t.Context(), strings.NewReader(text), &out, new(strings.Builder))
	return out.String()
}
