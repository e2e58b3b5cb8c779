package rpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEdit: objects and arrays are changed as asked, whatever their spacing, and anything else stays.
func TestEdit(t *testing.T) {
	upper := func(value []byte) []byte { return []byte(strings.ToUpper(string(value))) }
	isA := func(name string) bool { return name == "a" }
	for name, c := range map[string]struct{ got, want string }{
		"without":               {string(Without([]byte(` { "a" : 1 , "b":2, "\u0061":3 } `), isA)), `{"b":2}`},
		"without all":           {string(Without([]byte(`{"a":1}`), isA)), `{}`},
		"without, no object":    {string(Without([]byte(`[1]`), isA)), `[1]`},
		"member":                {string(EditMember([]byte(`{"b":"x","a":"x","A":"y","a":"z"}`), "a", upper)), `{"b":"x","a":"X"}`},
		"no such member":        {string(EditMember([]byte(`{ "b":"x"}`), "a", upper)), `{ "b":"x"}`},
		"only another spelling": {string(EditMember([]byte(`{"A":"x"}`), "a", upper)), `{}`},
		"elements":              {string(EditElements([]byte(` ["a", "b"] `), upper)), `["A","B"]`},
		"no elements":           {string(EditElements([]byte(`[ ]`), upper)), `[]`},
		"elements, no array":    {string(EditElements([]byte(`"a"`), upper)), `"a"`},
		"prepend":               {string(Prepend([]byte(` { "b":2}`), `"a":1`)), `{"a":1,"b":2}`},
		"prepend to none":       {string(Prepend([]byte(`{ }`), `"a":1`)), `{"a":1}`},
		"prepend to nothing":    {string(Prepend(nil, `"a":1`)), `{"a":1}`},
		"prepend, no object":    {string(Prepend([]byte(`5`), `"a":1`)), `5`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", name, c.got, c.want)
		}
	}
}

// FuzzEdit: edited JSON is JSON again, and has what it should have.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":1},2],"A":null}`))
	f.Add([]byte(`[[],{"a" : "\u007d"}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		same := func(value []byte) []byte { return value }
		for _, got := range [][]byte{
			Without(raw, func(name string) bool { return name == "a" }), EditMember(raw, "a", same), EditElements(raw, same), Prepend(raw, `"a":1`),
		} {
			if !json.Valid(got) {
				t.Fatalf("%s becomes %s", raw, got)
			}
		}
	})
}
