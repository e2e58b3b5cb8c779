package stages_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/mcsh-dev/mcsh/stages"
)

func TestPatternOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"record corrupt for 17":             "record corrupt for …",
		"no such id: 13":                    "no such id: …",
		`no item "red shoe" in 'box a'`:     `no item "…" in '…'`,
		"can't open it's box 7":             "can't open it's box …",
		`an open "quote 7`:                  `an open "quote …`,
		"a3f9-22 and SKU_0012 at 10.0.0.1":  "… and … at …",
		"issue #12 (page 3/4), 2026-01-02Z": "issue #… (page …/…), …",
		"größe 5 ist 'zu' groß":             "größe … ist '…' groß",
		"\xff7\xfe 7":                       "\xff…\xfe …",
	} {
		if got := stages.PatternOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzPatternOf(f *testing.F) {
	f.Add(`no item "red" at 7`)
	f.Add("it's '")
	f.Fuzz(func(t *testing.T, text string) {
		if got := stages.PatternOf(text); strings.ContainsFunc(got, unicode.IsDigit) {
			t.Errorf("%q has the pattern %q", text, got)
		}
	})
}

func TestSameCall(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{}`, `{}`, true},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a": [1, {"x":1,"y":2}] }`, `{"a":[1,{"y":2,"x":1}]}`, true},
		{`{"a":"x, y"}`, `{"a":"x,y"}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`{"a":"1"}`, `{"a":1}`, false},
		{`{"a":{},"b":[]}`, `{"b":[],"a":{}}`, true},
		{`{"a":{"x":1,"x":2}}`, `{"a":{"x":2,"x":1}}`, false},
		{`{"a":{"x":1,"\u0078":2}}`, `{"a":{"\u0078":2,"x":1}}`, false},
		{`{"a":{"b":1},"c":1}`, `{"a":{"b":1,"c":1}}`, false},
	} {
		if got := stages.SameCall([]byte(test.a), []byte(test.b)); got != test.want {
			t.Errorf("%s and %s: got %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// FuzzSameCall: what encoding/json tells apart is not the same call.
func FuzzSameCall(f *testing.F) {
	f.Add([]byte(`{"b": [1, {"z":2, "a":null}], "a":"x, y"}`), []byte(`{"b":1}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var x, y map[string]any
		if !exactly(a, &x) || !exactly(b, &y) {
			return
		}
		again, _ := json.Marshal(x)
		same := stages.SameCall(a, b)
		other, _ := json.Marshal(y)
		if same && string(again) != string(other) {
			t.Errorf("%s and %s are taken for the same call", a, b)
		}
	})
}

// exactly decodes an object without duplicate names, whose values keep every digit.
func exactly(data []byte, v *map[string]any) bool {
	_, _, ok := stages.Members(data)
	if !ok || json.Unmarshal(data, v) != nil {
		return false
	}
	keys, _, _ := stages.Members(data)
	return len(keys) == len(*v)
}
