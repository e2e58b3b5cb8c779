package stages

import (
	"bytes"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sampleSize is how many bytes of the input of a stage are remembered for its errors.
const sampleSize = 32 << 10

// Meter counts what one stage did in one run, over all of its calls. Its methods may be called concurrently.
type Meter struct {
	step   *Step
	nested []*Meter // one per step of Step.Nested, in order

	items, calls      atomic.Int64
	took              atomic.Int64 // calls that have changed something, or may have
	resumed           atomic.Int64 // items whose results an earlier run had
	pages, fetched    atomic.Int64 // of lists, and their items
	lists, ended      atomic.Int64 // of pages: begun, and fetched to the end
	more              atomic.Bool  // whether a list had more pages than were fetched
	bytesIn, bytesOut atomic.Int64
	elapsed, cpu      atomic.Int64 // nanoseconds
	broke             atomic.Bool  // whether a call of the filter ended with an error
	shared            atomic.Int64 // calls answered with the result of an equal one
	tally             tally        // of the items of a for_each

	mu      sync.Mutex
	leftOut []string // guarded by mu
	sample  []byte   // guarded by mu

	uses map[string]use // of the fields that can do nothing without anybody seeing it, by name; guarded by mu
}

// A use is whether a field of a stage has done anything, and what to say if it has not.
type use struct {
	worked bool
	idle   string
}

// used notes whether a field of the stage has done something this time.
func (m *Meter) used(field string, worked bool, idle string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uses == nil {
		m.uses = map[string]use{}
	}
	m.uses[field] = use{worked || m.uses[field].worked, idle}
}

// idle says which fields never did anything. m.mu is held.
func (m *Meter) idle() (notes []string) {
	for _, field := range slices.Sorted(maps.Keys(m.uses)) {
		if u := m.uses[field]; !u.worked {
			notes = append(notes, u.idle)
		}
	}
	return notes
}

func newMeter(step *Step) *Meter { return &Meter{step: step} }

// all yields a meter and those within it, at any depth.
func (m *Meter) all() iter.Seq[*Meter] {
	return func(yield func(*Meter) bool) { m.walk(yield) }
}

func (m *Meter) walk(yield func(*Meter) bool) bool {
	if !yield(m) {
		return false
	}
	for _, inner := range m.nested {
		if !inner.walk(yield) {
			return false
		}
	}
	return true
}

// maxLeftOut bounds how many left-out fields a report names: data can have any number.
const maxLeftOut = 50

// leave notes fields that were left out of a tool's arguments, once each.
func (m *Meter) leave(fields []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range fields {
		if len(m.leftOut) < maxLeftOut && !slices.Contains(m.leftOut, f) {
			m.leftOut = append(m.leftOut, f)
		}
	}
}

// add counts what a command used.
func (m *Meter) add(u Usage) {
	m.bytesIn.Add(u.BytesIn)
	m.bytesOut.Add(u.BytesOut)
	m.elapsed.Add(int64(u.Elapsed))
	m.cpu.Add(int64(u.CPU))
}

// time counts one call of the filter from now until the returned function is called.
func (m *Meter) time() (stop func()) {
	start := time.Now()
	return func() { m.elapsed.Add(int64(time.Since(start))) }
}

// reader counts what is read from r, and remembers its beginning where keep is set.
func (m *Meter) reader(r io.Reader, keep bool) io.Reader {
	return &meteredReader{r: r, m: m, keep: keep}
}

// writer counts what is written to w.
func (m *Meter) writer(w io.Writer) io.Writer { return &meteredWriter{w, m} }

type meteredReader struct {
	r    io.Reader
	m    *Meter
	keep bool
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.m.bytesIn.Add(int64(n))
	if r.keep && n > 0 {
		r.keep = r.m.remember(p[:n])
	}
	return n, err
}

// left returns how many bytes are still to be read, or -1 if that is not known.
func (r *meteredReader) left() int {
	if known, ok := r.r.(*bytes.Reader); ok {
		return known.Len()
	}
	return -1
}

// CloseWithError passes the end of reading on to the pipe behind the meter.
func (r *meteredReader) CloseWithError(error) error {
	stopReading(r.r)
	return nil
}

// remember appends to the sample and reports whether there is room for more.
func (m *Meter) remember(p []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	room := sampleSize - len(m.sample)
	m.sample = append(m.sample, p[:min(room, len(p))]...)
	return len(p) < room
}

// head returns the beginning of the stage's input, and whether that is not all of it.
func (m *Meter) head() (sample []byte, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sample, m.bytesIn.Load() > int64(len(m.sample))
}

// lastWrite passes on what is said of the next write.
func (w *meteredWriter) lastWrite() { lastWrite(w.w) }

type meteredWriter struct {
	w io.Writer
	m *Meter
}

func (w *meteredWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.m.bytesOut.Add(int64(n))
	return n, err
}
