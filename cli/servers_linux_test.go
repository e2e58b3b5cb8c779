package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServers: a user sees the servers of the running gateways, disables one under a client that uses it, which a reload does not
// undo, and enables it again.
func TestServers(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	if _, errs := c.plainRun(exitUnreachable, "servers", "ls"); !strings.Contains(errs, noGateway) {
		t.Errorf("without a gateway: %q", errs)
	}
	c.configure(`{"demo": {"builtin": "demo"}, "broken": {"command": "/bin/sh", "args": ["-c", "echo no such database >&2; exit 3"]}}`)
	s := c.serve("--expose", "demo/get_customer", "-v")
	tool := func(id int) string {
		s.call(id, `[{"type":"tool","server":"demo","name":"get_customer","args":{"id":"c-001"}}]`)
		return s.answered(t, id)
	}
	if answer := tool(2); !strings.Contains(answer, "c-001") {
		t.Fatal(answer)
	}
	s.call(3, `[{"type":"tool","server":"broken","name":"x"}]`)
	s.answered(t, 3)

	text, _ := c.plainRun(exitOK, "servers", "ls")
	for _, want := range []string{"broken  failed SERVER_UNAVAILABLE  stdio", "demo    ready", c.config + ":1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	text, _ = c.plainRun(exitOK, "servers", "show", "broken")
	for _, want := range []string{"configured " + c.config, "failure ", "no such database", "hint "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	rows := c.run(exitOK, "servers", "show", "demo", "--state", c.state)
	if len(rows) != 1 || rows[0]["status"] != "ready" || rows[0]["calls"] != 1.0 || rows[0]["tools"] == nil || rows[0]["p50_ms"] == nil || rows[0]["transport"] != "built in" {
		t.Errorf("got %v", rows)
	}

	if out, _ := c.plainRun(exitOK, "servers", "disable", "demo"); !strings.Contains(out, "demo is disabled; calls in flight end first") {
		t.Errorf("got %q", out)
	}
	eventually(t, "its client hears that the tools have changed", func() (string, bool) {
		return s.out.String(), strings.Contains(s.out.String(), "notifications/tools/list_changed")
	})
	if answer := tool(4); !strings.Contains(answer, "DENIED") || !strings.Contains(answer, `is disabled by an operator`) || !strings.Contains(answer, "mcsh servers enable demo") {
		t.Errorf("a call of a disabled server: %s", answer)
	}
	for i, test := range []struct{ message, has, not string }{
		{`"tools/list","params":{}`, "execute_pipeline", "demo_get_customer"},
		{`"tools/call","params":{"name":"list_all_tools","arguments":{}}`, "broken", "get_customer"},
		{`"tools/call","params":{"name":"demo_get_customer","arguments":{"id":"c-001"}}`, `disabled by an operator: \"demo\"`, "c-001"},
	} {
		fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%s}`+"\n", 10+i, test.message)
		if answer := s.answered(t, 10+i); !strings.Contains(answer, test.has) || strings.Contains(answer, test.not) {
			t.Errorf("%s: %s", test.message, answer)
		}
	}
	c.configure(`{"demo": {"builtin": "demo"}}`)
	if rows := c.run(exitOK, "reload", "--state", c.state); len(rows) != 1 || fmt.Sprint(rows[0]["restarted"]) != "[]" { // it may have seen the change itself
		t.Errorf("reloaded: %v", rows)
	}
	if rows := c.run(exitOK, "servers", "ls", "--state", c.state); len(rows) != 1 || rows[0]["status"] != "disabled" || rows[0]["where"] == nil {
		t.Errorf("after a reload: %v", rows)
	}
	if _, errs := c.plainRun(exitFailed, "servers", "restart", "demo"); !strings.Contains(errs, "disabled by an operator") {
		t.Errorf("restarted: %q", errs)
	}
	c.plainRun(exitOK, "servers", "disable", "demo") // again
	completed := prepare(t, c.binary, "__complete", "servers", "enable", "--state", c.state, "")
	if err := completed.Run(); err != nil || !strings.Contains(completed.stdout.String(), "demo\tdisabled") {
		t.Errorf("completed %q, %v", &completed.stdout, err)
	}
	if rows := c.run(exitOK, "servers", "enable", "demo", "--state", c.state); len(rows) != 1 || rows[0]["did"] != "enable" || rows[0]["server"] != "demo" {
		t.Errorf("got %v", rows)
	}
	if answer := tool(8); !strings.Contains(answer, "c-001") {
		t.Errorf("enabled: %s", answer)
	}
	if !strings.Contains(s.err.String(), "an operator has disabled a server") {
		t.Errorf("the log is %s", s.err)
	}
}

// TestServersOfMany: a name concerns each gateway that has it, and a wrong one says so once.
func TestServersOfMany(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	c.serve()
	c.serve()
	c.config += ".other"
	c.configure(`{"other": {"builtin": "demo"}}`)
	c.serve()
	if rows := c.run(exitOK, "servers", "disable", "demo", "--state", c.state); len(rows) != 2 {
		t.Errorf("disabled: %v", rows)
	}
	disabled := 0
	for _, row := range c.run(exitOK, "servers", "ls", "--state", c.state) {
		if row["status"] == "disabled" {
			disabled++
		}
	}
	if text, _ := c.plainRun(exitOK, "servers", "ls"); disabled != 2 || !strings.HasPrefix(text, "gateway") {
		t.Errorf("%d are disabled:\n%s", disabled, text)
	}
	for _, what := range []string{"show", "enable"} {
		_, errs := c.plainRun(exitFailed, "servers", what, "othre")
		if strings.Count(errs, "error: ") != 1 || !strings.Contains(errs, `there is no server "othre"`) {
			t.Errorf("%s: got %q", what, errs)
		}
	}
	for _, args := range [][]string{{"ls", "x"}, {"show"}, {"show", "a", "b"}, {"disable"}, {"stop", "a"}} {
		c.plainRun(exitUsage, append([]string{"servers"}, args...)...)
	}
}

// TestServersRemote: those with a control token direct servers, and see what a failed one has said only with --control-results.
func TestServersRemote(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	c.configure(`{"broken": {"command": "/bin/sh", "args": ["-c", "echo no such database >&2; exit 3"]}}`)
	dir := t.TempDir()
	tokens, file := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	token := c.run(exitOK, "token", "new", "alice", "--file", tokens)[0]["token"].(string)
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, results := range []bool{false, true} {
		args := []string{"--listen", "127.0.0.1:0", "--control-tokens", tokens}
		if results {
			args = append(args, "--control-results")
		}
		s := c.serve(args...)
		_, rest, _ := strings.Cut(s.err.String(), " listens on ")
		at := []string{"--gateway", strings.Fields(rest)[0], "--gateway-token-file", file}
		c.run(exitOK, "servers", append([]string{"disable", "broken"}, at...)...)
		c.run(exitOK, "servers", append([]string{"enable", "broken"}, at...)...)
		eventually(t, "it fails", func() (string, bool) {
			shown, _ := json.Marshal(c.run(exitOK, "servers", append([]string{"show", "broken"}, at...)...))
			failed := strings.Contains(string(shown), `"failed"`)
			if said := strings.Contains(string(shown), "no such database"); failed && said != results {
				t.Errorf("results %v: %s", results, shown)
			}
			return string(shown), failed
		})
		s.end(c, os.Interrupt)
	}
}
