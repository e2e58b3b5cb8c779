package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
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
		var want object
		if json.Valid(raw) {
			want = decoded(raw)
		}
		if diff := cmp.Diff(want, readObject(raw), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%q: %s", raw, diff)
		}
	})
}

// decoded reads an object with the standard decoder.
func decoded(raw []byte) (o object) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if token, _ := dec.Token(); token != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		_ = dec.Decode(&value)
		o = append(o, entry{name.(string), slices.Clip(value)})
	}
	return o
}
