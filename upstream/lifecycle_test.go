package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

var lifecycleChildren = map[string]func(){
	// pid tells which process it is.
	"pid": func() {
		mcptest.New(mcptest.Tool{Name: "pid", ReadOnly: true, Do: func(map[string]any) (string, error) {
			return strconv.Itoa(os.Getpid()), nil
		}}).ServeStdio()
	},
	// gateway keeps a server behind a shell until it is killed.
	"gateway": func() {
		p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.Stdio(upstream.Command{
			Name: "/bin/sh", Args: []string{"-c", `"$0"; exit 0`, os.Args[0]}, Lookup: os.LookupEnv,
			Env: map[string]string{"MCPTEST_CHILD": "pid"},
		})}}}})
		res, err := p.CallTool(context.Background(), stages.Call{Server: "s", Name: "pid"})
		fmt.Println(strings.TrimSpace(string(res.Data)), err)
		select {}
	},
}

func call(t *testing.T, p *upstream.Pool, server, tool string) string {
	t.Helper()
	res, err := p.CallTool(t.Context(), stages.Call{Server: server, Name: tool})
	if err != nil {
		t.Errorf("%s/%s: %v", server, tool, err)
	}
	return strings.TrimSpace(string(res.Data))
}

// TestIdleProgramsStop: a program that nobody uses ends, is not started by a look at the list, and starts again on use.
func TestIdleProgramsStop(t *testing.T) {
	p := childPool(t, "pid", upstream.Options{IdleStop: 300 * time.Millisecond})
	first := call(t, p, "s", "pid")
	pid, _ := strconv.Atoi(first)
	eventually(t, "the idle program is gone", func() bool { return gone(pid) })
	if l := p.Catalog(t.Context())[0]; l.Status != upstream.StatusReady || len(l.Tools) != 1 {
		t.Errorf("got %s with %d tools, want it ready to start", l.Status, len(l.Tools))
	}
	if second := call(t, p, "s", "pid"); second == first || second == "" {
		t.Errorf("got %q after %q, want another process", second, first)
	}
}

// shortestRest is how long a server is left alone at least.
const shortestRest = 100 * time.Millisecond

// TestBreaker: a server whose calls do not come through is left alone for a moment, and then tried once.
func TestBreaker(t *testing.T) {
	var seen atomic.Int32
	var healed atomic.Bool
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		seen.Add(1)
		if !healed.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
	})
	p := httpPool(t, upstream.Endpoint{URL: s.URL})
	var e *stages.Error
	fails := func() (began time.Time) {
		t.Helper()
		began = time.Now()
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); !errors.As(err, &e) {
			t.Fatalf("got %v", err)
		}
		return began
	}
	var failed time.Time
	for range 5 {
		failed = fails()
	}
	if seen.Load() != 5 {
		t.Fatalf("%d calls came to the server, want 5", seen.Load())
	}
	for before := seen.Load(); ; before = seen.Load() {
		again := fails()
		if seen.Load() == before {
			break
		}
		if time.Since(failed) < shortestRest {
			t.Fatalf("got %v; want that it is left alone for a moment", e)
		}
		failed = again // this machine was slow: the moment was over, and each failure makes it longer
	}
	if e.Backoff <= 0 || e.RetryAfter != 0 || strings.Contains(e.Msg, "may have taken effect") {
		t.Errorf("got %v (again after %v); want that it is left alone for a moment", e, e.Backoff)
	}
	healed.Store(true)
	eventually(t, "it is tried again", func() bool {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
		return err == nil && string(res.Data) == "hand made"
	})
	if l := p.Catalog(t.Context())[0]; l.Status != upstream.StatusReady {
		t.Errorf("got %s %v, want ready", l.Status, l.Err)
	}
}

// TestKilledGateway kills a gateway without a chance to clean up: what it started behind a shell ends too.
func TestKilledGateway(t *testing.T) {
	t.Parallel() // it waits
	if runtime.GOOS != "linux" {
		t.Skip("the kernel of Linux ends the children of a process that was killed")
	}
	c := mcptest.Child(t, "gateway")
	cmd := exec.Command(c.Name)
	cmd.Env = []string{"MCPTEST_CHILD=gateway", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var failure string
	if _, err := fmt.Fscan(out, &pid, &failure); err != nil || failure != "<nil>" {
		t.Fatal(err, failure)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // that it was killed
	eventually(t, "the server is gone", func() bool { return gone(pid) })
}

// TestConnectCycles opens and closes many sessions of each kind. Goroutines, descriptors and children must not grow.
func TestConnectCycles(t *testing.T) {
	cycles := map[string]int{"memory": parttest.Times(40, 1000), "http": parttest.Times(40, 1000), "stdio": parttest.Times(8, 1000)}
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	web := s.HTTP(t, nil)
	child := mcptest.Child(t, "chaos") // without a fault
	for kind, dial := range map[string]func() func(context.Context) (mcp.Transport, error){
		"memory": func() func(context.Context) (mcp.Transport, error) { return s.Dial },
		"http": func() func(context.Context) (mcp.Transport, error) {
			return upstream.HTTP(upstream.Endpoint{URL: web.URL})
		},
		"stdio": func() func(context.Context) (mcp.Transport, error) { return upstream.Stdio(child) },
	} {
		t.Run(kind, func(t *testing.T) {
			goroutines, files := runtime.NumGoroutine(), openFiles()
			tool := map[string]string{"stdio": "one"}[kind]
			if tool == "" {
				tool = "hi"
			}
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() {
					for range cycles[kind] / 4 {
						p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: dial()}}}})
						if call(t, p, "s", tool); t.Failed() {
							return
						}
						if err := p.Close(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			workers.Wait()
			eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines+3 })
			eventually(t, "no file is left open", func() bool { return openFiles() <= files+3 })
			eventually(t, "no child is left", func() bool { return childCount() == 0 })
		})
	}
}

// childCount counts the children of this process.
func childCount() int {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	n := 0
	for _, path := range tasks {
		b, _ := os.ReadFile(path)
		n += len(strings.Fields(string(b)))
	}
	return n
}

// TestCancelReachesServers: a call that its caller gives up ends on the server too, in every way of reaching it.
func TestCancelReachesServers(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Hour}, mcptest.Tool{Name: "hi", Text: "hi"})
	for name, dial := range map[string]func(context.Context) (mcp.Transport, error){
		"memory":    s.Dial,
		"stateful":  upstream.HTTP(upstream.Endpoint{URL: s.HTTP(t, nil).URL}),
		"stateless": upstream.HTTP(upstream.Endpoint{URL: s.HTTP(t, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}).URL}),
		"sse":       upstream.HTTP(upstream.Endpoint{URL: s.SSE(t).URL, LegacySSE: true}),
	} {
		t.Run(name, func(t *testing.T) {
			p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: dial})
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "slow"})
				failed <- err
			}()
			eventually(t, "the tool runs", func() bool { return s.Running() == 1 })
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			eventually(t, "the tool ends", func() bool { return s.Running() == 0 })
			if got := call(t, p, "s", "hi"); got != "hi" {
				t.Errorf("afterwards: got %q", got)
			}
		})
	}
}

// TestPlannedAsReading: a tool that the plan took for one that only reads is not called when that is not so any more.
func TestPlannedAsReading(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "get", Text: "x"})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: s.Dial})
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "get", Reading: true})
	wantError(t, err, stages.Denied, "planned as a tool that only reads", "out of date")
	if s.Calls() != 0 {
		t.Error("it was called")
	}
}
