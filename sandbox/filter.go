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

// A filter is a prepared chain.
type filter struct {
	session  *session
	chain    []wire.Command
	args     [][]string // of each command, as the agent wrote them
	prepared wire.Prepared
	used     func(i int, u stages.Usage)
}

// run is a [stages.Filter]. A Read of in may still be under way when it returns, if the chain ended without wanting
// more: the stage that feeds in ends that Read, and its data is dropped.
func (f *filter) run(ctx context.Context, in io.Reader, out io.Writer) error {
	x, err := f.session.exchange(ctx, f.session.slots, f.prepared, in, out)
	if err != nil {
		return at(err, 0, f.chain[0].Name)
	}
	usage := x.outcome.Usage
	if n := len(usage); x.lost == nil && n > len(f.chain) {
		x.lost = fmt.Errorf("it reports what %d commands used, and there are %d", n, len(f.chain))
	}
	if x.lost == nil && f.used != nil {
		for i, u := range usage {
			f.used(i, stages.Usage{BytesIn: u.In, BytesOut: u.Out, Elapsed: u.Elapsed, CPU: u.CPU, Said: stderrTail(u.Said)})
		}
	}
	switch {
	case ctx.Err() != nil:
		return at(cancelled(ctx), 0, f.chain[0].Name)
	case errors.Is(x.write, io.ErrClosedPipe) || errors.Is(x.write, syscall.EPIPE):
		return nil // the reader has what it wanted
	case x.write != nil:
		return x.write
	case x.lost == nil && x.outcome.Failure == nil:
		return nil // also where in has failed when nobody needed it any more
	case x.read != nil:
		return x.read
	case x.lost != nil:
		return at(lostError(x.lost), 0, f.chain[0].Name)
	}
	return f.explain(x.outcome.Failure)
}

// A call is one run of a chain, or one input that is kept, as the gateway sees it.
type call struct {
	stream  *wire.Stream
	session *session
	fed     chan struct{} // closed when feed has returned

	mu      sync.Mutex
	reading bool // feed is in Read
	over    bool // nothing more may be read
	err     error
	timer   *time.Timer // gives the worker up; set by cancel
}

// feed sends in until it ends or nobody wants more.
func (c *call) feed(in io.Reader) {
	defer close(c.fed)
	p := c.session.pool.buffers.Get()
	defer c.session.pool.buffers.Put(p)
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
	p := c.session.pool.buffers.Get()
	defer c.session.pool.buffers.Put(p)
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
	c.session.spoil() // the worker serves nobody else: it may be given up below
	c.timer = time.AfterFunc(killGrace, func() { c.session.client.Fail(errors.New("it does not answer")) })
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
