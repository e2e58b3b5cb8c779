//go:build linux

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// statusCase is a way to reach an exit status.
type statusCase struct {
	want int
	args []string
	says string // on standard error; with --json in the errors on standard output
	end  bool   // it is sent SIGINT
}

// testStatuses: every exit status that is documented is reached by the program itself, and with --json the error is JSON
// on standard output.
func testStatuses(t *testing.T, binary string) {
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(private.Close)
	config := func(server string) string {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(`{"mcpServers": {"s": `+server+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	locked := config(fmt.Sprintf(`{"url": %q}`, private.URL+"/mcp"))
	gone := config(`{"url": "http://127.0.0.1:1/mcp"}`)
	wrong := config(`{"comand": "x"}`)
	call := `[{"type": "tool", "server": "s", "name": "x"}]`
	slow := `[{"type": "tool", "server": "demo", "name": "slow", "args": {"ms": 60000}}]`
	cases := []statusCase{
		{want: 0, args: []string{"version"}},
		{want: 1, args: []string{"run"}, says: "there is no pipeline"},
		{want: 1, args: []string{"tools", "ls", "--nope"}, says: "unknown flag: --nope"},
		{want: 2, args: []string{"tools", "ls", "--config", wrong}, says: "comand"},
		{want: 3, args: []string{"tools", "ls", "--config", locked}, says: "wants sign-in"},
		{want: 3, args: []string{"run", "--config", locked, call}, says: "wants sign-in"},
		{want: 4, args: []string{"tools", "ls", "--config", gone}, says: "nothing listens on"},
		{want: 4, args: []string{"run", "--config", gone, call}, says: "SERVER_UNAVAILABLE"},
		{want: 5, args: []string{"run", `[{"type": "x"}]`}, says: "INVALID_PIPELINE"},
		{want: 5, args: []string{"tools", "call", "demo/get_customer", `{"id": "c-999"}`}, says: "TOOL_ERROR"},
		{want: 124, args: []string{"run", "--timeout", "100ms", slow}, says: "TIMEOUT"},
		{want: 130, args: []string{"run", slow}, end: true},
	}
	var reached []string
	for _, c := range cases {
		if s := strconv.Itoa(c.want); !slices.Contains(reached, s) {
			reached = append(reached, s)
		}
		t.Run(strconv.Itoa(c.want)+" "+c.args[0], func(t *testing.T) { t.Parallel(); c.check(t, binary) })
	}
	if want := constants(t, "output.go", "exit"); !slices.Equal(reached, want) {
		t.Errorf("reached are %q, want %q", reached, want)
	}
}

func (c statusCase) check(t *testing.T, binary string) {
	for _, asJSON := range []bool{false, true} {
		args := c.args
		if asJSON && c.args[len(c.args)-1] != "--nope" {
			args = append(slices.Clone(args), "--json")
		}
		s := prepare(t, binary, args...)
		tell := filepath.Join(s.Dir, "begun")
		if c.end {
			s.Env = append(s.Env, "MCSH_STATE="+tell) // the directory is made when the run begins
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if c.end {
			eventually(t, "the run begins", func() (string, bool) { _, err := os.Stat(tell); return fmt.Sprint(err), err == nil })
			if err := s.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
		_ = s.Wait() // its status is looked at
		if got := s.ProcessState.ExitCode(); got != c.want {
			t.Errorf("%q: exit status %d, want %d: %s%s", args, got, c.want, &s.stdout, &s.stderr)
		}
		said := s.stderr.String()
		if len(args) > len(c.args) && c.want != 0 {
			said = s.stdout.String()
			var reply struct{ Errors []errorJSON }
			last := bytes.TrimSpace(s.stdout.Bytes())
			if err := json.Unmarshal(last[bytes.LastIndexByte(last, '\n')+1:], &reply); err != nil || len(reply.Errors) == 0 {
				t.Errorf("%q: %v: got %s", args, err, said)
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%q: %q is not in %s", args, c.says, said)
		}
		s.leftNothing(t)
	}
}
