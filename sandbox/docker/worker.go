package docker

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/mcsh-dev/mcsh/sandbox"
)

var _ sandbox.Resident = (*worker)(nil)

// A worker is the stream to one worker of a container.
type worker struct {
	*yamux.Stream
	box   *box
	fleet *fleet // nil for one that serves no run
	once  sync.Once

	state state // guarded by the fleet's lock
}

// A state is what a worker does for its caller.
type state int

const (
	serving state = iota // a run, which its container counts
	resting              // it waits for the next one, which is not counted
	ended                // it is at its end, or is to end because its place was needed
)

// Read says of a stream that ended with its container that it did.
func (w *worker) Read(p []byte) (int, error) {
	n, err := w.Stream.Read(p)
	if err != nil && w.box.session.IsClosed() {
		err = w.box.lost()
	}
	return n, err
}

// Close ends the worker: the end of its input tells it to, and its host kills it if it does not. What it still says is
// drained, so that it cannot wait for a reader. A container whose host does not see to that is spoiled.
func (w *worker) Close() error {
	w.once.Do(func() {
		_ = w.Stream.Close() // the end of what is written; a connection that is lost has ended both ways
		_ = w.Stream.SetReadDeadline(time.Now().Add(closeGrace))
		_, err := io.Copy(io.Discard, onlyReader{w.Stream})
		spoiled := err != nil && !w.box.session.IsClosed()
		if spoiled {
			w.box.complain("a worker does not end")
		}
		if w.fleet != nil {
			w.fleet.leave(w, spoiled)
		}
	})
	return nil
}

type onlyReader struct{ io.Reader }

// Rest implements [sandbox.Resident]. A container that has served enough serves no more, so neither does its worker.
func (w *worker) Rest() bool {
	f, b := w.fleet, w.box
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || b.retired || b.runs >= f.options.Runs || b.session.IsClosed() {
		return false
	}
	w.state = resting
	b.resting = append(b.resting, w)
	b.active--
	b.left = time.Now()
	return true
}

// Resume implements [sandbox.Resident].
func (w *worker) Resume() bool {
	f, b := w.fleet, w.box
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.state != resting || f.closed || !f.serves(b) {
		return false
	}
	b.forget(w)
	w.state = serving
	f.begin(b)
	return true
}

// leave takes note that a worker has ended. After a run another one waits in its place; one that has waited is not missed:
// its caller did not come.
func (f *fleet) leave(w *worker, spoiled bool) {
	b := w.box
	if spoiled {
		f.retire(b) // at once: the next run is not to find it
	}
	f.mu.Lock()
	served := w.state == serving
	if w.state == resting {
		b.forget(w)
	}
	w.state = ended
	f.mu.Unlock()
	if served {
		f.done(b)
		f.prepare(b)
	}
}

// forget takes a worker from those that wait. The fleet's lock is held.
func (b *box) forget(w *worker) {
	if i := slices.Index(b.resting, w); i >= 0 {
		b.resting = slices.Delete(b.resting, i, i+1)
	}
}

// clear ends the workers that wait in b where runs need their places, those that have waited longest first. The lock is held.
func (f *fleet) clear(b *box) {
	for len(b.resting) > 0 && b.active+len(b.resting) > f.options.Share {
		w := b.resting[0]
		b.resting = slices.Delete(b.resting, 0, 1)
		w.state = ended
		f.work.Go(func() { _ = w.Stream.Close() }) // the end of its input ends it, which its reader sees
	}
}
