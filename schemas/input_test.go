package schemas_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

type recorded struct {
	Name        string            `json:"name"`
	InputSchema json.RawMessage   `json:"inputSchema"`
	Accepts     []json.RawMessage `json:"accepts"`
}

// recordedTools returns the tools of real servers, by server.
func recordedTools(tb testing.TB) map[string][]recorded {
	tb.Helper()
	files, err := filepath.Glob("testdata/tools/*.json")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no recorded tools: %v", err)
	}
	all := map[string][]recorded{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var tools []recorded
		if err := json.Unmarshal(data, &tools); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = tools
	}
	return all
}

func TestCompileInputRecorded(t *testing.T) {
	compiled, samples := 0, 0
	for server, tools := range recordedTools(t) {
		for _, tool := range tools {
			in, err := compileInput(tool.InputSchema)
			if err != nil {
				t.Errorf("%s/%s: %v", server, tool.Name, err)
				continue
			}
			compiled++
			for _, args := range tool.Accepts {
				samples++
				for _, partial := range []bool{false, true} {
					if said := check(in, args, partial); len(said) > 0 {
						t.Errorf("%s/%s took %s, but Check says %q", server, tool.Name, args, said)
					}
				}
			}
			t.Log(signature(tool.Name, tool.InputSchema))
		}
	}
	if compiled < 280 || samples < 50 {
		t.Errorf("checked %d tools and %d samples, want at least 280 and 50", compiled, samples)
	}
}
