package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// TestOutputNotUTF8 (S12): bytes pass between commands as they are. Where they leave the gateway, and only there, each that
// is no UTF-8 becomes U+FFFD, and the report counts them.
func TestOutputNotUTF8(t *testing.T) {
	// 100 kB of é before and after arrive in pieces that cut it in two: those halves are no mistakes.
	many := strings.Repeat("é", 50_000)
	raw := many + "f\xffo\xc3é\xed\xa0\x80" + many + "\xe2\x82"
	want := many + "f\uFFFDo\uFFFDé\uFFFD\uFFFD\uFFFD" + many + "\uFFFD\uFFFD"
	const replaced = 7
	w := newWorld(t, mcptest.Tool{Name: "encoded", ReadOnly: true, Text: base64.StdEncoding.EncodeToString([]byte(raw))})
	t.Run("at the edge", func(t *testing.T) {
		got, result := w.execute(t, `[{"type":"tool","server":"shop","name":"encoded"},{"type":"command","command":"base64","args":["-d"]}]`, "max_output", 201_000)
		note, got, ok := strings.Cut(got, "\n--\n")
		if note != "7 bytes of the output that are not UTF-8 became U+FFFD\n" || !ok {
			t.Errorf("got the note %.100q", note)
		}
		if got != want || result.IsError {
			t.Errorf("got %d characters that begin and end with %.40q and %q, want %d", len(got), got, got[max(0, len(got)-20):], len(want))
		}
		var report struct {
			Replaced int64 `json:"replaced_bytes"`
		}
		meta, err := json.Marshal(result.Meta["mcsh/report"])
		if err == nil {
			err = json.Unmarshal(meta, &report)
		}
		if err != nil || report.Replaced != replaced {
			t.Errorf("the report says %d bytes, %v, want %d", report.Replaced, err, replaced)
		}
	})
	t.Run("not between commands", func(t *testing.T) {
		got, _ := w.execute(t, `[{"type":"tool","server":"shop","name":"encoded"},{"type":"command","command":"base64","args":["-d"]},
			{"type":"command","command":"wc","args":["-c"]}]`)
		if want := fmt.Sprintln(len(raw)); got != want {
			t.Errorf("got %q bytes, want %q", got, want)
		}
	})
}
