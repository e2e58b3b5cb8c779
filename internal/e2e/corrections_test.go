//go:build linux

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A correction is a plan that an agent got wrong, with the codes and hints of the reply, and the plan that does the task.
type correction struct {
	ID, Why, Task, Input string
	Pipeline             json.RawMessage
	Codes, Hints         []string
	Corrected            json.RawMessage
	Want                 string // the output of Corrected
}

var (
	codeInReply = regexp.MustCompile(`(?m)(?:wrong|failed(?: at item \d+(?: of \d+)?)?|timed out): ([A-Z_]+)$`)
	hintInReply = regexp.MustCompile(`(?m)^\s*Try: (.*)$`)
)

// TestCorrections sends each plan as it was and as it is right. UPDATE=1 writes codes and hints into the table.
func TestCorrections(t *testing.T) {
	t.Parallel()
	const file = "testdata/corrections.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]json.RawMessage
	var all []correction
	for _, to := range []any{&rows, &all} {
		if err := json.Unmarshal(raw, to); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, c := range all {
		if err := os.WriteFile(filepath.Join(dir, c.ID+".txt"), []byte(c.Input), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := serveStdio(t, object{"filesystem": object{"builtin": "filesystem", "root": dir}, "demo": object{"builtin": "demo"}}, versions[0], nil)
	for i, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			res, err := g.CallTool(t.Context(), pipelineCall(c.Pipeline))
			if err != nil {
				t.Fatalf("calling execute_pipeline: %v", err)
			}
			text := textOf(res)
			if strings.Contains(text, "is not available here") {
				t.Skip("a command of the plan is not installed")
			}
			if !res.IsError {
				t.Fatalf("the wrong plan succeeds: %s", clip(text))
			}
			codes, hints := codesAndHints(text)
			rows[i]["codes"], rows[i]["hints"] = json.RawMessage(encode(t, codes)), json.RawMessage(encode(t, hints))
			if os.Getenv("UPDATE") == "" && (!slices.Equal(codes, c.Codes) || !slices.Equal(hints, c.Hints)) {
				t.Errorf("%s: (-want +got)\n%s\n%s", c.Why, cmp.Diff(c.Codes, codes), cmp.Diff(c.Hints, hints))
			}
			res, err = g.CallTool(t.Context(), pipelineCall(c.Corrected))
			if err != nil {
				t.Fatalf("calling execute_pipeline: %v", err)
			}
			last := textOf(&mcp.CallToolResult{Content: res.Content[len(res.Content)-1:]}) // notes stand before
			if res.IsError || strings.TrimSuffix(last, "\n") != strings.TrimSuffix(c.Want, "\n") {
				t.Errorf("%s: the corrected plan gives %q, want %q", c.Task, textOf(res), c.Want)
			}
		})
	}
	if os.Getenv("UPDATE") != "" {
		updateCorrections(t, file, rows)
	}
}

func codesAndHints(reply string) (codes, hints []string) {
	found := map[string]bool{}
	for _, m := range codeInReply.FindAllStringSubmatch(reply, -1) {
		found[m[1]] = true
	}
	hints = []string{}
	for _, m := range hintInReply.FindAllStringSubmatch(reply, -1) {
		hints = append(hints, m[1])
	}
	return slices.Sorted(maps.Keys(found)), hints
}

// updateCorrections writes a row a line.
func updateCorrections(t *testing.T, file string, rows []map[string]json.RawMessage) {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = encode(t, row)
	}
	if err := os.WriteFile(file, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
