package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// A controlTest is a state directory with gateways.
type controlTest struct {
	*testing.T
	binary, state, config string
}

func newControlTest(t *testing.T) *controlTest {
	c := &controlTest{T: t, binary: oneBinary(t), state: t.TempDir(), config: filepath.Join(t.TempDir(), "mcp.json")}
	c.configure(`{"demo": {"builtin": "demo"}}`)
	return c
}

func (c *controlTest) configure(servers string) {
	c.Helper()
	if err := os.WriteFile(c.config, []byte(`{"mcpServers": `+servers+`}`), 0o600); err != nil {
		c.Fatal(err)
	}
}

// A servedGateway is a running gateway.
type servedGateway struct {
	*started
	in  io.WriteCloser
	out *heard
	err *heard
}

// serve starts a gateway, and returns when it answers.
func (c *controlTest) serve(args ...string) *servedGateway {
	c.Helper()
	s := &servedGateway{started: prepare(c.T, c.binary, append([]string{"serve", "--sandbox", "off", "--config", c.config, "--state", c.state}, args...)...), out: &heard{}, err: &heard{}}
	var err error
	if s.in, err = s.StdinPipe(); err != nil {
		c.Fatal(err)
	}
	s.Stdout, s.Stderr = s.out, s.err
	if err := s.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { s.Process.Kill(); s.Wait() })
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	eventually(c.T, "an answer of the gateway", func() (string, bool) {
		return s.err.String(), strings.Contains(s.out.String(), `"id":1`) || strings.Contains(s.err.String(), "listens on")
	})
	return s
}

// end ends a gateway with a signal, and waits for that.
func (s *servedGateway) end(c *controlTest, sig os.Signal) {
	c.Helper()
	if err := s.Process.Signal(sig); err != nil {
		c.Fatal(err)
	}
	_ = s.Wait() // a killed one ends with an error
}

