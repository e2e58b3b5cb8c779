package rpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzEnvelope compares the scanner with the standard decoder on everything that is valid JSON.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":"}\"\\"}}`))
	f.Add([]byte(` { "id" : "x" , "error" : null , "method":"a"} `))
	f.Add([]byte(`{"result":[1,{"id":5}],"jsonrpc":"2.0","id":7}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := Scan(b)
		_, _ = EdgeID(b, b)
		Elements(b, func([]byte) {})
		var want map[string]json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &want) != nil || want == nil || strings.ContainsRune(string(b), '\\') {
			return // escaped names are another spelling of the same member
		}
		if !ok {
			t.Fatalf("%q was not understood", b)
		}
		for name, got := range map[string]json.RawMessage{"id": e.ID, "method": e.Method, "result": e.Result, "error": e.Err} {
			if string(got) != string(want[name]) {
				t.Errorf("%s: got %s, want %s", name, got, want[name])
			}
		}
	})
}

func TestEdgeID(t *testing.T) {
	for _, c := range []struct {
		head, tail, want string
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"a":"xx`, `x"}}`, "7"},
		{`{"result":{"id":3,"a":"xx`, `x"},"jsonrpc":"2.0","id":8}`, "8"},
		{`{"result":{"a":"xx`, `x"},"id":"k-1","jsonrpc":"2.0"}` + "\n", "k-1"},
		{`{"result":{"a":"xx`, `x","id":9}}`, ""},
		{`{"result":{"a":"xx`, `\"id\":9}"}}`, ""},
	} {
		id, ok := EdgeID([]byte(c.head), []byte(c.tail))
		if got := strings.Trim(id, `"`); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s … %s: got %s %v, want %q", c.head, c.tail, got, ok, c.want)
		}
	}
}
