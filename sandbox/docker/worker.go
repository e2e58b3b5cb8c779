package docker

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// A worker is one of the workers that live in a container, one after another. The connection carries their streams in
// chunks; the host at its other end starts a worker as soon as the one before has ended.
type worker struct {
	box    *box
	before <-chan struct{} // closed when all that the worker before has said was read
	read   chan struct{}   // closed when all that this one has said was read
	done   atomic.Bool     // it was closed or replaced
}

// Read implements [io.Reader]. It says of a stream that ended with its container that it did.
func (w *worker) Read(p []byte) (int, error) {
	select {
	case <-w.before:
	case <-w.box.ended:
		return 0, w.box.lost()
	}
	n, err := w.box.in.Read(p)
	switch err {
	case nil:
	case io.EOF:
		close(w.read)
	default:
		w.box.end()
		err = w.box.lost()
	}
	return n, err
}

// Write implements [io.Writer].
func (w *worker) Write(p []byte) (int, error) {
	w.box.writing.Lock()
	defer w.box.writing.Unlock()
	if w.done.Load() {
		return 0, io.ErrClosedPipe
	}
	n, err := w.box.out.Write(p)
	if err != nil {
		w.box.end() // nobody knows what has come there
	}
	return n, err
}

// Close implements [sandbox.Worker]: the container ends.
func (w *worker) Close() error {
	if w.done.CompareAndSwap(false, true) {
		w.box.end()
	}
	return nil
}

// Replace implements [sandbox.Worker].
func (w *worker) Replace() sandbox.Worker {
	if next := w.replace(); next != nil {
		return next
	}
	return nil
}

func (w *worker) replace() *worker {
	b := w.box
	if !w.done.CompareAndSwap(false, true) {
		return nil
	}
	_ = b.conn.SetWriteDeadline(time.Now().Add(endTimeout)) // of a write that is under way, too; an error shows there
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.out.End(); err != nil {
		b.end()
		return nil
	}
	_ = b.conn.SetWriteDeadline(time.Time{}) // likewise
	return &worker{box: b, before: w.read, read: make(chan struct{})}
}

// examine has use talk to the worker, and returns one that takes its place. use closes what it gets.
func (w *worker) examine(ctx context.Context, use func(io.ReadWriteCloser) error) (*worker, error) {
	stop := context.AfterFunc(ctx, w.box.end) // use waits for the end of what the worker says
	defer stop()
	e := &examined{worker: w}
	err := use(e)
	if err == nil && e.next == nil {
		err = w.box.lost()
	}
	if err != nil {
		w.box.end()
	}
	return e.next, err
}

// An examined worker is replaced when it is closed.
type examined struct {
	*worker
	next *worker
}

// Close replaces the worker.
func (e *examined) Close() error {
	if next := e.replace(); next != nil {
		e.next = next
	}
	return nil
}
