//go:build linux

package worker

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// patience is how long an applet may hold back what it has said, while it is at work on further items.
const patience = time.Millisecond

// impatience is how many bytes at once are not held back: to be woken for them costs more than to write them.
const impatience = 16 << 10

// A patient writer writes what it is given with the next Flush, or a little later by itself: an item that is answered
// must not wait for one that takes long.
type patient struct {
	mu   sync.Mutex
	w    *bufio.Writer
	late *time.Timer // flushes; guarded by mu, as is everything below
	soon bool        // late runs
}

func newPatient(w io.Writer) *patient {
	p := &patient{w: bufio.NewWriterSize(w, frameHeader+frameMax)}
	p.late = time.AfterFunc(time.Hour, func() { _ = p.Flush() }) // the error comes with the next call
	p.late.Stop()
	return p
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.w.Write(b)
	switch {
	case err != nil:
	case len(b) >= impatience:
		err = p.flush()
	case !p.soon:
		p.soon = true
		p.late.Reset(patience)
	}
	return n, err
}

// Flush writes everything now.
func (p *patient) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flush()
}

func (p *patient) flush() error {
	p.soon = false
	p.late.Stop()
	return p.w.Flush()
}
