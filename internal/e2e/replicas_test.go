//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
)

// A replica is one of several gateways at a load balancer. It can be started again.
type replica struct {
	*process
	address string
	servers object
	more    []string // arguments
}

func newReplica(t *testing.T, servers object, more ...string) *replica {
	t.Helper()
	r := &replica{address: porttest.Free(t), servers: servers, more: more}
	r.start(t)
	t.Cleanup(func() {
		if r.ProcessState == nil {
			_ = r.Process.Kill() // the test has failed, or is over
			r.ends(t, patience)
		}
	})
	return r
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	r.process = mcsh(t, r.servers, append([]string{"serve", "--listen", r.address, "--drain", "3s"}, r.more...)...)
	r.greeted(t)
}

// restart ends a replica in order, and starts it again.
func (r *replica) restart(t *testing.T) {
	t.Helper()
	r.look(t)
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := r.ends(t, patience); status != 0 {
		t.Fatalf("a replica ended with status %d: %s", status, r.stderr.String())
	}
	r.leftNothing(t)
	r.start(t)
}

// A balancer is a reverse proxy that sends one request after another to the next of those replicas whose /readyz is 200.
type balancer struct {
	replicas []*replica
	url      string
	ready    []atomic.Bool
	last     atomic.Int64
}

func balance(t *testing.T, replicas ...*replica) *balancer {
	t.Helper()
	b := &balancer{replicas: replicas, ready: make([]atomic.Bool, len(replicas))}
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for i, r := range replicas {
		following.Go(func() {
			for ctx.Err() == nil {
				b.ready[i].Store(isReady(ctx, r.address))
				select {
				case <-time.After(50 * time.Millisecond): // as a load balancer asks
				case <-ctx.Done():
				}
			}
		})
	}
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	b.url = forward(t, b.next)
	b.await(t)
	return b
}

// forward starts a reverse proxy for as long as the test, and returns the address of the endpoint behind it.
func forward(t *testing.T, next func() *replica) string {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	server := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: next().address})
	}})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL + "/mcp"
}

// await waits until all replicas get requests.
func (b *balancer) await(t *testing.T) {
	t.Helper()
	until(t, "all replicas are ready", func() bool {
		for i := range b.ready {
			if !b.ready[i].Load() {
				return false
			}
		}
		return true
	})
}

func isReady(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body) // for the next request on the connection
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// next returns the replica for a request: one without readiness if there is no other.
func (b *balancer) next() *replica {
	n := len(b.replicas)
	at := int(b.last.Add(1)) % n
	for i := range n {
		if b.ready[(at+i)%n].Load() {
			at = (at + i) % n
			break
		}
	}
	return b.replicas[at]
}

// TestRollingRestart: no call of many agents fails while each replica ends and starts again.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	demo := object{"demo": object{"builtin": "demo"}}
	b := balance(t, newReplica(t, demo), newReplica(t, demo))
	restarts := rolling(b.replicas, func(r *replica) { r.restart(t); b.await(t) })
	calls := during(t, b.url, parttest.Times(5, 50), restarts)
	t.Logf("%d calls", calls)
}

// rolling returns a function that restarts replicas in turn: by day each once.
func rolling(replicas []*replica, restart func(*replica)) func() {
	return func() {
		end := time.Now().Add(time.Duration(parttest.Times(0, 120)) * time.Second)
		for once := true; once || time.Now().Before(end); once = false {
			for _, r := range replicas {
				restart(r)
			}
		}
	}
}

// during has agents of the newer era call one pipeline after another while something happens, and returns the number of calls. None
// may fail.
func during(t *testing.T, endpoint string, agents int, happens func()) int64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var calls atomic.Int64
	failed := make(chan error, agents)
	for range agents {
		session := connectHTTP(t, endpoint, versions[1], nil)
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := shortRun(session, n); err != nil {
					failed <- err
					return
				}
				calls.Add(1)
			}
		})
	}
	happens()
	stop()
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if calls.Load() == 0 {
		t.Error("there were no calls")
	}
	return calls.Load()
}

