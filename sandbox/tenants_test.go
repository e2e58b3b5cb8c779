package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// An inn is a driver that keeps something for its callers, and has its say in which workers wait there.
type inn struct {
	*scripted
	full, gone bool         // what its workers say of resting, and of resuming
	ending     func() error // what happens while a worker ends
	resuming   func()       // what happens before a worker resumes; nil: nothing

	mu     sync.Mutex
	guests []*guest
}

// A guest is a worker of an inn.
type guest struct {
	net.Conn // the gateway's end
	inn      *inn
	once     sync.Once
	rested   int
	resumed  int
	closed   bool
}

func (n *inn) Open(context.Context, string) (io.ReadWriteCloser, error) {
	gateway, worker := net.Pipe()
	g := &guest{Conn: gateway, inn: n}
	n.mu.Lock()
	n.guests = append(n.guests, g)
	n.mu.Unlock()
	n.served.Go(func() {
		host := wire.Host{Run: n.run, Renew: func() error { return nil }}
		_ = wire.Serve(context.Background(), worker, n.hello, host)
		worker.Close()
	})
	return g, nil
}

func (n *inn) Probe(ctx context.Context) (sandbox.Report, error) {
	r, err := n.scripted.Probe(ctx)
	r.PerCaller = true
	return r, err
}

func (g *guest) Rest() bool { g.rested++; return !g.inn.full }

func (g *guest) Resume() bool {
	if g.inn.resuming != nil {
		g.inn.resuming()
	}
	g.resumed++
	return !g.inn.gone
}

func (g *guest) Close() error {
	err := g.Conn.Close()
	g.once.Do(func() {
		if g.inn.ending != nil {
			err = g.inn.ending()
		}
		g.inn.mu.Lock()
		defer g.inn.mu.Unlock()
		g.closed = true
	})
	return err
}

// visit is a run of a caller that does nothing.
func visit(t *testing.T, p *sandbox.Pool, caller string) {
	t.Helper()
	s, err := p.Open(t.Context(), caller)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestResident: the driver is asked before a worker waits in what it keeps for a caller, and before it serves again; a
// worker waits no longer than it may, and not when it has ended.
func TestResident(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(n *inn)
		between func(n *inn) // two runs of one caller
		workers int          // that are started for the two
		waiting int          // after that
	}{
		{"it waits", nil, nil, 1, 1},
		{"no room to wait", func(n *inn) { n.full = true }, nil, 2, 0},
		{"gone meanwhile", func(n *inn) { n.gone = true }, nil, 2, 1},
		{"waited for a minute", nil, func(*inn) { time.Sleep(2 * time.Minute) }, 2, 1},
		{"ended while it waited", nil, func(n *inn) { n.guests[0].Conn.Close() }, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &inn{scripted: good(versions(nil))}
				p, err := sandbox.New(t.Context(), sandbox.Options{Driver: n, Lasting: true})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				if test.prepare != nil {
					test.prepare(n)
				}
				visit(t, p, "a")
				synctest.Wait()
				if test.between != nil {
					test.between(n)
					synctest.Wait()
					if load := p.Load(); load.Warm != 0 || !n.guests[0].closed {
						t.Errorf("the load is %+v between the runs, want that the worker has ended", load)
					}
				}
				visit(t, p, "a")
				synctest.Wait()
				if load := p.Load(); len(n.guests) != test.workers || load.Warm != test.waiting {
					t.Errorf("%d workers, the load is %+v; want %d, %d waiting", len(n.guests), load, test.workers, test.waiting)
				}
				if last := n.guests[len(n.guests)-1]; last.closed != (test.waiting == 0) || last.rested != 2-test.workers+1 {
					t.Errorf("the last worker: closed %v, it was to rest %d times", last.closed, last.rested)
				}
			})
		})
	}
}

// TestCancelledResume: a run that is cancelled while a worker is asked whether it answers ends no other worker of its caller.
func TestCancelledResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &inn{scripted: good(versions(nil))}
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: n, Lasting: true})
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
		ctx, cancel := context.WithCancel(t.Context())
		n.resuming = cancel
		if _, err := p.Open(ctx, "a"); err == nil {
			t.Error("a run begins that was cancelled")
		}
		synctest.Wait()
		if load := p.Load(); load.Warm != 2 {
			t.Errorf("the load is %+v, want two of three workers waiting", load)
		}
	})
}

// TestManyResidents: what a driver keeps for callers bounds the workers that wait there, and all of them end side by side:
// one that stands still takes seconds.
func TestManyResidents(t *testing.T) {
	const callers = 30
	n := &inn{scripted: good(versions(nil))}
	var ending sync.WaitGroup
	ending.Add(callers)
	all := make(chan struct{})
	go func() { ending.Wait(); close(all) }()
	n.ending = func() error {
		ending.Done()
		select {
		case <-all:
		case <-time.After(10 * time.Second):
			t.Error("a worker waits for the end of another")
		}
		return nil
	}
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: n, Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range callers {
		visit(t, p, fmt.Sprint("caller ", i))
	}
	if load := p.Load(); load.Warm != callers {
		t.Errorf("the load is %+v, want %d waiting", load, callers)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for i, g := range n.guests {
		if !g.closed {
			t.Errorf("worker %d is left", i)
		}
	}
}
