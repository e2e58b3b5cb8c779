package wire

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
)

// A Stream is one run as one end sees it. Read gives what the other end sends, Write sends.
// One goroutine may read while another writes.
type Stream struct {
	conn *conn
	id   uint32

	cancel context.CancelCauseFunc // of what serves it, in the worker

	mu       sync.Mutex
	arrived  sync.Cond // data, the end, or err
	allowed  sync.Cond // credit, deafness, or err
	in       inbox
	window   int   // what the peer may still send
	owed     int   // read since credit was last given
	ended    bool  // no more data will come
	deafSelf bool  // what comes is dropped
	credit   int   // what may still be sent
	deafPeer bool  // the peer does not want more
	err      error // ends everything
	outcome  *Outcome
}

func newStream(c *conn, id uint32) *Stream {
	s := &Stream{conn: c, id: id, window: Window, credit: Window}
	s.arrived.L, s.allowed.L = &s.mu, &s.mu
	return s
}

// An inbox holds bytes that have arrived and were not read yet. The credit of the protocol bounds it to Window.
type inbox struct {
	buf   []byte
	start int // index of the oldest byte
}

func (b *inbox) len() int { return len(b.buf) - b.start }

func (b *inbox) write(p []byte) {
	if len(b.buf)+len(p) > cap(b.buf) {
		b.buf = b.buf[:copy(b.buf, b.buf[b.start:])]
		b.start = 0
	}
	b.buf = append(b.buf, p...)
}

// read moves the oldest bytes to p and returns how many.
func (b *inbox) read(p []byte) int {
	n := copy(p, b.buf[b.start:])
	if b.start += n; b.start == len(b.buf) {
		b.buf, b.start = b.buf[:0], 0
	}
	return n
}

// Read returns what has arrived, waiting for it if necessary. io.EOF means that the other end has said it all.
func (s *Stream) Read(p []byte) (int, error) {
	n, grant, err := s.take(p)
	if grant > 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(grant))
		if err := s.conn.message(kindCredit, s.id, b[:]); err != nil {
			return n, err
		}
	}
	return n, err
}

// take waits for data and returns how many bytes it moved to p and how much credit is to be given back.
func (s *Stream) take(p []byte) (n, grant int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.in.len() == 0 && !s.ended && s.err == nil && !s.deafSelf {
		s.arrived.Wait()
	}
	switch {
	case s.err != nil:
		return 0, 0, s.err
	case s.deafSelf:
		return 0, 0, io.ErrClosedPipe
	case s.in.len() == 0:
		return 0, 0, io.EOF
	}
	n = s.in.read(p)
	s.owed += n
	if s.owed >= Window/4 && !s.ended {
		grant, s.owed = s.owed, 0
		s.window += grant
	}
	return n, grant, nil
}

// Write sends p, waiting for credit. It returns [ErrDeaf] when the other end does not want more.
func (s *Stream) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := s.spend(min(len(p)-sent, MaxData))
		if err != nil {
			return sent, err
		}
		if err := s.conn.data(s.id, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// spend waits for credit and takes at most want of it.
func (s *Stream) spend(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit == 0 && !s.deafPeer && s.err == nil {
		s.allowed.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.deafPeer:
		return 0, ErrDeaf
	}
	n := min(want, s.credit)
	s.credit -= n
	return n, nil
}

// receive takes a data frame.
func (s *Stream) receive(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return protocolError("data after the end of run %d", s.id)
	case len(p) > s.window:
		return protocolError("data beyond the credit of run %d", s.id)
	}
	s.window -= len(p)
	if !s.deafSelf && s.err == nil {
		s.in.write(p)
		s.arrived.Broadcast()
	}
	return nil
}

// earn takes a credit frame.
func (s *Stream) earn(n uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n == 0 || n > uint32(Window-s.credit) {
		return protocolError("credit of %d bytes for run %d, which has %d", n, s.id, s.credit)
	}
	s.credit += int(n)
	s.allowed.Signal()
	return nil
}

// end says that no more data will come.
func (s *Stream) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return protocolError("second end of run %d", s.id)
	}
	s.ended = true
	s.arrived.Broadcast()
	return nil
}

// hush ends Write on this side: the peer is deaf.
func (s *Stream) hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deafPeer = true
	s.allowed.Broadcast()
}

// stopReading drops what has arrived and will arrive. It reports whether the peer needs a message.
func (s *Stream) stopReading() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	tell := !s.deafSelf && !s.ended
	s.deafSelf = true
	s.in = inbox{} // which gives the memory back
	s.arrived.Broadcast()
	return tell
}

// fail ends both directions at once.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.arrived.Broadcast()
	s.allowed.Broadcast()
}

// settle takes the outcome: data that has arrived can still be read, nothing more can be written.
func (s *Stream) settle(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome, s.ended, s.deafPeer = o, true, true
	s.arrived.Broadcast()
	s.allowed.Broadcast()
}
