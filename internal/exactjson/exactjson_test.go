package exactjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
)

func TestMembers(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{`{}`, ""},
		{` {"sub": "a", "x": {"SUB": 1, "sub": 2}, "X": 2} `, ""},
		{`{"sub": 1, "sub": 1}`, `"sub" is given twice`},
		{`{"x": 1, "\u0078": 2}`, `"x" is given twice`},
		{`{"SUB": 1}`, `"SUB" stands there, which reads as "sub" and is not`},
		{`{"ſub": 1}`, `"ſub" stands there, which reads as "sub"`},
		{`{"to\u212Aen": 1}`, `which reads as "token"`},
		{`[]`, "not a JSON object"},
		{`null`, "not a JSON object"},
		{``, "not a JSON object"},
		{`{"a": 1`, "not a JSON object"},
		{`{"a": 1}{}`, "not a JSON object"},
		{`{"a" 1}`, "not a JSON object"},
	} {
		_, err := exactjson.Members([]byte(test.data), exactjson.Names{Known: []string{"sub", "token"}, Unique: true})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.data, err, test.want)
		}
	}
}

// TestOtherNames: a name that nothing is decided by may stand there twice, where that is allowed; the last counts.
func TestOtherNames(t *testing.T) {
	names := exactjson.Names{Known: []string{"sub"}}
	members, err := exactjson.Members([]byte(`{"x": 1, "x": 2, "X": 3}`), names)
	if err != nil || string(members["x"]) != "2" || string(members["X"]) != "3" {
		t.Errorf("got %q, %v", members, err)
	}
	if _, err := exactjson.Members([]byte(`{"x": 1, "x": 2, "sub": 3, "sub": 3}`), names); err == nil {
		t.Error("a name that counts is given twice, and is taken")
	}
}

// FuzzMembers: what is taken without an error is what encoding/json finds in it, in a map and in a struct.
func FuzzMembers(f *testing.F) {
	for _, data := range []string{`{"sub":1}`, `{"SUB":1,"sub":2}`, `{"sub":{"sub":1}}`, `{"ſub":1} `, "{\"\xff\":1}"} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		members, err := exactjson.Members(data, exactjson.Names{Known: []string{"sub"}})
		if err != nil {
			return
		}
		var all map[string]json.RawMessage
		var folded struct {
			Sub json.RawMessage `json:"sub"`
		}
		if json.Unmarshal(data, &all) != nil || json.Unmarshal(data, &folded) != nil {
			t.Fatalf("%q is no object, and is taken for one", data)
		}
		if len(all) != len(members) || string(folded.Sub) != string(members["sub"]) {
			t.Errorf("%q: got %q, want %q", data, members, all)
		}
	})
}
