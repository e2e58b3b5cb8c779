package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/pace"
)

// arrivals notes when calls have reached a server.
type arrivals struct {
	mu    sync.Mutex // guards times
	begun time.Time
	times []time.Duration
}

func (a *arrivals) note() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Since(a.begun))
	return len(a.times)
}

// TestCloseEndsWait: a call that waits ends with the pool.
func TestCloseEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := rated(t, pace.Rate{N: 1, Per: time.Hour})
		failed := make(chan error, 2)
		for range 3 { // one goes, one is the next, and one waits behind it
			go func() {
				if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "work"}); err != nil {
					failed <- err
				}
			}()
		}
		synctest.Wait()
		p.Close()
		for range 2 {
			if err := <-failed; !strings.Contains(err.Error(), "the gateway is closing") {
				t.Error(err)
			}
		}
		if time.Since(a.begun) != 0 {
			t.Errorf("it took %v", time.Since(a.begun))
		}
	})
}

// TestRateOfResources: reading a resource counts as a call does.
func TestRateOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := mcptest.New(mcptest.Tool{Name: "work"})
		u.MCP().AddResource(&mcp.Resource{URI: "doc://x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "doc://x", Text: "text"}}}, nil
		})
		p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: u.Dial, Rate: pace.Rate{N: 1, Per: time.Hour}}}}})
		defer p.Close()
		begun := time.Now()
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "work"}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Read(t.Context(), stages.Call{Server: "s", Name: "doc://x"}); err != nil || time.Since(begun) < time.Hour {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// TestWaitsForSlot: a call that waits for the end of others says so.
func TestWaitsForSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := mcptest.New(mcptest.Tool{Name: "work", Latency: time.Hour})
		p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: u.Dial, Concurrency: 1}}}})
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { _, _ = p.CallTool(ctx, stages.Call{Server: "s", Name: "work", Timeout: time.Hour}) }()
		synctest.Wait()
		var whys []string
		_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "work", Waits: func(why string) func() {
			whys = append(whys, why)
			return func() { whys = append(whys, "over") }
		}})
		const why = `waiting for another call of server "s" to end (concurrency 1)`
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), why) || !slices.Equal(whys, []string{why}) {
			t.Errorf("%v; reported %q", err, whys)
		}
	})
}

// TestRetryAfterAndSlots: a query that has no time to wait is refused at once even if others that wait have all slots, and any
// Retry-After, of a year or of each answer, holds back the others for ten minutes at most.
func TestRetryAfterAndSlots(t *testing.T) {
	u := mcptest.New(mcptest.Tool{Name: "a"})
	server := u.HTTP(t, nil)
	next := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.Contains(peek(r), `"tools/call"`) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "31536000")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Concurrency: 1, Dial: upstream.HTTP(upstream.Endpoint{URL: server.URL})})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "a"}); err == nil {
		t.Fatal("the first call has a result")
	}
	patient, cancel := context.WithCancel(t.Context())
	waits, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_, _ = p.CallTool(patient, stages.Call{Server: "s", Name: "a", Waits: func(string) func() { close(waits); return func() {} }})
	}()
	<-waits
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "a"})
	if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != stages.ServerUnavailable || !strings.Contains(e.Msg, "has asked all callers to wait 10m0s") {
		t.Errorf("got %v", err)
	}
	cancel()
	<-over
}

// TestRetryAfterOfTask: a server that answers a request about a task with Retry-After is not called meanwhile.
func TestRetryAfterOfTask(t *testing.T) {
	t.Parallel() // it waits
	s, asked := &mcptest.Tasks{Working: 1}, make(chan struct{}, 1)
	server := s.Serve(t)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(peek(r), `"tasks/get"`) {
			s.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(served.Close)
	server.Dial = upstream.HTTP(upstream.Endpoint{URL: served.URL})
	p := staticPool(t, upstream.Options{}, server)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = callTask(ctx, p, stages.Call{})
	}()
	<-asked
	eventually(t, "others wait", func() bool {
		short, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		_, err := callTask(short, p, stages.Call{Name: "look"})
		return err != nil && strings.Contains(err.Error(), "has asked all callers to wait 10m0s")
	})
	cancel()
	<-over
}

