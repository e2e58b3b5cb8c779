package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaved: the saved pipeline gives the first lines of what the task gives, for any address and number of lines.
func TestSaved(t *testing.T) {
	replica := newReplica()
	api := httptest.NewServer(replica)
	defer api.Close()
	text, err := os.ReadFile("../saved/waiting_issues.json")
	if err != nil {
		t.Fatal(err)
	}
	dir, from := t.TempDir(), "http://127.0.0.1:8090"
	if err := os.WriteFile(filepath.Join(dir, "waiting_issues.json"), []byte(strings.ReplaceAll(string(text), from, api.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	mcsh := build(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(mcsh, append(args, "--config", "mcp.json", "--pipelines", dir)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return string(out)
	}
	if got := run("pipeline", "test"); !strings.Contains(got, "1 pipeline: 1 ok") {
		t.Errorf("its examples: %s", got)
	}
	all, _ := answer(t, replica, api.URL)
	want := strings.Join(strings.SplitAfter(all, "\n")[:2], "")
	if got := run("run", "waiting_issues", "--param", "api="+api.URL, "--params", fmt.Sprintf(`{"top": %d}`, 2)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
