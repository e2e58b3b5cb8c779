package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// contained is a driver that starts workers in containers, where others can take their place.
type contained struct {
	*scripted
	none   bool         // there are no containers
	ending func() error // what happens while a worker ends
	write  func() bool  // whether a worker gets what is written; nil: it does

	mu         sync.Mutex
	containers int
	workers    []*inside
}

// An inside is a worker in a container.
type inside struct {
	net.Conn // the gateway's end
	driver   *contained
	once     sync.Once
	closed   bool
}

// timeOut is a run that a limit ends.
func timeOut(context.Context, *wire.Stream, wire.Chain) wire.Outcome {
	return wire.Outcome{Failure: &wire.Failure{Reason: wire.Timeout}}
}

func newContained() *contained { return &contained{scripted: good(versions(timeOut))} }

func (d *contained) Open(context.Context) (sandbox.Worker, error) {
	d.mu.Lock()
	d.containers++
	d.mu.Unlock()
	return d.start(), nil
}

func (d *contained) start() *inside {
	gateway, worker := net.Pipe()
	w := &inside{Conn: gateway, driver: d}
	d.mu.Lock()
	d.workers = append(d.workers, w)
	d.mu.Unlock()
	d.served.Go(func() {
		_ = wire.Serve(context.Background(), worker, d.hello, wire.Host{Run: d.run, Renew: func() error { return nil }})
		worker.Close()
	})
	return w
}

func (w *inside) Write(p []byte) (int, error) {
	if w.driver.write != nil && !w.driver.write() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w *inside) Replace() sandbox.Worker {
	if w.driver.none {
		return nil
	}
	w.Close()
	return w.driver.start()
}

func (w *inside) Close() error {
	err := w.Conn.Close()
	w.once.Do(func() {
		if w.driver.ending != nil {
			err = w.driver.ending()
		}
		w.driver.mu.Lock()
		defer w.driver.mu.Unlock()
		w.closed = true
	})
	return err
}

