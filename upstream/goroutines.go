package upstream

import (
	"context"
	"sync"
)

// goroutines are those of a pool. After close, none is started.
type goroutines struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	wg     sync.WaitGroup
}

// start runs f in a goroutine, and reports whether it does.
func (g *goroutines) start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

// close waits for all of them.
func (g *goroutines) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// run runs f in a goroutine, or after close at once.
func (g *goroutines) run(f func()) {
	if !g.start(f) {
		f()
	}
}

// A flight is work on a value that callers wait for together.
type flight[T any] struct {
	done  chan struct{}
	value T     // once done is closed
	err   error // once done is closed
}

// launch does work in a goroutine, and then calls land with mu held, until the flight is over: nobody sees what land
// records before waiting callers are woken. After close there is no work, and the flight fails with the error closed.
func launch[T any](g *goroutines, closed error, work func() (T, error), mu *sync.Mutex, land func(T, error)) *flight[T] {
	f := &flight[T]{done: make(chan struct{})}
	started := g.start(func() {
		f.value, f.err = work()
		mu.Lock()
		defer mu.Unlock()
		land(f.value, f.err)
		close(f.done)
	})
	if !started {
		f.err = closed
		close(f.done)
	}
	return f
}

// over waits for the result, and reports false if ctx ends before there is one.
func (f *flight[T]) over(ctx context.Context) bool {
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
