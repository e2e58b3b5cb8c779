package stages

import (
	"encoding/json"
	"testing"
)

// FuzzPlain holds the short way to find a word to what a tokenizer says of valid JSON.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		`{"type":"tee"}`, `{"type":"a \"tee\" b"}`, `{"tee":1}`, `["tee"]`, `{"a":"\\","b":"tee"}`, `{"a":"\\\"tee"}`, `{"a":"\"tee"}`, `"tee"`, `{"a":"tee "}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if json.Valid(raw) && plain(raw, "tee") && !holdsText(raw, []string{"tee"}) {
			t.Errorf("%q holds no such word", raw)
		}
	})
}
