package stages

import (
	"bytes"
	"io"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

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

// readAll reads at most limit bytes from in and reports whether there was more. The buffer counts in lease.
func readAll(in io.Reader, limit int64, lease *memory.Lease) (data []byte, more bool, err error) {
	b := buffer{lease: lease}
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
