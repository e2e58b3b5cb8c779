package docker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// TestManyCallers: containers of callers who do not come again make room, whether they were ready or had to be started.
func TestManyCallers(t *testing.T) {
	for name, warm := range map[string]int{"ready": 1, "started": -1} {
		t.Run(name, func(t *testing.T) {
			const runs = 2
			p := newPoolOf(t, options(), sandbox.Options{Max: runs, Warm: warm, Lasting: true})
			most := runs + max(warm, 0)
			for _, caller := range []string{"a", "b", "c", "d", "e"} {
				works(t, p, caller)
			}
			before := boxes(t)
			works(t, p, "e") // who came last has a container still
			fresh := 0
			for id := range boxes(t) {
				if !before[id] {
					fresh++
				}
			}
			if fresh > max(warm, 0) {
				t.Errorf("%d containers were started for a caller who had one", fresh)
			}
			eventually(t, "no more containers than there may be", func() bool { return len(boxes(t)) <= most })
		})
	}
}

// TestLeftWhileCreated: a caller who leaves while the engine makes a container leaves none behind.
func TestLeftWhileCreated(t *testing.T) {
	needLocalEngine(t)
	engine := engineProxy(t)
	var leave atomic.Value // the function with which a caller leaves, once one is to
	o := options()
	o.Host = serveEngine(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel, ok := leave.Load().(context.CancelFunc)
		if !ok || !strings.HasSuffix(r.URL.Path, "/containers/create") {
			engine.ServeHTTP(w, r)
			return
		}
		made := httptest.NewRecorder()
		engine.ServeHTTP(made, r.WithContext(context.WithoutCancel(r.Context())))
		cancel()
		w.WriteHeader(made.Code)
		_, _ = made.Body.WriteTo(w)
	}))
	p := newPoolOf(t, o, cold)
	works(t, p, "a") // in the container of the audit
	before := boxes(t)
	ctx, cancel := context.WithCancel(t.Context())
	leave.Store(cancel)
	if s, err := p.Open(ctx, "b"); err == nil {
		s.Close()
		t.Fatal("got a worker, want that the caller has left")
	}
	eventually(t, "the container is gone", func() bool { return len(boxes(t)) == len(before) })
}

// TestEngineStuck: an engine that does not answer holds up neither a caller who leaves nor the end of the gateway.
func TestEngineStuck(t *testing.T) {
	needLocalEngine(t)
	engine := engineProxy(t)
	stuck := make(chan struct{}) // closed when a caller waits for the engine
	free := make(chan struct{})
	var hold atomic.Bool
	host := serveEngine(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold.Load() && strings.HasSuffix(r.URL.Path, "/attach") {
			close(stuck)
			<-free
			return
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(free) })
	o := options()
	o.Host = host
	d := docker.New(o)
	if _, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	hold.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-stuck; cancel() }()
	if _, err := d.Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller has left", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, nil)
}

// TestConnectionStuck: while somebody waits for an engine that takes connections and says nothing, others may leave, and
// the driver may be closed, which ends the wait.
func TestConnectionStuck(t *testing.T) {
	stuck := make(chan struct{})
	free := make(chan struct{})
	var once sync.Once
	o := docker.Options{Host: serveEngine(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(stuck) })
		<-free
	}))}
	t.Cleanup(func() { close(free) })
	d := docker.New(o)
	first := make(chan error, 1)
	go func() {
		_, err := d.Open(t.Context())
		first <- err
	}()
	<-stuck
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the caller has left", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for what, c := range map[string]chan error{"the driver is closed": closed, "the first caller gets its error": first} {
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
