package upstream

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestResults runs the rules over results that real servers have sent, with their images shortened, and over those of
// our own making. The golden files say what each becomes.
func TestResults(t *testing.T) {
	for _, name := range []string{"recorded_results", "own_results"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Name, Why string
				Wrapped   bool
				Result    json.RawMessage
			}
			if err := json.Unmarshal(b, &cases); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, c := range cases {
				res, err := resultOf(c.Result, c.Wrapped)
				fmt.Fprintf(&got, "-- %s: %s --\n", c.Name, c.Why)
				var e *stages.Error
				switch {
				case errors.As(err, &e):
					fmt.Fprintf(&got, "error %s: %s\nhint: %s\n", e.Code, e.Msg, e.Hint)
				case err != nil:
					t.Errorf("%s: %v is no *stages.Error", c.Name, err)
				default:
					fmt.Fprintf(&got, "%s(%d bytes)\n", res.Data, len(res.Data))
				}
				for _, b := range res.Blocks {
					fmt.Fprintf(&got, "block %s\n", b)
				}
			}
			golden(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":"x"}}`), true)
	f.Add([]byte(`{"isError":true,"content":[{"type":"text","text":"{\"error\":{\"error\":{}}}"}]}`), false)
	f.Add([]byte(`{"inputRequests":{"a":null}}`), false)
	f.Fuzz(func(t *testing.T, raw []byte, wrapped bool) {
		res, err := resultOf(raw, wrapped)
		var e *stages.Error
		if err != nil && (!errors.As(err, &e) || e.Msg == "") {
			t.Errorf("error %v has no words", err)
		}
		if n := len(res.Data); n > 0 && res.Data[n-1] != '\n' {
			t.Errorf("%q does not end in a newline", res.Data)
		}
	})
}

// FuzzEnvelope compares the scanner with the standard decoder on everything that is valid JSON.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":"}\"\\"}}`))
	f.Add([]byte(` { "id" : "x" , "error" : null , "method":"a"} `))
	f.Add([]byte(`{"result":[1,{"id":5}],"jsonrpc":"2.0","id":7}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := scanEnvelope(b)
		_, _ = edgeID(b, b)
		_, _ = decodeMessage(b)
		var want map[string]json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &want) != nil || want == nil || strings.ContainsRune(string(b), '\\') {
			return // escaped names are another spelling of the same member
		}
		if !ok {
			t.Fatalf("%q was not understood", b)
		}
		for name, got := range map[string]json.RawMessage{"id": e.id, "method": e.method, "result": e.result, "error": e.err} {
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
		id, ok := edgeID([]byte(c.head), []byte(c.tail))
		if got := fmt.Sprint(id.Raw()); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s … %s: got %s %v, want %q", c.head, c.tail, got, ok, c.want)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring
	for i := range 20_000 {
		fmt.Fprintf(&r, "\x1b[31mline %d\x1b[0m\r\n\n", i)
	}
	if len(r.String()) != ringSize {
		t.Errorf("keeps %d bytes, want %d", len(r.String()), ringSize)
	}
	want := "line 19992\nline 19993\nline 19994\nline 19995\nline 19996\nline 19997\nline 19998\nline 19999"
	if got := r.tail(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _ = r.Write([]byte(strings.Repeat("é", ringSize)))
	if got := r.tail(); !strings.HasPrefix(got, "…é") || len(got) > tailBytes+8 {
		t.Errorf("got %.20q, %d bytes", got, len(got))
	}
}

// TestNullResult: a result that is null is no empty result.
func TestNullResult(t *testing.T) {
	if res, err := resultOf(json.RawMessage(" null "), false); err == nil {
		t.Errorf("got %q, want an error", res.Data)
	}
}
