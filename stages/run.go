package stages

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Run is one execution of a pipeline: what its stages share.
type Run struct {
	deps     Deps
	plan     CommandPlan     // of the pipeline's commands; nil where there are none
	outer    context.Context // the caller's, without the run's timeout: a tool call with effects ends with it or by its own timeout
	progress func(Progress)
	trace    Trace
	dry      *rehearsal  // of a dry run
	record   *record     // what is kept of the run
	resumed  *resumption // the run that this one continues
	effects  *effectLog
	logs     []*itemLog // of its for_each stages, added while the steps are bound

	memory  *memory.Lease // of the process, for what is held
	spools  *memory.Lease // for what spools have in memory, which leaves room for what cannot wait on the disk
	calls   atomic.Int64
	held    atomic.Int64
	shared  atomic.Int64 // of held: results kept for equal calls
	spooled atomic.Int64
	saved   atomic.Int64 // written to the workspace
	items   atomic.Int64

	// While the steps are bound:
	watched bool      // their links are told of ([RunOptions.Stage])
	session Session   // opened when one of them is a command
	inputs  []*inputs // of all commands so far
	sets    int       // how many commands have inputs

	shown Result // of the last stage, which sets it; its memory is taken until the run ends
}

// commands returns the run's sandbox session, and opens it at first.
func (r *Run) commands(ctx context.Context) (Session, error) {
	if r.session == nil {
		s, err := r.plan.Open(ctx)
		if err != nil {
			return nil, err
		}
		r.session = s
	}
	return r.session, nil
}

// close gives the sandbox session back, or what the checks have kept for one that was not needed.
func (r *Run) close() error {
	switch {
	case r.session != nil:
		return r.session.Close()
	case r.plan != nil:
		_ = r.plan.Close() // a worker that is lost has ended too
	}
	return nil
}

// called counts a tool call before it is made.
func (r *Run) called() error {
	if n := r.calls.Add(1); n > int64(r.deps.Limits.Calls) {
		return ofRun(OverLimit("calls", "filter the items before the call, or split the work into several pipelines",
			"the run makes more than %d tool calls", r.deps.Limits.Calls))
	}
	return nil
}

// finished counts a finished item.
func (r *Run) finished() {
	items := r.items.Add(1)
	if r.progress != nil {
		r.progress(Progress{Items: items, Calls: r.calls.Load()})
	}
}

// hold takes n bytes of the memory that one run may hold, and of that of the process.
func (r *Run) hold(n int64) error {
	if err := r.count(n); err != nil {
		return err
	}
	if err := r.memory.Grow(n); err != nil {
		r.held.Add(-n)
		return noMemory(err)
	}
	return nil
}

// release gives back n bytes that were held.
func (r *Run) release(n int64) {
	r.held.Add(-n)
	_ = r.memory.Grow(-n) // does not fail
}

// count takes n bytes of what one run may hold, whose memory has been taken already.
func (r *Run) count(n int64) error {
	if r.held.Add(n) > r.deps.Limits.Held {
		r.held.Add(-n)
		return ofRun(OverLimit("held", "lower concurrency, or make each item's result smaller",
			"the run holds more than %s in memory", texts.Bytes(r.deps.Limits.Held)))
	}
	return nil
}

// noMemory is the error of what finds no room in the memory of the process, see [memory.Full].
func noMemory(err error) *Error {
	return ofRun(OverLimit("memory", "try again when less is running, or filter and page so that less is held at once", "%w", err))
}

// ofRun marks the failure of a limit that all of a run shares.
func ofRun(e *Error) *Error {
	e.OfRun = true
	return e
}

// crowded reports whether the run holds so much that what runs should end before more begins.
func (r *Run) crowded() bool { return r.held.Load() > r.deps.Limits.Held/4 }

// buffer is a buffer whose capacity counts as memory of the process: while it grows there are two.
type buffer struct {
	buf   bytes.Buffer // no member of holder: only its Write counts
	lease *memory.Lease
	room  int64 // bytes taken of it
}

// reserve makes room for n more bytes.
func (b *buffer) reserve(n int) error {
	need := int64(b.buf.Len() + n)
	if need <= b.room {
		return nil
	}
	room := max(need, 2*b.room, 512)
	if err := b.lease.Grow(room); err != nil {
		return noMemory(err)
	}
	b.buf.Grow(int(room) - b.buf.Len())
	_ = b.lease.Grow(-b.room) // the buffer before
	b.room = room
	return nil
}

// readAll reads at most limit bytes from in and reports whether there was more. The buffer counts as what room has.
func readAll(in io.Reader, limit int64, room *memory.Lease) (data []byte, more bool, err error) {
	b := buffer{lease: room}
	if src, ok := in.(*meteredReader); ok && src.left() > 0 {
		if err := b.reserve(int(min(int64(src.left()), limit) + 1)); err != nil { // one more for the read that sees the end
			return nil, false, err
		}
	}
	for err == nil && int64(b.buf.Len()) <= limit {
		if err := b.reserve(1); err != nil {
			return nil, false, err
		}
		var n int
		free := b.buf.AvailableBuffer()
		n, err = in.Read(free[:min(int64(cap(free)), limit+1-int64(b.buf.Len()))])
		b.buf.Write(free[:n])
	}
	if err == io.EOF {
		err = nil
	}
	return b.buf.Bytes(), int64(b.buf.Len()) > limit, err
}

// holder is a buffer whose bytes count as held by the run until it is released.
type holder struct {
	buffer
	r   *Run
	max int64 // bytes, of what is kept because it may be written anew; 0: any
}

func (h *holder) Write(p []byte) (int, error) {
	if h.max > 0 && int64(h.buf.Len()+len(p)) > h.max {
		return 0, OverLimit("attempt", "leave retries out, or make each item's result smaller",
			"the result of an item that may be tried again is more than %s", texts.Bytes(h.max))
	}
	if err := h.r.count(int64(len(p))); err != nil {
		return 0, err
	}
	if err := h.reserve(len(p)); err != nil {
		h.r.held.Add(-int64(len(p)))
		return 0, err
	}
	return h.buf.Write(p)
}

// adopt makes data, which nobody else keeps, what the buffer holds.
func (h *holder) adopt(data []byte) error {
	h.release()
	if err := h.r.hold(int64(len(data))); err != nil {
		return err
	}
	h.buf, h.room = *bytes.NewBuffer(data), int64(len(data))
	return nil
}

func (h *holder) release() {
	h.r.held.Add(-int64(h.buf.Len()))
	_ = h.lease.Grow(-h.room)
	h.buf, h.room = bytes.Buffer{}, 0
}
