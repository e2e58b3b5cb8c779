package rpc

import (
	"encoding/json"
	"errors"
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

// TestWords: an error is looked for in an error a few times only, since its text is read again each time.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"error":"a"}`:                         "a",
		`{"error":{"message":"a","code":"E1"}}`: "a (E1)",
		strings.Repeat(`{"error":`, 4) + `{"error":"a"}` + strings.Repeat("}", 4): "a",
		strings.Repeat(`{"error":`, 5) + `{"error":"a"}` + strings.Repeat("}", 5): "",
		`[1]`: "",
	} {
		if got := ErrorText([]byte(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestLongError: an error of a megabyte is none that a server may answer with.
func TestLongError(t *testing.T) {
	for size, broken := range map[int]bool{1000: false, 1 << 20: true} {
		e, ok := Scan([]byte(`{"id":1,"error":{"code":1,"message":"` + strings.Repeat("x", size) + `"}}`))
		if _, err := e.Answer(); !ok || errors.Is(err, ErrBroken) != broken {
			t.Errorf("%d bytes: %.100v", size, err)
		}
	}
}
