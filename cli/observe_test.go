//go:build linux

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/oidctest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/sandbox"
)

// A far is a server over HTTP that can be down, with a tool that waits until it is released.
type far struct {
	*httptest.Server
	up      atomic.Bool
	called  chan struct{}
	release chan struct{}
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{called: make(chan struct{}, 1), release: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f.called <- struct{}{}
			select {
			case <-f.release:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "waited"}}}, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.up.Load() {
			http.Error(w, "down for CANARY-reasons", http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Server.Close)
	return f
}

// ask asks a URL and returns status and text.
func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A gateway is ready once its servers and sandbox are there, until it gets a signal to end; it is alive all the time.
func TestReadyLife(t *testing.T) {
	t.Parallel() // it waits
	f := newFar(t)
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"far": {"type": "http", "url": %q}, "idle": {"builtin": "demo"}}}`, f.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	s := prepare(t, oneBinary(t), "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--sandbox", "off",
		"--require-server", "far", "--require-server", "gone", "--config", config)
	said := &heard{}
	s.Stderr = said
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	address := func(before string) (url string) {
		eventually(t, before, func() (string, bool) {
			m := regexp.MustCompile(before + ` (http://[^/\s]+)`).FindStringSubmatch(said.String())
			if m != nil {
				url = m[1]
			}
			return said.String(), m != nil
		})
		return url
	}
	mon, served := address("metrics are at"), address("listens on")
	says := func(status int, parts ...string) func() (string, bool) {
		return func() (string, bool) {
			code, text := ask(t, mon+"/readyz")
			ok := code == status && json.Valid([]byte(text)) && !strings.Contains(text, "CANARY")
			for _, part := range parts {
				ok = ok && strings.Contains(text, part)
			}
			return fmt.Sprint(code, " ", text), ok
		}
	}
	eventually(t, "a server that is down", says(503, `"ready":false`, `{"name":"server far","ready":false,"state":"failed","why":"SERVER_UNAVAILABLE`,
		`{"name":"server gone","ready":false,"state":"unknown","why":"no configuration names it`, `{"name":"sandbox","ready":true,"state":"none"}`))
	for url, want := range map[string]int{mon + "/healthz": 200, served + "/healthz": 200, served + "/readyz": 503, served + "/metrics": 404, mon + "/metrics": 200, mon + "/mcp": 404} {
		if code, text := ask(t, url); code != want {
			t.Errorf("%s: %d %s, want %d", url, code, text, want)
		}
	}
	f.up.Store(true)
	eventually(t, "the server", says(503, `{"name":"server far","ready":true,"state":"ready"}`))
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"far": {"type": "http", "url": %q}, "gone": {"type": "http", "url": %q}}}`, f.URL, f.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness", says(200, `"ready":true`, `{"name":"gateway","ready":true,"state":"serving"}`))
	if _, text := ask(t, mon+"/metrics"); !strings.Contains(text, `mcsh_server_up{server="far"} 1`) || !strings.Contains(text, "mcsh_build_info{") {
		t.Errorf("metrics: %s", text)
	}

	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: served + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "execute_pipeline", Arguments: map[string]any{"pipeline": json.RawMessage(`[{"type":"tool","server":"far","name":"wait"}]`)},
		})
		if err == nil && res.IsError {
			err = errors.New(res.Content[0].(*mcp.TextContent).Text)
		}
		answered <- err
	}()
	<-f.called
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "draining", says(503, `{"name":"gateway","ready":false,"state":"draining"`))
	for _, url := range []string{served + "/healthz", mon + "/healthz"} {
		if code, text := ask(t, url); code != 200 {
			t.Errorf("it is alive in the drain, and %s says %d %s", url, code, text)
		}
	}
	if code, text := ask(t, served+"/readyz"); code != 503 || !strings.Contains(text, `"state":"draining"`) {
		t.Errorf("beside /mcp, readiness in the drain is %d %s", code, text)
	}
	eventually(t, "stopping", says(503, `{"name":"gateway","ready":false,"state":"stopping"`))
	if code, text := ask(t, mon+"/healthz"); code != 200 {
		t.Errorf("it is alive, and says %d %s", code, text)
	}
	if said := said.String(); !strings.Contains(said, "draining: /readyz is 503, and new requests are answered for 5s; then running calls may finish within 10s;") {
		t.Errorf("it says %s", said)
	}
	close(f.release)
	if err := <-answered; err != nil {
		t.Errorf("the run that was under way: %v", err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
	s.leftNothing(t)
}

// A gateway whose callers cannot authenticate is not ready, and names what is missing but not its place.
func TestReadyIssuer(t *testing.T) {
	t.Parallel() // it waits
	issuer := oidctest.New(t)
	issuer.SetDown(true)
	file := filepath.Join(t.TempDir(), "tokens")
	_, entry, err := tokens.New("ci", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, tokens.Add(nil, entry), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		more []string
		want string
		code int
	}{
		{nil, `{"name":"callers","ready":false,"state":"unknown","why":"the issuer of their tokens or its keys are not available`, 503},
		{[]string{"--tokens", file}, `{"name":"callers","ready":true,"state":"known"}`, 200},
	} {
		s := prepare(t, oneBinary(t), append([]string{
			"serve", "--listen", "127.0.0.1:0", "--sandbox", "off",
			"--oidc-issuer", issuer.URL, "--oidc-audience", "x",
		}, tt.more...)...)
		said := &heard{}
		s.Stderr = said
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		ready := func(code int, want string) func() (string, bool) {
			return func() (string, bool) {
				m := regexp.MustCompile(`listens on (http://[^/\s]+)`).FindStringSubmatch(said.String())
				if m == nil {
					return said.String(), false
				}
				got, text := ask(t, m[1]+"/readyz")
				return fmt.Sprint(got, " ", text), got == code && strings.Contains(text, want) && !strings.Contains(text, issuer.URL)
			}
		}
		eventually(t, "without the issuer", ready(tt.code, tt.want))
		if got, want := strings.Contains(said.String(), `"Authorization": "Bearer ${env:MCSH_TOKEN}"`), tt.more != nil; got != want {
			t.Errorf("with %q the greeting has the header of a token: %v, want %v:\n%s", tt.more, got, want, said)
		}
		issuer.SetDown(false)
		eventually(t, "with the issuer", ready(200, `{"name":"callers","ready":true,"state":"known"}`))
		issuer.SetDown(true)
		if err := s.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(); err != nil {
			t.Errorf("it ended with %v: %s", err, said)
		}
	}
}

// Before a backend has been tried its condition is unknown, and asking for it does not wait.
func TestSandboxCondition(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var active *activeBackend
	fails := errSandboxOff
	l := &lazySandbox{start: func() (*activeBackend, error) {
		begun <- struct{}{}
		<-release
		return active, fails
	}}
	m := &monitor{parts: &dependencies{sandbox: l}}
	if c := m.sandboxCondition(); c.Ready || c.State != "starting" {
		t.Errorf("before: %+v", c)
	}
	done := make(chan struct{})
	go func() { defer close(done); l.Describe() }()
	<-begun
	if c := m.sandboxCondition(); c.Ready || c.State != "starting" || m.workers() != (observe.Workers{}) {
		t.Errorf("meanwhile: %+v", c)
	}
	release <- struct{}{}
	<-done
	if c := m.sandboxCondition(); !c.Ready || c.State != "none" {
		t.Errorf("after: %+v", c)
	}
	l.again = time.Time{} // the pause is over
	active, fails = &activeBackend{pool: &sandbox.Pool{}}, nil
	done = make(chan struct{})
	go func() { defer close(done); l.get(t.Context()) }()
	<-begun
	release <- struct{}{}
	<-done
	if c := m.sandboxCondition(); !c.Ready || c.State == "none" {
		t.Errorf("with a backend: %+v", c)
	}
}

// A refusal of an impossible setting names the possible ones.
func TestObserveFlags(t *testing.T) {
	for _, tt := range []struct {
		args, env []string
		status    int
		says      string
	}{
		{[]string{"--log-level", "loud"}, nil, exitUsage, "there are debug, info, warn and error"},
		{[]string{"--log-format", "xml"}, nil, exitUsage, "there are console and json"},
		{[]string{"--metrics-listen", "9090"}, nil, exitUsage, "such as --metrics-listen 127.0.0.1:9090"},
		{[]string{"--no-metrics", "--metrics-listen", "127.0.0.1:0"}, nil, exitUsage, "no-metrics"},
		{[]string{"--otel"}, []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, exitConfig, "set it to http/protobuf"},
		{[]string{"--otel"}, []string{"OTEL_TRACES_EXPORTER=zipkin"}, exitConfig, "set it to otlp or none"},
		{[]string{"--otel"}, []string{"OTEL_TRACES_EXPORTER=none"}, exitOK, ""},
	} {
		var stdout, stderr heard
		args := append([]string{"serve", "--sandbox", "off", "--keep-total", "0"}, tt.args...)
		env := append([]string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff}, tt.env...)
		if status := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env); status != tt.status || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("%v %v: status %d, %s", tt.args, tt.env, status, stderr.String())
		}
	}
}

