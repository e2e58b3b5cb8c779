package results

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzHideStrings: what is hidden in the strings of JSON is in none of them afterwards, and other JSON stays as it is.
func FuzzHideStrings(f *testing.F) {
	for _, seed := range []string{`{"a":"x secret"}`, `["\u0073ecret"]`, `{"secret":["\\\"secret"]}`, `"a\\"`, `[1.50,"é"]`, `{"a":"\ud800"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		got := string(hideStrings([]byte(text), func(s string) string { return strings.ReplaceAll(s, "secret", "***") }))
		var v any
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Fatalf("%q becomes %q: %v", text, got, err)
		}
		again, err := json.Marshal(v)
		if err != nil || strings.Contains(string(again), "secret") {
			t.Errorf("%q becomes %q", text, got)
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if before, _ := json.Marshal(v); !strings.Contains(string(before), "secret") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