// rated is a pool with a server that notes the calls that it gets.
func rated(t *testing.T, rate pace.Rate) (*upstream.Pool, *arrivals) {
	a := &arrivals{}
	u := mcptest.New(mcptest.Tool{Name: "work", ReadOnly: true, Do: func(map[string]any) (string, error) { a.note(); return "done", nil }})
	p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: u.Dial, Rate: rate}}}})
	t.Cleanup(func() { p.Close() })
	if _, err := p.Tool(t.Context(), "s", "work"); err != nil {
		t.Fatal(err)
	}
	a.begun = time.Now()
	return p, a
}

// TestRate: all callers together make no more calls in a second than the rate allows; calls go in the order in which they came; a call
// that is cancelled takes no place; the time of a call does not count its wait.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := rated(t, pace.Rate{N: 3, Per: time.Second})
		var mu sync.Mutex // guards ended
		ended := map[time.Duration][]int{}
		cancelled, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			ctx := t.Context()
			if i == 4 {
				ctx = cancelled
			}
			go func() {
				_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "work", Timeout: time.Millisecond})
				mu.Lock()
				defer mu.Unlock()
				at := time.Since(a.begun)
				if ended[at] = append(ended[at], i); err != nil && i != 4 {
					t.Errorf("call %d: %v", i, err)
				} else if i == 4 && (!errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `waiting for the rate of server "s", 3/s`)) {
					t.Errorf("the cancelled call: %v", err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 0, 0, time.Second, time.Second, time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}; !cmp.Equal(want, a.times) {
			t.Errorf("calls came after %v, want %v", a.times, want)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, calls := range ended {
			slices.Sort(calls)
		}
		if diff := cmp.Diff(map[time.Duration][]int{0: {0, 1, 2, 4}, time.Second: {3, 5, 6}, 2 * time.Second: {7, 8, 9}}, ended); diff != "" {
			t.Errorf("calls ended (-want +got):\n%s", diff)
		}
	})
}

// TestWaits: a call that waits says so to its run, and that the wait is over.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := rated(t, pace.Rate{N: 1, Per: time.Hour})
		var log []string
		call := stages.Call{Server: "s", Name: "work", Waits: func(why string) func() {
			log = append(log, why)
			return func() { log = append(log, "over") }
		}}
		for range 2 {
			if _, err := p.CallTool(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.CallTool(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		why := `waiting for the rate of server "s", 1/h`
		if diff := cmp.Diff([]string{why, "over", why, "over", why}, log); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}

// TestRateInRun: a run whose time ends while a call waits says what for.
func TestRateInRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a := rated(t, pace.Rate{N: 2, Per: time.Hour})
		plan, flaws := stages.CompileFed(t.Context(), []byte(`[{"type":"tool","server":"s","name":"work","for_each":true,"concurrency":2}]`), stages.Deps{Tools: p})
		if flaws != nil {
			t.Fatal(flaws)
		}
		_, err := plan.Run(t.Context(), strings.NewReader("1\n2\n3\n4\n"), io.Discard, stages.RunOptions{})
		if want := `waiting for the rate of server "s", 2/h, had not ended`; err == nil || !strings.Contains(err.Error(), want) || len(a.times) != 2 {
			t.Errorf("after %d calls: %v, want %s", len(a.times), err, want)
		}
	})
}

// TestRetryAfter: after a refusal with Retry-After no call of any tool goes to the server, and one that has no time to wait is
// refused at once, with the time.
func TestRetryAfter(t *testing.T) {
	for name, body := range map[string]string{"text": "slow down", "JSON-RPC": `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"slow down"}}`} {
		t.Run(name, func(t *testing.T) {
			u := mcptest.New(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"})
			server := u.HTTP(t, nil)
			var calls atomic.Int32
			next := server.Config.Handler
			server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var call struct {
					ID     json.RawMessage
					Method string
				}
				if r.Method != http.MethodPost || json.Unmarshal([]byte(peek(r)), &call) != nil || call.Method != "tools/call" {
					next.ServeHTTP(w, r)
					return
				}
				calls.Add(1)
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "$ID", string(call.ID)))
			})
			p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: server.URL})})
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
			defer cancel()
			for i, tool := range []string{"a", "b", "a"} {
				_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: tool})
				e, ok := errors.AsType[*stages.Error](err)
				if want := []string{"slow down", "has asked all callers to wait 10m0s", "has asked all callers to wait 10m0s"}[i]; !ok || !strings.Contains(e.Msg, want) || e.RetryAfter < 9*time.Minute {
					t.Errorf("call %d: %v, want %s", i, err, want)
				}
			}
			if calls.Load() != 1 {
				t.Errorf("%d calls came to the server", calls.Load())
			}
		})
	}
}