// A gateway on standard input and output is watched on an address of its own, and sends the traces that are left when it
// ends, those of commands in the sandbox among them.
func TestObserveStdio(t *testing.T) {
	t.Parallel()
	var traces heard
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(&traces, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	s := prepare(t, oneBinary(t), "serve", "--otel", "--metrics-listen", "127.0.0.1:0", "--log-calls", "--log-format", "json", "--sandbox", "local")
	s.Env = append(s.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_COMPRESSION=none")
	said := &heard{}
	s.Stdout, s.Stderr = nil, said
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: s.Cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	const pipeline = `[{"type":"tool","server":"demo","name":"list_orders"},{"type":"command","command":"jq","args":["-c",".orders[].status"]},{"type":"command","command":"sort"}]`
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": json.RawMessage(pipeline)}})
	if err != nil || result.IsError {
		t.Fatalf("%v, %v: %s", result, err, said)
	}
	m := regexp.MustCompile(`metrics are at (\S+)`).FindStringSubmatch(said.String())
	if m == nil {
		t.Fatalf("it does not say where metrics are: %s", said)
	}
	_, text := ask(t, m[1])
	for _, want := range []string{
		`mcsh_stages_total{type="command"} 2`, `mcsh_tool_calls_total{code="OK",server="demo"} 1`, `mcsh_runs_finished_total{code="OK",mode="run"} 1`,
		"mcsh_sandbox_workers_max ", `mcsh_servers{state="ready"} 1`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("the metrics lack %q:\n%s", want, text)
		}
	}
	request, _ := result.Meta["mcsh/report"].(map[string]any)["request"].(string)
	if err := agent.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
	for _, want := range []string{"tools/call execute_pipeline", "tools/call list_orders", "stage tool", "sandbox chain", request} {
		if !strings.Contains(traces.String(), want) {
			t.Errorf("the traces lack %q: %q", want, traces.String())
		}
	}
	if n := strings.Count(said.String(), `"request":"`+request+`","trace":"`); request == "" || n < 1 || !strings.Contains(said.String(), `"msg":"call","request":"`+request) {
		t.Errorf("%d lines of %q: %s", n, request, said)
	}
	s.leftNothing(t)
}
