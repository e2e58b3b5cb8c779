package schemas

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentMemory: a schema of many small containers takes little memory.
func TestDocumentMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	text := []byte(`{"enum":[` + strings.Repeat("[0],", 125_000) + `0]}`)
	before := heap()
	doc, err := newDocument(text, NewSteps(t.Context(), 1<<18))
	if after := heap(); err != nil || after > before+40<<20 {
		t.Errorf("%d bytes of a schema take %d, %v", len(text), after-before, err)
	}
	runtime.KeepAlive(doc)
}

// FuzzReadObject compares the members found with those of the standard decoder, in their order and with their spelling.
func FuzzReadObject(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[1,{"}":"]"}],"a":{"x":null} } `, `{"a\u0062":"\"}","n":-1.5e3,"t":true}`, "{\"\xff\":1}", `{"a":1`, `["a"]`, `{"a":"b\\"}`,
		"\v{}", `"{}"`, "{\"a\"\t:\r\n1\n}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		root := readNode(raw)
		if text := root.write(nil); string(text) != strings.Trim(string(raw), " \t\r\n") {
			t.Errorf("%q is written as %q", raw, text)
		}
		type pair struct{ Name, Value string }
		var got, want []pair
		for _, e := range root.object() {
			got = append(got, pair{e.name, string(e.value.raw)})
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		if token, _ := dec.Token(); token != json.Delim('{') {
			dec = json.NewDecoder(strings.NewReader(""))
		}
		for dec.More() {
			name, _ := dec.Token()
			var value json.RawMessage
			_ = dec.Decode(&value)
			want = append(want, pair{name.(string), string(value)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", raw, diff)
		}
	})
}
