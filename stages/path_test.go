package stages_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestPathExact sees that a path gives the bytes as they are, and that what is no path is left to jq.
func TestPathExact(t *testing.T) {
	const value = `{"a-b": [{"n": 1.50}, {"n": 12345678901234567890 }], "a": null, "d": 1, "d": 2e0, "é\"": {"x": "\u00e9"}}`
	tests := []struct{ expression, want string }{
		{".", value},
		{" .d ", "2e0"},
		{`."a-b"[0].n`, "1.50"},
		{`.["a-b"][-1]["n"]`, "12345678901234567890"},
		{`."a-b"[].n`, "1.50 12345678901234567890"},
		{".a.b.c[3]", "null"},
		{".none", "null"},
		{`."é\"".x`, `"\u00e9"`},
		{".a[]?", ""},
		{".d.x?", ""},
		{".d.x", "error"},
		{".a[]", "error"},
		{`."a-b"[7]`, "null"},
		{`."a-b"[-7]`, "null"},
		{".[]?.x?", `null "\u00e9"`},
		{"..", "no path"},
		{".a|.b", "no path"},
		{".a b", "no path"},
		{"a", "no path"},
		{"", "no path"},
		{`."a\(1)"`, "no path"},
		{".[1:]", "no path"},
		{"." + strings.Repeat("[0]", 40), "no path"},
	}
	for _, test := range tests {
		found, ok, err := stages.Follow(test.expression, []byte(value))
		got := strings.Join(found, " ")
		if !ok {
			got = "no path"
		} else if err != nil {
			got = "error"
		}
		if got != test.want {
			t.Errorf("%s gives %s, want %s", test.expression, got, test.want)
		}
	}
}

// FuzzPath compares paths with jq: they succeed together, and give the same values.
func FuzzPath(f *testing.F) {
	for _, expression := range []string{".", ".a", `."a-b"`, `.["a"]`, ".[0]", ".[-1].b", ".[]", ".a?.b", ".a[]?.c", ".. | .a", ".a[1:]"} {
		f.Add(expression, []byte(`{"a":[{"b":1,"c":[true]},{"b":2}],"a-b":null}`))
		f.Add(expression, []byte(`[[{"b":"x"}],1.0,{"a":{"b":{}}}]`))
	}
	f.Fuzz(func(t *testing.T, expression string, value []byte) {
		value = bytes.TrimSpace(value)
		if !json.Valid(value) || len(value) > 1<<12 {
			return
		}
		found, ok, err := stages.Follow(expression, value)
		if !ok {
			return
		}
		filter, wrong := jq.Compile(jq.Options{Filter: expression})
		if wrong != nil {
			t.Fatalf("%q is taken for a path, but jq says %v", expression, wrong)
		}
		var out, words strings.Builder
		if status := filter.Run(t.Context(), bytes.NewReader(value), &out, &words); (status != 0) != (err != nil) {
			t.Fatalf("%q of %s: error %v, but jq ends with %d: %s", expression, value, err, status, words.String())
		}
		if err == nil && normal(t, strings.Join(found, "\n")) != out.String() {
			t.Errorf("%q of %s gives %s, jq gives %s", expression, value, found, out.String())
		}
	})
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
