package gateway_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestNote: every row of testdata/notes.json is a report and the note that it makes.
func TestNote(t *testing.T) {
	raw, err := os.ReadFile("testdata/notes.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Why    string               `json:"why"`
		Run    string               `json:"run"`
		Window bool                 `json:"window"`
		Dry    *stages.DryRun       `json:"dry_run"`
		Stages []stages.StageReport `json:"stages"`
		Note   string               `json:"note"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		report := stages.Report{Run: row.Run, Stages: row.Stages, DryRun: row.Dry}
		if row.Window {
			report.Windows = []stages.Window{{Place: "1", Text: "x"}}
		}
		if diff := cmp.Diff(row.Note, strings.TrimSuffix(gateway.NoteText(report, 0), "\n")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", row.Why, diff)
		}
	}
}

// TestNoteOfReply: the note is a block of its own before the output, counts towards the budget, and is not there where
// there is nothing to say.
func TestNoteOfReply(t *testing.T) {
	w := newWorld(t)
	texts, _ := w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"tool","server":"shop","name":"list_orders"},{"type":"tool","server":"shop","name":"get_item","for_each":true}]`)})
	if len(texts) != 1 || !strings.HasPrefix(texts[0], `[{"id":1`) {
		t.Errorf("got %q", texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}},{"type":"command","command":"jq","args":["-c","{unknown: .id}"]},{"type":"tool","server":"shop","name":"list_orders"}]`)})
	if len(texts) != 2 || texts[0] != "list_orders: no field of its input is one of its arguments (\"unknown\")\n" {
		t.Errorf("got %q", texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"command","command":"jq","args":["-nc","{unknown: 1}"]},{"type":"tool","server":"shop","name":"list_orders","for_each":true,"with_item":true}]`)})
	if len(texts) != 1 {
		t.Errorf("got %q", texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"max_output": 90, "pipeline": json.RawMessage(
		`[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}},{"type":"command","command":"jq","args":["-c","{unknown: .id}"]},{"type":"tool","server":"shop","name":"list_orders"}]`)})
	if n := len(strings.Join(texts, "")); n > 90 || len(texts) != 2 {
		t.Errorf("%d characters in %q", n, texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"jq","args":["length"]}]`)})
	if len(texts) != 1 {
		t.Errorf("got %q", texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(`[{"type":"tool","server":"shop","name":"delete_item","args":{"id":1}}]`)})
	if len(texts) != 2 || texts[0] != "delete_item: 1 call, ok\n" {
		t.Errorf("got %q", texts)
	}
	texts, _ = newKeptWorld(t, runs.Options{}).call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(`[{"type":"command","command":"jq","args":["-n","1"]}]`)})
	if len(texts) != 2 || !regexp.MustCompile(`^run r_[a-z2-7]{26} \(q_[a-z2-7]{12} in logs\)\n$`).MatchString(texts[0]) {
		t.Errorf("got %q", texts)
	}
	texts, _ = w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"command","command":"jq","args":["-nr","\"/+8K\""]},{"type":"command","command":"base64","args":["-d"]}]`)})
	if len(texts) != 2 || texts[0] != "2 bytes of the output that are not UTF-8 became U+FFFD\n" || texts[1] != "\uFFFD\uFFFD\n" {
		t.Errorf("got %q", texts)
	}
}
