package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
)

// Errors of a connection.
var (
	ErrLost      = errors.New("the connection to the sandbox worker is lost")
	ErrDeaf      = errors.New("the reader has stopped reading")
	ErrCancelled = errors.New("the run was cancelled")
	ErrTooLarge  = errors.New("too large for one message")
)

// A conn is what both ends have in common: the streams, the outbox and the loop that reads frames.
type conn struct {
	rwc    io.ReadWriteCloser
	self   side
	out    *outbox
	done   chan struct{} // closed when the connection has failed or was closed
	closed sync.Once

	mu      sync.Mutex
	streams map[uint32]*Stream
	err     error // why done is closed
}

func newConn(rwc io.ReadWriteCloser, self side) *conn {
	return &conn{rwc: rwc, self: self, out: newOutbox(hardLimits[self]), done: make(chan struct{}), streams: map[uint32]*Stream{}}
}

// handle takes one frame that is not data or credit. payload is valid until it returns.
type handle func(h header, payload []byte) error

// read reads frames until one is wrong or the stream ends; io.EOF is a clean end.
func (c *conn) read(handle handle) error {
	r := bufio.NewReaderSize(c.rwc, 2*MaxData)
	buf := make([]byte, MaxData)
	peer := (gateway | worker) &^ c.self
	for {
		h, err := readHeader(r, peer)
		if err != nil {
			return err
		}
		if int(h.length) > len(buf) {
			buf = make([]byte, h.length) // at most MaxChain, see readHeader
		}
		payload := buf[:h.length]
		if _, err := io.ReadFull(r, payload); err != nil {
			return fmt.Errorf("reading a %s frame: %w", kinds[h.kind].name, NoEOF(err))
		}
		if err := handle(h, payload); err != nil {
			return err
		}
	}
}

// NoEOF returns the error of a reader that must not end here.
func NoEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// fail ends the connection and every stream with err, once.
func (c *conn) fail(err error) {
	c.closed.Do(func() {
		c.mu.Lock()
		c.err = err
		streams := maps.Clone(c.streams)
		c.mu.Unlock()
		c.out.stop(err)
		close(c.done)
		for _, s := range streams {
			s.fail(err)
		}
		_ = c.rwc.Close() // the error that led here is the one that counts
	})
}

// open registers the stream of a new run.
func (c *conn) open(id uint32) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if c.streams[id] != nil {
		return nil, protocolError("a second run %d", id)
	}
	if len(c.streams) >= MaxStreams {
		return nil, protocolError("more than %d runs at a time", MaxStreams)
	}
	s := newStream(c, id)
	c.streams[id] = s
	return s, nil
}

// find returns the stream of a run that is under way, nil if there is none.
func (c *conn) find(id uint32) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// under returns how many runs are under way.
func (c *conn) under() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

func (c *conn) forget(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, id)
}

func (c *conn) data(id uint32, p []byte) error { return c.out.data(id, p) }

// message sends any other frame and never waits: its caller may hold a lock. The end of a connection takes as long as that
// of the worker.
func (c *conn) message(k kind, id uint32, payload []byte) error {
	err := c.out.message(k, id, payload)
	if wrong := (*ProtocolError)(nil); errors.As(err, &wrong) {
		go c.fail(err)
	}
	return err
}

// Buffers are what data moves in, of [MaxData] bytes each. Small chains come by the thousand, so they are shared.
type Buffers struct{ pool sync.Pool }

// Get returns a buffer that nobody else has.
func (b *Buffers) Get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, MaxData)
	return &p
}

// Put gives a buffer back.
func (b *Buffers) Put(p *[]byte) { b.pool.Put(p) }
