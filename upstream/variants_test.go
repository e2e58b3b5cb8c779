package upstream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// variantServer is a server of the older era, which has a process for each set of declared capabilities.
func variantServer(t *testing.T) upstream.Server {
	return upstream.Server{Name: "s", Protocol: upstream.OnlyOlder, Version: "1", Dial: upstream.Stdio(mcptest.Child(t, "interviewer"))}
}

// pidFor is the process that serves a caller.
func pidFor(t *testing.T, p *upstream.Pool, a *stages.Asker) int {
	t.Helper()
	res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "pid", Asker: a})
	pid, bad := strconv.Atoi(string(res.Data))
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	return pid
}

func awaitEnd(t *testing.T, what string, pid int) {
	t.Helper()
	eventually(t, what+" has ended", func() bool {
		process, err := os.FindProcess(pid)
		return err != nil || process.Signal(syscall.Signal(0)) != nil
	})
}

// openQuestion makes a call that asks, and returns when it has asked. answer answers it and waits for the end of the call.
func openQuestion(t *testing.T, p *upstream.Pool) (answer func()) {
	t.Helper()
	asked, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
		close(asked)
		<-goOn
		return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
	}}
	go func() {
		defer close(done)
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "ask", Args: json.RawMessage(`{"secret":"x"}`), Asker: slow})
		if err != nil || string(res.Data) != "x: accept Ada" {
			t.Errorf("got %q, %v", res.Data, err)
		}
	}()
	<-asked
	return func() { close(goOn); <-done }
}

// TestVariantReplaced: a process for callers of another kind makes the server ready while the first one rests. When the server is
// replaced, its call in flight finishes, and then it ends, too.
func TestVariantReplaced(t *testing.T) {
	t.Parallel()
	one := variantServer(t)
	source := newChangingSource(one)
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}, IdleStop: time.Second})
	first, second := pidFor(t, p, &stages.Asker{URL: true}), pidFor(t, p, &stages.Asker{Form: true})
	if first == second {
		t.Fatal("two kinds of callers share a process")
	}
	answer := openQuestion(t, p)
	awaitEnd(t, "the unused process", first)
	eventually(t, "the server is ready", func() bool { return p.Statuses()[0].Status == upstream.StatusReady })
	other := variantServer(t)
	other.Version = "2"
	source.mu.Lock()
	source.servers = []upstream.Server{other}
	source.mu.Unlock()
	if _, err := p.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if third := pidFor(t, p, &stages.Asker{Form: true}); third == second {
		t.Error("a call after the replacement has come to the old process")
	}
	answer()
	awaitEnd(t, "the process that was replaced", second)
}

// TestVariantsShareSlots: callers of all kinds share the calls in flight that a server may have.
func TestVariantsShareSlots(t *testing.T) {
	t.Parallel()
	s := variantServer(t)
	s.Concurrency = 1
	p := staticPool(t, upstream.Options{}, s)
	pidFor(t, p, &stages.Asker{URL: true})
	answer := openQuestion(t, p)
	waits, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "pid", Asker: &stages.Asker{URL: true}, Waits: func(string) func() {
			close(waits)
			return func() {}
		}})
		done <- err
	}()
	select {
	case <-waits:
	case err := <-done:
		t.Fatalf("the call has not waited: %v", err)
	}
	answer()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestVariantOffers: what a server offers beside tools is what it lists on its first session, and those of other callers do not
// change that.
func TestVariantOffers(t *testing.T) {
	t.Parallel()
	s := interviewer()
	var lists atomic.Int32
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "prompts/list" {
				lists.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Protocol: upstream.OnlyOlder, Dial: upstream.HTTP(upstream.Endpoint{URL: web.URL})})
	pidFor(t, p, &stages.Asker{URL: true})
	eventually(t, "the prompts are known", func() bool { return len(p.Offers(t.Context(), upstream.Prompts)) == 1 })
	pidFor(t, p, &stages.Asker{Form: true})
	pidFor(t, p, &stages.Asker{Sampling: true})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := lists.Load(); n != 1 {
		t.Errorf("the prompts were listed %d times", n)
	}
}
