package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// output holds its first bytes in memory and the rest in chunks. Only its writer changes it, and only until it has ended.
type output struct {
	s      *Store
	mem    []byte
	chunks []chunk
	size   int64

	log *writer // of an output whose beginning is kept in any case; nil for others

	// Guarded by the store's mu:
	ended      bool
	incomplete string // the reason why it is not whole, or empty
	owners     int    // runs that have it, and its readers
}

// ReadAt implements [io.ReaderAt] for an output that has ended.
func (o *output) ReadAt(p []byte, off int64) (n int, err error) { return o.readTo(o.size, p, off) }

// readTo reads what is in memory and in chunks, up to end.
func (o *output) readTo(end int64, p []byte, off int64) (n int, err error) {
	for n < len(p) && off < end {
		var m int
		if head := int64(len(o.mem)); off < head {
			m = copy(p[n:], o.mem[off:])
		} else {
			at := off - head
			in := at % chunkSize
			m = int(min(int64(len(p)-n), chunkSize-in, end-off))
			if err := o.s.disk.read(o.chunks[at/chunkSize], p[n:n+m], in); err != nil {
				return n, err
			}
		}
		n, off = n+m, off+int64(m)
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// A writer fills an output. It drops data that cannot be kept and remembers why.
type writer struct {
	o       *output
	partial bool // keep the beginning if the rest is dropped

	mu     sync.Mutex // held also while it writes
	closed bool       // end was called; guarded by mu
	why    string     // the reason why no more data is kept, or empty; guarded by mu
	tail   []byte     // the beginning of the last chunk, not written yet; guarded by mu
}

func (s *Store) newWriter(partial bool) *writer {
	w := &writer{o: &output{s: s}, partial: partial}
	if partial {
		w.o.log = w
	}
	return w
}

// Write keeps all of p, or drops p and all later data. It does not fail.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == "" && !w.closed && len(p) > 0 {
		if w.why = w.keep(p); w.why != "" && !w.partial {
			w.drop()
		}
	}
	return len(p), nil
}

// keep appends p, or returns the reason why it cannot.
func (w *writer) keep(p []byte) string {
	o, limit := w.o, w.o.s.o.Output
	if o.size+int64(len(p)) > limit {
		return fmt.Sprintf("it is longer than %s, which is the most that is kept of one stage", texts.Bytes(limit))
	}
	head, tail, chunks := len(o.mem), len(w.tail), len(o.chunks)
	rest, why := w.keepInMemory(p)
	if why == "" && len(rest) > 0 {
		why = w.keepOnDisk(rest)
	}
	if why == "" {
		o.size += int64(len(p))
		return ""
	}
	if o.mem = o.mem[:head]; len(o.chunks) > chunks {
		tail = 0 // the old tail is in a chunk now
	}
	w.tail = w.tail[:tail]
	return why
}

// keepInMemory appends as much of p as belongs there and returns the rest.
func (w *writer) keepInMemory(p []byte) (rest []byte, why string) {
	o, s := w.o, w.o.s
	if len(o.chunks) > 0 || len(w.tail) > 0 {
		return p, ""
	}
	n := min(len(p), int(s.o.Head)-len(o.mem))
	if need := len(o.mem) + n; need > cap(o.mem) {
		room := min(max(need, 2*cap(o.mem), 512), max(need, int(s.o.Head)))
		more := int64(room - cap(o.mem))
		switch s.reserve(more, more) {
		case full:
			return p, s.fullText()
		case onDisk:
			return p, ""
		}
		mem := make([]byte, len(o.mem), room)
		copy(mem, o.mem)
		o.mem = mem
	}
	o.mem = append(o.mem, p[:n]...)
	return p[n:], ""
}

func (w *writer) keepOnDisk(p []byte) (why string) {
	if w.tail == nil {
		if !w.o.s.reserveBuffer(chunkSize) {
			return "the memory for what runs produce was full (--memory)"
		}
		w.tail = make([]byte, 0, chunkSize)
	}
	for len(p) > 0 {
		n := min(len(p), chunkSize-len(w.tail))
		w.tail = append(w.tail, p[:n]...)
		p = p[n:]
		if len(w.tail) == chunkSize {
			if why := w.flush(); why != "" {
				return why
			}
		}
	}
	return ""
}

// flush writes the last chunk.
func (w *writer) flush() (why string) {
	s := w.o.s
	if s.reserve(chunkSize, 0) == full {
		return s.fullText()
	}
	c, err := s.disk.take()
	if err != nil {
		s.unreserve(chunkSize, 0)
		return diskText(err)
	}
	if err := s.disk.write(c, w.tail); err != nil {
		s.releaseChunk(c)
		return diskText(err)
	}
	w.o.chunks = append(w.o.chunks, c)
	w.tail = w.tail[:0]
	return ""
}

// end completes the output. It drops an incomplete one unless partial is set.
func (w *writer) end(incomplete string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	o := w.o
	if len(w.tail) > 0 && (w.why == "" || w.partial) {
		if why := w.flush(); why != "" && w.why == "" {
			w.why = why
		}
		o.size = min(o.size, int64(len(o.mem)+len(o.chunks)*chunkSize))
	}
	if w.why == "" {
		w.why = incomplete
	}
	if w.why != "" && !w.partial {
		w.drop()
	}
	w.clip()
	w.returnTail()
	o.s.finish(o, w.why)
}

// read returns what a writer has kept, from off on. ended says that there will be nothing else, and incomplete why, if it keeps no more.
func (w *writer) read(off, most int64) (data []byte, ended bool, incomplete string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.o.size // not more: a write that failed, and the end, leave a longer last chunk
	if off < all {
		flushed := min(int64(len(w.o.mem))+int64(len(w.o.chunks))*chunkSize, all)
		data = make([]byte, min(most, all-off))
		n, err := w.o.readTo(flushed, data, off)
		if err != nil && err != io.EOF {
			return nil, false, "", err
		}
		copy(data[n:], w.tail[max(off+int64(n)-flushed, 0):])
	}
	if ended = (w.closed || w.why != "") && off+int64(len(data)) >= all; ended {
		incomplete = w.why
	}
	return data, ended, incomplete, nil
}

// peek returns data of an output, from off on: of one that has ended or is a log. ended says that there is nothing else. The caller
// is one of its owners.
func (s *Store) peek(o *output, off, most int64) (data []byte, ended bool, incomplete string, err error) {
	s.mu.Lock()
	over := o.ended
	s.unlock()
	switch {
	case over:
		data = make([]byte, max(min(most, o.size-off), 0))
		if _, err = o.ReadAt(data, off); err == io.EOF {
			err = nil
		}
		if ended = off+int64(len(data)) >= o.size; ended {
			incomplete = o.incomplete // does not change any more
		}
	case o.log != nil:
		return o.log.read(off, most)
	}
	return data, ended, incomplete, err
}

// clip frees memory that was reserved but not used.
func (w *writer) clip() {
	if spare := cap(w.o.mem) - len(w.o.mem); spare > 0 {
		w.o.mem = slices.Clip(bytes.Clone(w.o.mem))
		w.o.s.unreserve(int64(spare), int64(spare))
	}
}

func (w *writer) returnTail() {
	if w.tail != nil {
		w.tail = nil
		w.o.s.unreserve(0, chunkSize)
	}
}

// drop frees all data of the output.
func (w *writer) drop() {
	w.returnTail()
	w.o.s.free(w.o)
}

// diskText explains an error of a file without its path, which callers must not see.
func diskText(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return "the disk for temporary files is full"
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return "the disk for temporary files cannot be written: " + number.Error()
	}
	return "the disk for temporary files cannot be written"
}