// shortRun runs the pipeline n of an agent, which ends within the grace.
func shortRun(session *mcp.ClientSession, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stages, want := []object{toolStage("demo", "list_orders", object{}), command("jq", "-c", ".orders | length > 0")}, "true\n"
	if n%2 == 1 {
		stages, want = []object{toolStage("demo", "slow", object{"ms": 300})}, `{"waited_ms":300}`
	}
	res, err := session.CallTool(ctx, pipelineCall(stages))
	if err != nil {
		return err
	}
	if got := textOf(res); res.IsError || got != want {
		return fmt.Errorf("a pipeline returned %q, want %q", got, want)
	}
	return nil
}

// TestStopped: a call that takes longer than the grace is answered with how to go on.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p, endpoint := serveHTTP(t, object{"demo": object{"builtin": "demo"}}, "--grace", "500ms")
			session := connectHTTP(t, endpoint, version, nil)
			ended := make(chan error, 1)
			go func() {
				res, err := session.CallTool(context.Background(), pipelineCall([]object{toolStage("demo", "slow", object{"ms": 60_000})}))
				if err == nil {
					err = errors.New(textOf(res))
				}
				ended <- err
			}()
			until(t, "the call runs", func() bool { return p.counts(t, endpoint, "mcsh_tool_calls_active 1") })
			fine(t, p.Process.Signal(syscall.SIGTERM))
			if got := within(t, "the call has ended", ended).Error(); !strings.Contains(got, "CANCELLED") || !strings.Contains(got, "forgets this run: run the pipeline again") {
				t.Errorf("the call ended with %q", got)
			}
		})
	}
}

// TestLostSession: a session of the older era that another replica has is unknown, so the client begins a new one there.
func TestLostSession(t *testing.T) {
	t.Parallel()
	demo := object{"demo": object{"builtin": "demo"}}
	var target atomic.Pointer[replica]
	target.Store(newReplica(t, demo))
	endpoint := forward(t, target.Load)
	session := connectHTTP(t, endpoint, versions[0], nil)
	if err := shortRun(session, 0); err != nil {
		t.Fatal(err)
	}
	target.Store(newReplica(t, demo))
	if err := shortRun(session, 0); !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("at another replica the call comes to %v, want that the session is missing", err)
	}
	if err := shortRun(connectHTTP(t, endpoint, versions[0], nil), 0); err != nil {
		t.Errorf("in a new session: %v", err)
	}
}

// TestAnswerElsewhere: an answer that comes to another replica than the one that has asked is refused with the advice to call again.
func TestAnswerElsewhere(t *testing.T) {
	t.Parallel()
	servers := object{"curious": with(with(child(t, "asking"), "protocol", versions[0]), "asks", true)}
	b := balance(t, newReplica(t, servers), newReplica(t, servers))
	agent := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
	}}
	question := toolStage("curious", "ask", object{})
	if got := mustExecute(t, connectHTTP(t, "http://"+b.replicas[0].address+"/mcp", versions[1], agent), question); got != "Ann" {
		t.Errorf("at one replica: %q", got)
	}
	got, failed := execute(t, connectHTTP(t, b.url, versions[1], agent), question)
	if !failed || !strings.Contains(got, "is at another gateway") || !strings.Contains(got, "Try: call again without requestState") {
		t.Errorf("at another replica: %q", got)
	}
}