// run runs a command and returns its output, which is JSON lines.
func (c *controlTest) run(status int, command string, args ...string) (rows []map[string]any) {
	c.Helper()
	s := prepare(c.T, c.binary, append(append([]string{command}, args...), "--json")...)
	_ = s.Run() // its status is looked at
	if got := s.ProcessState.ExitCode(); got != status {
		c.Errorf("%s %q: exit status %d, want %d: %s%s", command, args, got, status, &s.stdout, &s.stderr)
	}
	for d := json.NewDecoder(&s.stdout); d.More(); {
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			c.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// pids returns the processes of the gateways that are found.
func (c *controlTest) pids() (list []int) {
	c.Helper()
	for _, row := range c.run(exitOK, "gateways", "--state", c.state) {
		list = append(list, int(row["pid"].(float64)))
	}
	return list
}

func (c *controlTest) files() []string {
	c.Helper()
	names, err := filepath.Glob(filepath.Join(c.state, "control", "*"))
	if err != nil {
		c.Fatal(err)
	}
	return names
}

// TestGateways: a user finds all gateways, however they serve, and nothing is left of those that have ended.
func TestGateways(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	first := c.serve()
	second := c.serve("--listen", "127.0.0.1:0")
	third := c.serve()
	rows := c.run(exitOK, "gateways", "--state", c.state)
	if len(rows) != 3 || rows[0]["transport"] != "stdio" || rows[1]["transport"] != "http" {
		t.Fatalf("got %v", rows)
	}
	if address := fmt.Sprint(rows[1]["address"]); !strings.Contains(second.err.String(), address) {
		t.Errorf("got %q; it says %q", address, second.err)
	}
	want := []any{map[string]any{"name": "demo", "status": "idle", "where": c.config + ":1"}}
	if diff := cmp.Diff(want, rows[0]["servers"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{c.config}, rows[0]["configs"]); diff != "" || rows[0]["state"] != c.state || rows[0]["directory"] != first.Dir {
		t.Errorf("got %v", rows[0])
	}
	for _, name := range append(c.files(), filepath.Join(c.state, "control")) {
		if info, err := os.Lstat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	third.end(c, syscall.SIGKILL)
	if n := len(c.files()); n != 6 {
		t.Errorf("%d files, want 6", n)
	}
	if diff := cmp.Diff([]int{first.Process.Pid, second.Process.Pid}, c.pids()); diff != "" {
		t.Errorf("after a kill (-want +got):\n%s", diff)
	}
	second.end(c, syscall.SIGTERM)
	if n := len(c.files()); n != 2 {
		t.Errorf("after SIGTERM there are %v", c.files())
	}
	first.in.Close()
	_ = first.Wait() // its end is all that counts
	if left := c.files(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if rows := c.run(exitOK, "gateways", "--state", c.state); len(rows) > 0 {
		t.Errorf("found %v", rows)
	}
	c.run(exitUnreachable, "gateways", "--state", c.state, "--gateway", "nobody")
	c.run(exitUsage, "gateways", "--state", "off")
	c.serve("--state", "off")
	if left := c.files(); len(left) > 0 {
		t.Errorf("--state off makes %v", left)
	}
}

// TestGatewaysMany: 12 gateways of one directory, 32 at night, are found.
func TestGatewaysMany(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	many := parttest.Times(12, 32)
	for range many {
		c.serve()
	}
	if got := len(c.pids()); got != many {
		t.Errorf("found %d of %d", got, many)
	}
}

// TestReload: a gateway reads its configuration at once, says what has changed, and calls in flight end well.
func TestReload(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	s := c.serve()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_pipeline","arguments":`+
		`{"pipeline":[{"type":"tool","server":"demo","name":"slow","args":{"ms":60000}}]}}}`)
	look := c.client()
	eventually(t, "a run", func() (string, bool) {
		runs, err := look.Live(t.Context())
		text := fmt.Sprintf("%+v, %v", runs, err)
		return text, len(runs) == 1 && runs[0].Stages == 1
	})
	shown, _ := json.Marshal(c.run(exitOK, "gateways", "--state", c.state))
	if bytes.Contains(shown, []byte("r_")) || bytes.Contains(shown, []byte(`"ms"`)) {
		t.Errorf("too much is shown: %s", shown)
	}
	for _, step := range []struct {
		servers string
		status  int
		want    string // the servers after it
	}{
		{`{"demo": {"builtin": "demo"}, "b": {"builtin": "demo"}}`, exitOK, "b demo"},
		{`{"demo": {"builtin": "demo", "timeout": 7}, "b": {"builtin": "demo"}}`, exitOK, "b demo"},
		{`{"demo": {"builtin": "demo", "timeout": 7}}`, exitOK, "demo"},
		{`{"demo": {"comand": "x"}}`, exitConfig, "demo"},
	} {
		c.configure(step.servers)
		rows := c.run(step.status, "reload", "--state", c.state) // another reading may have seen the change before
		if text := fmt.Sprint(rows); len(rows) != 1 || strings.Contains(text, "comand") != (step.status != exitOK) {
			t.Errorf("%s: got %s", step.servers, text)
		}
		servers, err := look.Servers(t.Context())
		names := convert(servers, func(s control.Server) string { return s.Name })
		if got := strings.Join(names, " "); got != step.want || err != nil {
			t.Errorf("%s: the servers are %s, want %s; %v", step.servers, got, step.want, err)
		}
		if runs, err := look.Live(t.Context()); len(runs) != 1 {
			t.Errorf("%s: the run has not lived through it: %v, %v", step.servers, runs, err)
		}
	}
}

// TestGatewayErrors: an error of a gateway comes with a hint that fits, and with the exit status.
func TestGatewayErrors(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	c.serve()
	sockets, err := filepath.Glob(filepath.Join(c.state, "control", "*.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("got %v, %v", sockets, err)
	}
	token, closed := filepath.Join(t.TempDir(), "token"), httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	here := []string{"--state", c.state}
	for _, test := range []struct {
		name        string
		spoil       func() error
		status      int
		args        []string
		error, hint string
	}{
		{"open to others", func() error { return os.Chmod(sockets[0], 0o666) }, exitUnreachable, here, "chmod go=", ""},
		{"gone", func() error { return os.Remove(sockets[0]) }, exitUnreachable, here, "its socket is gone", "start it again"},
		{
			"not controlled", nil, exitFailed,
			[]string{"--gateway", other.URL},
			"404", "start it with --control-tokens, or correct the address",
		},
		{
			"nobody listens", nil, exitUnreachable,
			[]string{"--gateway", closed.URL},
			"refused", "start the gateway there, or correct the address",
		},
	} {
		if test.spoil != nil {
			if err := test.spoil(); err != nil {
				t.Fatal(err)
			}
		} else {
			test.args = append(test.args, "--gateway-token-file", token)
		}
		rows := c.run(test.status, "gateways", test.args...)
		if len(rows) != 1 || !strings.Contains(fmt.Sprint(rows[0]["error"]), test.error) {
			t.Errorf("%s: got %v, want the error %s", test.name, rows, test.error)
		} else if hint, _ := rows[0]["hint"].(string); hint != test.hint {
			t.Errorf("%s: got the hint %q, want %q", test.name, hint, test.hint)
		}
	}
}

// TestEndedGateway: a gateway that ends during a question is an error if the user has named it.
func TestEndedGateway(t *testing.T) {
	for gateway, want := range map[string]int{"": exitOK, "a": exitUnreachable} {
		errs := map[string]error{"a": fmt.Errorf("gateway a: %w", control.ErrEnded)}
		(&gatewayFlags{gateway: gateway}).leaveOutEnded(errs)
		var text bytes.Buffer
		err := (&program{stderr: plain{newStream(&text, nil)}}).printErrors(t.Context(), errs)
		var status reportedStatus
		if errors.As(err, &status); int(status) != want || (text.Len() > 0) != (want != exitOK) {
			t.Errorf("--gateway %q: got %v, want %d: %s", gateway, err, want, &text)
		}
	}
}

// TestEndpoints: an address of a gateway is one of HTTP without a user and a query.
func TestEndpoints(t *testing.T) {
	for address, want := range map[string]string{
		"https://Mcp.example.com/mcp": "https://mcp.example.com", "http://a:1/mesh/mcp/": "http://a:1/mesh", "http://a/": "http://a",
		"": "", "x": "", "ftp://a": "", "http://": "",
		"http://user:pass@a": "", "http://a?x=1": "", "http://a#x": "", "http://a b": "",
	} {
		u, err := parseEndpoint("--gateway", address)
		bad := err != nil && !strings.Contains(err.Error(), "pass")
		if bad != (want == "") || err == nil && u.String() != want {
			t.Errorf("%q: got %v, %v", address, u, err)
		}
	}
}

// client returns a client of the one gateway.
func (c *controlTest) client() *control.Client {
	c.Helper()
	found, err := control.Find(c.state)
	if err != nil || len(found) != 1 {
		c.Fatalf("found %v, %v", found, err)
	}
	for _, client := range found {
		return client
	}
	return nil
}

// TestControlTokens: another machine needs a token of the file, which is not one for calls, and a name of the gateway.
func TestControlTokens(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	dir := t.TempDir()
	token := func(file string) string {
		t.Helper()
		row := c.run(exitOK, "token", "new", "alice", "--file", filepath.Join(dir, file))
		return row[0]["token"].(string)
	}
	calls, controls := token("calls"), token("controls")
	s := c.serve("--listen", "127.0.0.1:0", "--tokens", filepath.Join(dir, "calls"), "--control-tokens", filepath.Join(dir, "controls"))
	_, rest, _ := strings.Cut(s.err.String(), " listens on ")
	url, _, _ := strings.Cut(rest, "\n")
	base := strings.TrimSuffix(url, "/mcp")
	ask := func(path, token, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.Host = host; token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, test := range []struct {
		path, token, host string
		want              int
	}{
		{"/control/v1/gateway", controls, "", 200},
		{"/control/v1/gateway", "", "", 401},
		{"/control/v1/gateway", calls, "", 401},
		{"/control/v1/gateway", controls, "evil.example", 403},
		{"/control/v1/reload", controls, "", 405},
		{"/control/", controls, "", 404},
		{"/control/", "", "", 401},
		{"/v1/gateway", controls, "", 401},
		{"/mcp", controls, "", 401},
	} {
		if got := ask(test.path, test.token, test.host); got != test.want {
			t.Errorf("%s with %.12s to %q: %d, want %d", test.path, test.token, test.host, got, test.want)
		}
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(controls+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"gateways", "reload"} {
		if rows := c.run(exitOK, command, "--gateway", url, "--gateway-token-file", file); len(rows) != 1 {
			t.Errorf("%s: got %v", command, rows)
		}
		c.run(exitUsage, command, "--gateway", url)
	}
	if err := os.WriteFile(file, []byte(calls), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run(exitAuth, "gateways", "--gateway", url, "--gateway-token-file", file)
	c.configure(`{"demo": {"builtin": "demo"}}`)
	plain := c.serve("--listen", "127.0.0.1:0")
	_, rest, _ = strings.Cut(plain.err.String(), " listens on ")
	url, _, _ = strings.Cut(rest, "\n")
	base = strings.TrimSuffix(url, "/mcp")
	if got := ask("/control/v1/gateway", controls, ""); got != http.StatusNotFound {
		t.Errorf("without --control-tokens: %d", got)
	}
	link, tokens := filepath.Join(dir, "link"), filepath.Join(dir, "controls")
	if err := os.Symlink(tokens, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--control-tokens", ""},
		{"--control-tokens", file},
		{"--listen", "127.0.0.1:0", "--tokens", tokens, "--control-tokens", tokens},
		{"--listen", "127.0.0.1:0", "--tokens", tokens, "--control-tokens", link},
	} {
		c.run(exitUsage, "serve", args...)
	}
	open := c.serve("--listen", "0.0.0.0:0", "--no-auth", "--control-tokens", tokens)
	eventually(t, "a warning of tokens that the network can read", func() (string, bool) {
		return open.err.String(), strings.Contains(open.err.String(), "without encryption")
	})
}

// TestNoControlSocket: a gateway whose socket cannot be made says so once and serves.
func TestNoControlSocket(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(c.state, "control")); err != nil {
		t.Fatal(err)
	}
	s := c.serve()
	eventually(t, "a warning", func() (string, bool) {
		got := s.err.String()
		return got, strings.Count(got, "do not see this gateway") == 1 && strings.Contains(got, "is a link")
	})
	c.run(exitConfig, "gateways", "--state", c.state)
}
