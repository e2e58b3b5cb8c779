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
