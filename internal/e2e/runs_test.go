//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// runOf returns the id of the run that made a reply.
func runOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	report, _ := res.Meta["mcsh/report"].(map[string]any)
	run, _ := report["run"].(string)
	if run == "" {
		t.Fatalf("the reply names no run: %s", textOf(res))
	}
	return run
}

// TestKeptRunsOfKilledGateway: what a gateway keeps on the disk has no name, so that nothing is left when it is killed,
// and the next one knows nothing of it.
func TestKeptRunsOfKilledGateway(t *testing.T) {
	t.Parallel()
	p := mcsh(t, nil, "serve")
	session := connect(t, &mcp.CommandTransport{Command: p.Cmd}, versions[1], nil)
	res, err := session.CallTool(t.Context(), pipelineCall([]object{
		command("jq", "-n", "-c", "{n: range(300000)}"), command("sort"), command("wc", "-l"),
	}))
	if err != nil || res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	run := runOf(t, res)
	long, err := session.CallTool(t.Context(), pipelineCall([]object{command("jq", "-n", "-c", "{n: range(300000)}")}))
	if err != nil || long.IsError {
		t.Fatalf("got %+v, %v", long, err)
	}
	begin := object{"type": "from", "run": run, "stage": 1}
	if got := mustExecute(t, session, begin, command("tail", "-n", "1")); got != "{\"n\":299999}\n" {
		t.Errorf("from the run: got %q", got)
	}
	if !keepsFiles(t, p.Process.Pid) {
		t.Error("an output of more than 1 MiB is in no file")
	}
	if named := keptFiles(t, p.tmp); len(named) > 0 {
		t.Errorf("files with names: %q", named)
	}
	p.look(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = session.Close() // the process is gone
	if named := keptFiles(t, p.tmp); len(named) > 0 {
		t.Errorf("left are %q", named)
	}
	until(t, "workers end", func() bool { return !alive(t, p.tmp) && !p.survives(t) })

	next := mcsh(t, nil, "serve")
	next.tmp = p.tmp
	next.Env = append(next.Env, "TMPDIR="+p.tmp)
	session = connect(t, &mcp.CommandTransport{Command: next.Cmd}, versions[1], nil)
	if text, failed := execute(t, session, begin); !failed || !strings.Contains(text, "UNKNOWN_RUN") {
		t.Errorf("the next gateway says %q", text)
	}
	if got := mustExecute(t, session, command("jq", "-n", "1")); got != "1\n" {
		t.Errorf("got %q", got)
	}
	_ = session.Close()
	next.leftNothing(t)
}

func keptFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "mcsh-runs-*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// keepsFiles reports whether a process has a file open that has no name any more.
func keepsFiles(t *testing.T, pid int) bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.Contains(to, "mcsh-runs-") {
			return strings.HasSuffix(to, "(deleted)")
		}
	}
	return false
}
