package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/control"
)

// call sends a call of execute_pipeline to a gateway on standard input.
func (s *servedGateway) call(id int, pipeline string) {
	fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute_pipeline","arguments":{"pipeline":%s}}}`+"\n", id, pipeline)
}

// answered waits for the answer to a call.
func (s *servedGateway) answered(t *testing.T, id int) string {
	t.Helper()
	eventually(t, fmt.Sprint("answer ", id), func() (string, bool) {
		return s.err.String(), strings.Contains(s.out.String(), fmt.Sprintf(`"id":%d`, id))
	})
	for line := range strings.Lines(s.out.String()) {
		if strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) {
			return line
		}
	}
	return ""
}

// plainRun runs a command and returns its output and errors for people.
func (c *controlTest) plainRun(status int, args ...string) (stdout, stderr string) {
	c.Helper()
	s := prepare(c.T, c.binary, append(args, "--state", c.state)...)
	_ = s.Run() // its status is looked at
	if got := s.ProcessState.ExitCode(); got != status {
		c.Errorf("%q: exit status %d, want %d: %s%s", args, got, status, &s.stdout, &s.stderr)
	}
	return s.stdout.String(), s.stderr.String()
}

// TestRuns: a user sees the runs of a gateway that a client has started, live and finished, reads outputs of stages, waits for a run
// with its exit status, and cancels one; its client is told.
func TestRuns(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	s := c.serve()
	here := []string{"--state", c.state}
	if out, errs := c.plainRun(exitOK, "runs", "ls"); out != "" || !strings.Contains(errs, "no run is known") {
		t.Errorf("got %q, %q", out, errs)
	}
	s.call(2, `[{"type":"tool","server":"demo","name":"get_customer","args":{"id":"c-001"}},{"type":"preview"},{"type":"tool","server":"demo","name":"slow","args":{"ms":1}}]`)
	s.answered(t, 2)
	s.call(3, "["+strings.Repeat(`{"type":"tool","server":"demo","name":"slow","args":{"ms":60000}},`, 4)+`{"type":"preview"}]`)
	var live string
	eventually(t, "a live run", func() (string, bool) {
		rows := c.run(exitOK, "runs", append([]string{"ls", "--only", "running"}, here...)...)
		if len(rows) == 1 {
			live = rows[0]["request"].(string)
		}
		return fmt.Sprint(rows), len(rows) == 1
	})
	rows := c.run(exitOK, "runs", append([]string{"ls", "--tool", "get_customer"}, here...)...)
	if len(rows) != 1 || rows[0]["client"] != "test 1" || rows[0]["transport"] != "stdio" || rows[0]["stages"] != 3.0 || strings.Contains(fmt.Sprint(rows), "r_") {
		t.Fatalf("got %v", rows)
	}
	first := rows[0]["request"].(string)
	text, _ := c.plainRun(exitOK, "runs", "show", first)
	for _, want := range []string{"client     test 1 over stdio", `"c-001"`, "tool demo/get_customer", "run id     r_"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if out, _ := c.plainRun(exitOK, "runs", "output", first, "--stage", "1"); !strings.Contains(out, "c-001") {
		t.Errorf("the output is %q", out)
	}
	if _, errs := c.plainRun(exitFailed, "runs", "output", first, "--stage", "9"); !strings.Contains(errs, "there is no stage 9: run "+first+" has 3 stages\n") || strings.Contains(errs, "r_") {
		t.Errorf("an output that is not there: %q", errs)
	}
	if _, errs := c.plainRun(exitFailed, "runs", "output", live); !strings.Contains(errs, "has not ended yet") {
		t.Errorf("the output of a live run: %q", errs)
	}
	eventually(t, "a call of the live run", func() (string, bool) {
		shown := fmt.Sprint(c.run(exitOK, "runs", append([]string{"show", live}, here...)...))
		return shown, strings.Contains(shown, "state:"+control.RunRunning) && strings.Contains(shown, "calls:1")
	})
	waiting := prepare(t, c.binary, append([]string{"runs", "wait", live}, here...)...) // it may begin after the end of the run
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	if out, _ := c.plainRun(exitOK, "runs", "cancel"); !strings.Contains(out, "run "+live+" is cancelled") {
		t.Errorf("got %q", out)
	}
	_ = waiting.Wait() // its status is looked at
	if got := waiting.ProcessState.ExitCode(); got != exitInterrupted || !strings.Contains(waiting.stdout.String(), "cancelled") {
		t.Errorf("waiting ends with status %d: %s%s", got, &waiting.stdout, &waiting.stderr)
	}
	if answer := s.answered(t, 3); !strings.Contains(answer, "CANCELLED") || !strings.Contains(answer, "the operator of the gateway has cancelled it") {
		t.Errorf("its client has the answer %s", answer)
	}
	if _, errs := c.plainRun(exitFailed, "runs", "cancel", live); !strings.Contains(errs, "has ended") {
		t.Errorf("cancelled twice: %q", errs)
	}
	for _, args := range [][]string{{"show", "q_none"}, {"wait"}, {"cancel"}} {
		c.plainRun(exitFailed, append([]string{"runs"}, args...)...)
	}
	for _, args := range [][]string{{"ls", "--only", "x"}, {"ls", "--limit", "-1"}, {"ls", "q"}, {"show", "a", "b"}} {
		c.plainRun(exitUsage, append([]string{"runs"}, args...)...)
	}
}

// TestRunsHostile: names and error texts of servers and agents never reach the terminal as commands.
func TestRunsHostile(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	s := c.serve()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"x":1},"name":"execute_pipeline","arguments":{"pipeline":`+
		`[{"type":"tool","server":"demo","name":"get_customer","args":{"id":"\u001b]0;evil\u0007\nfake line\u202e"}}]}}}`)
	s.answered(t, 2)
	for _, args := range [][]string{{"ls"}, {"show"}, {"show", "--json"}, {"ls", "--json"}} {
		out, errs := c.plainRun(exitOK, append([]string{"runs"}, args...)...)
		if strings.ContainsAny(out+errs, "\x1b\x07\u202e") || strings.Contains(out, "\nfake line") {
			t.Errorf("%q: got %q, %q", args, out, errs)
		}
	}
}

// TestRunsCallers: the user of the gateway sees the runs of all callers by their names, and a reader of an output may leave before its
// end.
func TestRunsCallers(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	callers := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		callers[name] = c.run(exitOK, "token", "new", name, "--file", tokens)[0]["token"].(string)
	}
	s := c.serve("--listen", "127.0.0.1:0", "--tokens", tokens)
	_, rest, _ := strings.Cut(s.err.String(), " listens on ")
	for _, name := range []string{"ann", "bob"} {
		postCall(t, strings.Fields(rest)[0], callers[name], `[{"type":"tool","server":"demo","name":"list_orders"}]`)
	}
	rows := c.run(exitOK, "runs", "ls", "--state", c.state)
	if len(rows) != 2 || rows[0]["caller"] != "bob" || rows[1]["caller"] != "ann" || rows[0]["transport"] != "http" {
		t.Errorf("got %v", rows)
	}
	if rows = c.run(exitOK, "runs", "ls", "--state", c.state, "--caller", "ann"); len(rows) != 1 || rows[0]["caller"] != "ann" {
		t.Errorf("those of ann are %v", rows)
	}
	gone, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	reader := prepare(t, c.binary, "runs", "output", "--state", c.state)
	reader.Stdout = w
	if err := reader.Run(); err != nil || reader.stderr.Len() > 0 {
		t.Errorf("a reader that has gone: %v, %s", err, &reader.stderr)
	}
	if s := c.run(exitOK, "runs", "ls", "--state", c.state); len(s) != 2 {
		t.Errorf("after it there are %v", s)
	}
}

// TestRunsRemote: those with a control token see runs without their data, unless --control-results allows it.
func TestRunsRemote(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
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
		address := strings.Fields(rest)[0]
		reply := postCall(t, address, "", `[{"type":"tool","server":"demo","name":"get_customer","args":{"id":"c-001"}}]`)
		at := []string{"--gateway", address, "--gateway-token-file", file}
		shown, _ := json.Marshal(c.run(exitOK, "runs", append([]string{"show"}, at...)...))
		for _, data := range []string{"c-001", `"r_`} {
			if strings.Contains(string(shown), data) != results {
				t.Errorf("results %v: %s of %s; the client has %s", results, data, shown, reply)
			}
		}
		status := exitAuth
		if results {
			status = exitOK
		}
		c.run(status, "runs", append([]string{"output"}, at...)...)
		s.end(c, os.Interrupt)
	}
	for _, args := range [][]string{{"--control-results"}, {"--listen", "127.0.0.1:0", "--control-results"}} {
		c.plainRun(exitUsage, append([]string{"serve", "--config", c.config}, args...)...)
	}
}

// postCall runs a pipeline over HTTP, as a client of the stateless era, and returns the answer.
func postCall(t *testing.T, endpoint, token, pipeline string) string {
	t.Helper()
	_, answer := askHTTP(t, endpoint, token, "execute_pipeline", `{"pipeline":`+pipeline+`}`)
	return answer
}

// askHTTP sends a call of a tool as a client of the stateless era does, or a GET where there is no tool, and returns the status and
// the answer.
func askHTTP(t testing.TB, address, token, tool, arguments string) (status int, answer string) {
	t.Helper()
	method, body := http.MethodGet, ""
	if tool != "" {
		method, body = http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(name, value)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