// visit is a run of a caller that does nothing, or one that a limit ends.
func visit(t *testing.T, p *sandbox.Pool, caller string, limit bool) {
	t.Helper()
	s, err := p.Open(t.Context(), caller)
	if err != nil {
		t.Fatal(err)
	}
	if limit {
		f, err := s.Prepare([]stages.Command{{Name: "jq", Args: []string{"."}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f(t.Context(), strings.NewReader(""), io.Discard); err == nil {
			t.Fatal("a run that a limit ends was a success")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLeases: which run has the worker of an earlier one, or another worker in the same container; and what waits after it.
func TestLeases(t *testing.T) {
	const runs, second = 50, time.Second // that a worker serves
	for _, test := range []struct {
		name       string
		caller     string
		runs       int
		between    time.Duration
		prepare    func(*contained, *sandbox.Options)
		limit      bool             // it ends each run
		meanwhile  func(*contained) // between the runs
		containers int              // that were started for all runs
		workers    int              // likewise; one more may wait in a container
		waiting    int              // after the last run
	}{
		{name: "the same worker", caller: "a", runs: runs - 1, between: second, containers: 1, workers: 1, waiting: 1},
		{name: "as many as it may serve", caller: "a", runs: runs, between: second, containers: 1, workers: 1},
		{name: "one more", caller: "a", runs: runs + 1, between: second, containers: 2, workers: 2, waiting: 1},
		{name: "a minute later", caller: "a", runs: 2, between: time.Minute + second, containers: 2, workers: 2, waiting: 1},
		{name: "within ten minutes", caller: "a", runs: 14, between: 45 * second, containers: 1, workers: 1, waiting: 1},
		{name: "after ten minutes", caller: "a", runs: 15, between: 45 * second, containers: 2, workers: 2, waiting: 1},
		{name: "a limit", caller: "a", runs: 3, between: second, limit: true, containers: 1, workers: 4, waiting: 1},
		{name: "a limit at once", caller: "a", runs: 3, limit: true, containers: 1, workers: 4, waiting: 1},
		{name: "limits, as often as it may serve", caller: "a", runs: runs, limit: true, containers: 1, workers: runs},
		{
			name: "a limit without containers", caller: "a", runs: 3, between: second, limit: true, containers: 3, workers: 3,
			prepare: func(d *contained, _ *sandbox.Options) { d.none = true },
		},
		{name: "anybody", caller: stages.Anonymous, runs: 3, between: second, containers: 1, workers: 4, waiting: 1},
		{name: "anybody at once", caller: stages.Anonymous, runs: 3, containers: 1, workers: 4, waiting: 1},
		{name: "nobody", runs: 3, between: second, containers: 3, workers: 3},
		{
			name: "one for each run", caller: "a", runs: 3, between: second, containers: 3, workers: 3,
			prepare: func(_ *contained, o *sandbox.Options) { o.Lasting = false },
		},
		{
			name: "ended while it waits", caller: "a", runs: 2, between: second, containers: 2, workers: 2, waiting: 1,
			meanwhile: func(d *contained) { d.workers[0].Conn.Close() },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, o := newContained(), sandbox.Options{Warm: -1, Lasting: true}
				if o.Driver = d; test.prepare != nil {
					test.prepare(d, &o)
				}
				p, err := sandbox.New(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				for i := range test.runs {
					if i > 0 {
						time.Sleep(test.between)
						if test.meanwhile != nil {
							test.meanwhile(d)
							synctest.Wait()
						}
					}
					visit(t, p, test.caller, test.limit)
				}
				synctest.Wait()
				if d.containers != test.containers || len(d.workers) != test.workers {
					t.Errorf("%d containers, %d workers; want %d, %d", d.containers, len(d.workers), test.containers, test.workers)
				}
				if load := p.Load(); load.Warm != test.waiting || d.workers[len(d.workers)-1].closed != (test.waiting == 0) {
					t.Errorf("the load is %+v, want %d waiting", load, test.waiting)
				}
			})
		})
	}
}

// TestEvicted: with those of runs no more workers wait than there may be runs. The one that has waited longest goes, and none
// that waits for anybody.
func TestEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newContained()
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: 1, Max: 2, Lasting: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, caller := range []string{"a", "b", "a"} {
			visit(t, p, caller, false)
			synctest.Wait()
		}
		s, err := p.Open(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if load := p.Load(); load.Warm != 2 || d.workers[0].closed || !d.workers[1].closed {
			t.Errorf("the load is %+v, closed are %v and %v; want that the worker of b has gone", load, d.workers[0].closed, d.workers[1].closed)
		}
		s.Close()
	})
}

// TestWarmAdopted: a run takes a worker that is still being started for anybody, and starts none besides.
func TestWarmAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newContained()
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: 1, Lasting: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		visit(t, p, "a", false)
		synctest.Wait()
		if d.containers != 2 {
			t.Errorf("%d containers, want that of the run and one that waits", d.containers)
		}
	})
}

// TestCancelledTake: a run that is cancelled while a worker is asked whether it answers ends no other worker of its caller.
func TestCancelledTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newContained()
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Lasting: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var together []stages.Session
		for range 3 {
			s, err := p.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			together = append(together, s)
		}
		for _, s := range together {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		d.write = func() bool { cancel(); return false }
		if _, err := p.Open(ctx, "a"); err == nil {
			t.Error("a run begins that was cancelled")
		}
		synctest.Wait()
		if load := p.Load(); load.Warm != 2 {
			t.Errorf("the load is %+v, want two of three workers waiting", load)
		}
	})
}

// TestManyHeldWorkers: workers that wait end side by side: one that hangs takes seconds.
func TestManyHeldWorkers(t *testing.T) {
	const callers = 30
	d := newContained()
	var ending sync.WaitGroup
	ending.Add(callers)
	all := make(chan struct{})
	go func() { ending.Wait(); close(all) }()
	d.ending = func() error {
		ending.Done()
		select {
		case <-all:
		case <-time.After(time.Minute):
			t.Error("a worker waits for the end of another")
		}
		return nil
	}
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Max: callers, Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range callers {
		visit(t, p, fmt.Sprint("caller ", i), false)
	}
	if load := p.Load(); load.Warm != callers {
		t.Errorf("the load is %+v, want %d waiting", load, callers)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for i, w := range d.workers {
		if !w.closed {
			t.Errorf("worker %d is left", i)
		}
	}
}
