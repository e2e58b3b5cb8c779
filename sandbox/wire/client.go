package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Silence is how often a gateway pings its worker, and how long the worker may take to answer: what they are connected
// by, or a container, can hang without a sign.
const Silence = time.Minute

// A Client is the gateway's end of a connection.
type Client struct {
	conn  *conn
	hello Hello
	ready chan struct{} // closed when hello has come
	ended sync.WaitGroup
	runs  atomic.Uint32 // that were started
}

// Dial waits for the worker's hello on rwc, which is the Client's from then on, even when there is an error. Closing
// rwc must make its Read and Write return.
func Dial(ctx context.Context, rwc io.ReadWriteCloser) (*Client, error) {
	c := &Client{conn: newConn(rwc, gateway), ready: make(chan struct{})}
	c.ended.Go(func() { c.conn.fail(lost(c.conn.read(c.handle))) })
	c.ended.Go(func() { c.conn.fail(lost(c.conn.out.run(rwc))) })
	select {
	case <-c.ready:
		c.ended.Go(c.watch)
		return c, nil
	case <-c.conn.done:
	case <-ctx.Done():
		c.conn.fail(fmt.Errorf("waiting for the worker's hello: %w", context.Cause(ctx)))
	}
	c.ended.Wait()
	return nil, c.Err()
}

// watch gives up a worker that does not answer.
func (c *Client) watch() {
	ticker := time.NewTicker(Silence)
	defer ticker.Stop()
	for {
		select {
		case <-c.conn.done:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), Silence)
		if err := c.Ping(ctx); err != nil {
			c.Fail(fmt.Errorf("it does not answer: %w", err))
		}
		cancel()
	}
}

// lost wraps what ended a connection. A worker that ends its stream is as lost as any other.
func lost(err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	if err == io.EOF {
		return fmt.Errorf("%w: it has exited", ErrLost)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// Hello returns what the worker said of itself.
func (c *Client) Hello() Hello { return c.hello }

// Done is closed when the connection has failed or was closed.
func (c *Client) Done() <-chan struct{} { return c.conn.done }

// Err returns why Done is closed.
func (c *Client) Err() error {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	return c.conn.err
}

// Close ends the connection and everything that runs on it, and returns when that is done. It may be called again.
func (c *Client) Close() error {
	c.conn.fail(fmt.Errorf("%w: it was closed", ErrLost))
	c.ended.Wait()
	return nil
}

// A Prepared chain is one that can be sent.
type Prepared []byte

// Prepare makes a chain ready to be sent. The error is [ErrTooLarge].
func Prepare(chain Chain) (Prepared, error) {
	if len(chain.Commands) > MaxCommands {
		return nil, fmt.Errorf("%d commands, where %d are allowed: %w", len(chain.Commands), MaxCommands, ErrTooLarge)
	}
	return encode(chain, MaxChain)
}

// Run starts a run. The caller reads the stream to its end, or cancels it, and then asks for its Outcome; no more than
// Slots may be under way. Where an input is kept, the caller writes it to the stream and ends or cancels it; no more than
// MaxInputs may be on their way.
func (c *Client) Run(chain Prepared) (*Stream, error) {
	id := c.runs.Add(1)
	s, err := c.conn.open(id)
	if err != nil {
		return nil, err
	}
	return s, c.conn.message(kindRun, id, chain)
}

// Renew has the worker forget everything, so that it can serve another pipeline. Nothing may be under way. A
// [Client.Ping] is answered when it is done.
func (c *Client) Renew() error { return c.conn.message(kindRenew, 0, nil) }

// ping is the chain that asks for nothing but an outcome.
const ping = "{}"

// Ping asks the worker for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	s, err := c.Run(Prepared(ping))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.fail(context.Cause(ctx)) })()
	_, err = s.Outcome()
	return err
}

// End says that the input has ended.
func (s *Stream) End() error { return s.conn.message(kindEnd, s.id, nil) }

// Cancel kills the run. Data that it still sends is dropped; its outcome still comes.
func (s *Stream) Cancel() error {
	s.stopReading()
	s.hush()
	return s.conn.message(kindCancel, s.id, nil)
}

// Outcome waits until the run has ended. Output that was not read by then is dropped.
func (s *Stream) Outcome() (Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.outcome == nil && s.err == nil {
		s.arrived.Wait()
	}
	if s.outcome != nil {
		return *s.outcome, nil
	}
	return Outcome{}, s.err
}

// Fail gives the worker up: the connection ends, and every run on it.
func (c *Client) Fail(err error) { c.conn.fail(lost(err)) }

func (c *Client) handle(h header, payload []byte) error {
	select {
	case <-c.ready:
	default:
		if h.kind != kindHello {
			return protocolError("%s frame before hello", kinds[h.kind].name)
		}
		return c.greet(payload)
	}
	if h.kind == kindHello {
		return protocolError("second hello")
	}
	s := c.conn.find(h.id)
	if s == nil {
		return protocolError("%s frame for run %d, which is not under way", kinds[h.kind].name, h.id)
	}
	return c.streamFrame(s, h, payload)
}

func (c *Client) greet(payload []byte) error {
	if err := decode(kindHello, payload, &c.hello); err != nil {
		return err
	}
	if c.hello.Version != version {
		return protocolError("the worker speaks version %d, this end %d: they must be of the same release",
			c.hello.Version, version)
	}
	close(c.ready)
	return nil
}

func (c *Client) streamFrame(s *Stream, h header, payload []byte) error {
	switch h.kind {
	case kindData:
		return s.receive(payload)
	case kindCredit:
		return s.earn(binary.BigEndian.Uint32(payload))
	case kindDeaf:
		s.hush()
		return nil
	}
	var o Outcome
	if err := decode(kindOutcome, payload, &o); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	c.conn.forget(h.id)
	s.settle(&o)
	return nil
}
