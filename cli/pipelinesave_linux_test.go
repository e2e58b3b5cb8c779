package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSaveRun: what a running gateway has run becomes a saved pipeline, and a run that nobody knows does not.
func TestSaveRun(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	s := c.serve()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_pipeline","arguments":`+
		`{"pipeline":[{"type":"tool","server":"demo","name":"list_orders","args":{"status":"open","limit":2}}]}}}`)
	eventually(t, "a reply", func() (string, bool) { return s.out.String(), strings.Contains(s.out.String(), `"id":2`) })
	run := regexp.MustCompile(`q_[a-z0-9]+`).FindString(s.out.String())
	dir := filepath.Join(t.TempDir(), "saved")
	save := func(status int, run string, more ...string) []map[string]any {
		t.Helper()
		return c.run(status, "pipeline", append([]string{"save", "orders", "--state", c.state, "--pipelines", dir, "--run", run}, more...)...)
	}
	save(exitUsage, run)
	save(exitFailed, "q_nobody", "--description", "d")
	save(exitUsage, run, "--description", "d", "--parameters", `{"status": {"stage": 2, "arg": "status"}}`)
	rows := save(exitOK, run, "--description", "Orders with a status", "--parameters", `{"status": {"stage": 1, "arg": "status"}}`)
	if len(rows) != 1 || rows[0]["version"] != 1.0 {
		t.Errorf("got %v", rows)
	}
	text, err := os.ReadFile(filepath.Join(dir, "orders.json"))
	if err != nil || !strings.Contains(string(text), `{"$param": "status"}`) || !strings.Contains(string(text), `"limit": 2`) {
		t.Errorf("saved is %s, %v", text, err)
	}
}
