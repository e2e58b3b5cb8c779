package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Run is one execution of a pipeline: what its stages share.
type Run struct {
	deps     Deps
	outer    context.Context // the caller's, without the run's timeout: a tool call with effects ends with it or by its own timeout
	progress func(Progress)
	trace    Trace
	dry      *rehearsal // of a dry run
	record   *record    // what is kept of the run
	logs     []*itemLog // of its for_each stages, while the steps are bound

	calls   atomic.Int64
	held    atomic.Int64
	shared  atomic.Int64 // of held: results kept for equal calls
	spooled atomic.Int64
	items   atomic.Int64

	// While the steps are bound:
	watched bool      // their links are told of ([RunOptions.Stage])
	log     *itemLog  // of the for_each whose stages these are
	session Session   // opened when one of them is a command
	inputs  []*inputs // of all commands so far
	sets    int       // how many commands have inputs

	mu      sync.Mutex
	windows []Window          // guarded by mu
	blocks  []json.RawMessage // guarded by mu
}

// Progress says how far a run is.
type Progress struct {
	Items int64 // items of for_each stages that are finished
	Calls int64 // tool calls that were started
}

// commands returns the run's sandbox session, and opens it at first.
func (r *Run) commands(ctx context.Context) (Session, error) {
	if r.session == nil {
		s, err := r.deps.Commands.Open(ctx, r.deps.Caller)
		if err != nil {
			return nil, err
		}
		r.session = s
	}
	return r.session, nil
}

// close gives the sandbox session back.
func (r *Run) close() error {
	if r.session == nil {
		return nil
	}
	return r.session.Close()
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

// looked keeps the text of a window. A window within a stage that runs often shows its latest view.
func (r *Run) looked(w Window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.windows {
		if r.windows[i].Place == w.Place {
			r.windows[i] = w
			return
		}
	}
	r.windows = append(r.windows, w)
}

// show keeps the content blocks of the last stage.
func (r *Run) show(blocks []json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = blocks
}

// hold takes n bytes of the memory that one run may hold.
func (r *Run) hold(n int64) error {
	if r.held.Add(n) > r.deps.Limits.Held {
		r.held.Add(-n)
		return ofRun(OverLimit("held", "lower concurrency, or make each item's result smaller",
			"the run holds more than %s in memory", size(r.deps.Limits.Held)))
	}
	return nil
}

// ofRun marks the failure of a limit that all of a run shares.
func ofRun(e *Error) *Error {
	e.OfRun = true
	return e
}

// crowded reports whether the run holds so much that what runs should end before more begins.
func (r *Run) crowded() bool { return r.held.Load() > r.deps.Limits.Held/4 }

// holder is a buffer whose bytes count as held by the run until it is released.
type holder struct {
	r   *Run
	max int64 // bytes, of what is kept because it may be written anew; 0: any
	buf bytes.Buffer
}

func (h *holder) Write(p []byte) (int, error) {
	if h.max > 0 && int64(h.buf.Len()+len(p)) > h.max {
		return 0, OverLimit("attempt", "leave retries out, or make each item's result smaller",
			"the result of an item that may be tried again is more than %s", size(h.max))
	}
	if err := h.r.hold(int64(len(p))); err != nil {
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
	h.buf = *bytes.NewBuffer(data)
	return nil
}

func (h *holder) release() {
	h.r.held.Add(-int64(h.buf.Len()))
	h.buf = bytes.Buffer{}
}

// readAll reads at most limit bytes from in and reports whether there was more.
func readAll(in io.Reader, limit int64) (data []byte, more bool, err error) {
	room := int64(512)
	if known, ok := in.(*meteredReader); ok && known.left() >= 0 {
		room = min(int64(known.left()), limit) + 1 // for the read that sees the end
	}
	data = make([]byte, 0, room)
	for err == nil && int64(len(data)) <= limit {
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
		var n int
		n, err = in.Read(data[len(data):min(int64(cap(data)), limit+1)])
		data = data[:len(data)+n]
	}
	if err == io.EOF {
		err = nil
	}
	return data, int64(len(data)) > limit, err
}

// ordered returns the windows in the order of their stages.
func (r *Run) ordered(steps []*Step) []Window {
	byPlace := map[Place]Window{}
	for _, w := range r.windows {
		byPlace[w.Place] = w
	}
	var list []Window
	var walk func(steps []*Step)
	walk = func(steps []*Step) {
		for _, s := range steps {
			if w, ok := byPlace[s.place]; ok {
				list = append(list, w)
			}
			for _, n := range s.Nested {
				walk(n.Steps)
			}
		}
	}
	walk(steps)
	return list
}
