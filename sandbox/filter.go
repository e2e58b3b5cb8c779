package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// killGrace is how long a worker may take to kill a chain and say so, before it is given up.
const killGrace = 3 * time.Second

// buffers are what data moves in; two for each chain that runs. Small chains come by the thousand, so they are shared.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, wire.MaxData)
	return &p
}

func (b *buffers) put(p *[]byte) { b.pool.Put(p) }

// A filter is a prepared chain.
type filter struct {
	session *session
	chain   []wire.Command
	args    [][]string // of each command, as the agent wrote them
	id      uint32
	used    func(i int, u stages.Usage)
}

// run is a [stages.Filter]. A Read of in may still be under way when it returns, if the chain ended without wanting
// more: whoever feeds in ends that Read, and what it brings is dropped.
func (f *filter) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := f.session.slot(ctx); err != nil {
		return at(err, 0, f.chain[0].Name)
	}
	defer func() { <-f.session.slots }()
	if err := f.session.enter(); err != nil {
		return at(err, 0, f.chain[0].Name)
	}
	defer f.session.leave()
	return f.once(ctx, in, out)
}

// once is run for who has a slot.
func (f *filter) once(ctx context.Context, in io.Reader, out io.Writer) error {
	stream, err := f.session.client.Run(f.id)
	if err != nil {
		return at(lostError(err), 0, f.chain[0].Name)
	}
	c := newCall(stream, f.session)
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	go c.feed(in)
	writeErr := c.drain(out)
	outcome, lost := stream.Outcome()
	f.session.judge(outcome, lost)
	if n := len(outcome.Usage); lost == nil && n > len(f.chain) {
		lost = fmt.Errorf("it reports what %d commands used, and there are %d", n, len(f.chain))
	}
	readErr := c.close()
	if lost == nil && f.used != nil {
		for i, u := range outcome.Usage {
			f.used(i, stages.Usage{BytesIn: u.In, BytesOut: u.Out, Elapsed: u.Elapsed, CPU: u.CPU})
		}
	}
	switch {
	case ctx.Err() != nil:
		return at(cancelled(ctx), 0, f.chain[0].Name)
	case errors.Is(writeErr, io.ErrClosedPipe) || errors.Is(writeErr, syscall.EPIPE):
		return nil // the reader has what it wanted
	case writeErr != nil:
		return writeErr
	case lost == nil && outcome.Failure == nil:
		return nil // also where in has failed when nobody needed it any more
	case readErr != nil:
		return readErr
	case lost != nil:
		return at(lostError(lost), 0, f.chain[0].Name)
	}
	return f.explain(outcome.Failure)
}

// A call is one run of a chain, or one input that is kept, as the gateway sees it.
type call struct {
	stream  *wire.Stream
	session *session
	client  *wire.Client
	buffers *buffers
	fed     chan struct{} // closed when feed has returned

	mu      sync.Mutex
	reading bool // feed is in Read
	over    bool // nothing more may be read
	err     error
	timer   *time.Timer // gives the worker up; set by cancel
}

func newCall(stream *wire.Stream, s *session) *call {
	return &call{stream: stream, session: s, client: s.client, buffers: &s.pool.buffers, fed: make(chan struct{})}
}

// feed sends in until it ends or nobody wants more.
func (c *call) feed(in io.Reader) {
	defer close(c.fed)
	p := c.buffers.get()
	defer c.buffers.put(p)
	buf := *p
	for c.begin() {
		n, err := in.Read(buf)
		if !c.end() {
			return
		}
		if n > 0 {
			if _, err := c.stream.Write(buf[:n]); err != nil {
				return // the chain wants no more, or it is lost, which drain will see
			}
		}
		if err == io.EOF {
			_ = c.stream.End() // likewise
			return
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			c.cancel()
			return
		}
	}
}

func (c *call) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = !c.over
	return c.reading
}

func (c *call) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	return !c.over
}

// drain writes what the chain says to out. It returns the error of out; any other end shows in the outcome.
func (c *call) drain(out io.Writer) error {
	p := c.buffers.get()
	defer c.buffers.put(p)
	buf := *p
	for {
		n, err := c.stream.Read(buf)
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				c.cancel()
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// cancel kills the chain, and gives the worker up if it does not say in time that it has.
func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil || c.over {
		return
	}
	c.session.spoil() // by what is about to happen to its client, at the latest
	c.timer = time.AfterFunc(killGrace, func() { c.client.Fail(errors.New("it does not answer")) })
	_ = c.stream.Cancel() // a lost connection has ended the run
}

// close ends feed, unless it waits in Read, and returns the error that in has given.
func (c *call) close() error {
	c.mu.Lock()
	c.over = true
	reading := c.reading
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	if !reading {
		<-c.fed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