// TestHAProxy: the example of HAProxy loses no call of the newer era while each replica ends and starts again, and keeps sessions of the
// older era at their replicas as long as those live.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	path := balancerPath(t, "haproxy")
	demo := object{"demo": object{"builtin": "demo"}}
	replicas := []*replica{newReplica(t, demo), newReplica(t, demo)}
	config, address := example(t, "haproxy.cfg", replicas)
	listensAt(t, exec.Command(path, "-db", "-f", config), address)
	endpoint := "http://" + address + "/mcp"
	keepSessions(t, endpoint)
	old := connectHTTP(t, endpoint, versions[0], nil)
	t.Logf("%d calls", during(t, endpoint, parttest.Times(5, 50), rolling(replicas, func(r *replica) {
		r.restart(t)
		until(t, "HAProxy has found the replica ready", func() bool {
			return r.counts(t, "http://"+r.address+"/mcp", `mcsh_http_requests_total{method="GET",route="/readyz",status="200"}`)
		})
	})))
	if err := shortRun(old, 0); err == nil || !strings.Contains(err.Error(), "session not found") { // its stream may have heard it first
		t.Errorf("a session whose replica has ended comes to %v, want that it is not found", err)
	}
	keepSessions(t, endpoint)
}

// counts reports whether the metrics of a gateway have a line that begins with a text.
func (p *process) counts(t *testing.T, endpoint, line string) bool {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(endpoint, "/mcp") + "/metrics")
	fine(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fine(t, err)
	return strings.Contains(string(text), "\n"+line)
}

// TestNginx: the example of nginx serves both eras, even when a replica has gone.
func TestNginx(t *testing.T) {
	t.Parallel()
	path := balancerPath(t, "nginx")
	demo := object{"demo": object{"builtin": "demo"}}
	replicas := []*replica{newReplica(t, demo), newReplica(t, demo)}
	config, address := example(t, "nginx.conf", replicas)
	dir := filepath.Dir(config)
	whole := fmt.Sprintf("daemon off; master_process off; pid %s/pid; error_log stderr; events {}\nhttp { access_log off;", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		whole += fmt.Sprintf(" %s_temp_path %s/%s;", kind, dir, kind)
	}
	main := filepath.Join(dir, "main.conf")
	fine(t, os.WriteFile(main, []byte(whole+" include nginx.conf; }\n"), 0o600))
	listensAt(t, exec.Command(path, "-p", dir, "-c", main, "-e", "stderr"), address)
	endpoint := "http://" + address + "/mcp"
	keepSessions(t, endpoint)
	for _, r := range replicas {
		fine(t, r.Process.Signal(syscall.SIGTERM))
		r.ends(t, patience)
		keepSessions(t, endpoint)
		during(t, endpoint, 4, func() {
			r.start(t)
			until(t, "the replica is ready", func() bool { return isReady(t.Context(), r.address) })
		})
	}
}

// keepSessions has clients of the older era call several times each.
func keepSessions(t *testing.T, endpoint string) {
	t.Helper()
	for range 6 { // several sessions, since one could stay by chance
		session := connectHTTP(t, endpoint, versions[0], nil)
		for n := range 4 {
			fine(t, shortRun(session, 2*n))
		}
	}
}

// balancerPath returns where a load balancer is.
func balancerPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name)) // where Debian has it, which is not on the path of every user
	}
	if err != nil {
		parttest.Missing(t, "%s is not installed; .ci/run parts installs it", name)
	}
	return path
}

// example writes an example of a load balancer with the addresses of the test, and returns the file and its address.
func example(t *testing.T, name string, replicas []*replica) (path, address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "replicas", name))
	fine(t, err)
	path, address = filepath.Join(t.TempDir(), name), porttest.Free(t)
	ports := strings.NewReplacer("127.0.0.1:8810", address, "127.0.0.1:8811", replicas[0].address, "127.0.0.1:8812", replicas[1].address)
	fine(t, os.WriteFile(path, []byte(ports.Replace(string(text))), 0o600))
	return path, address
}

// asking is a server with a tool that asks its caller for a name.
func asking() {
	server := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: object{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
			Message: "Who are you?", RequestedSchema: object{"type": "object", "properties": object{"name": object{"type": "string"}}},
		})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Content["name"])}}}, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // until the input ends
}
