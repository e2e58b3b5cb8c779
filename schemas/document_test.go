package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		doc := &document{root: &node{raw: trimmed(raw)}, steps: NewSteps(context.Background(), 1<<20)}
		type pair struct{ Name, Value string }
		var got, want []pair
		for _, e := range doc.object(doc.root) {
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
