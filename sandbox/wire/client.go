package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Silence is how often a gateway pings its worker, and how long the worker may take to answer: what they are connected
// by, or a container, can stand still without a sign.
const Silence = time.Minute

// A Client is the gateway's end of a connection.
type Client struct {
	conn  *conn
	hello Hello
	ready chan struct{} // closed when hello has come
	ended sync.WaitGroup

	mu     sync.Mutex
	chains map[string]uint32 // by what was sent
	runs   uint32
	pings  map[uint64]chan struct{}
	nonce  uint64
}

// Dial waits for the worker's hello on rwc, which is the Client's from then on, also when there is an error. Closing
// rwc must make its Read and Write return.
func Dial(ctx context.Context, rwc io.ReadWriteCloser) (*Client, error) {
	c := &Client{conn: newConn(rwc, gateway), ready: make(chan struct{}), pings: map[uint64]chan struct{}{}}
	c.chains = map[string]uint32{}
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

// Prepare sends a chain and returns its id; equal chains have one. [ErrTooLarge] and [ErrTooMany] say that it cannot be
// sent.
func (c *Client) Prepare(chain Chain) (uint32, error) {
	if len(chain.Commands) > MaxCommands {
		return 0, fmt.Errorf("%d commands, where %d are allowed: %w", len(chain.Commands), MaxCommands, ErrTooLarge)
	}
	payload, err := encode(chain, MaxPrepare)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := c.chains[string(payload)]; ok {
		return id, nil
	}
	if len(c.chains) == MaxChains {
		return 0, ErrTooMany
	}
	id := uint32(len(c.chains) + 1)
	c.chains[string(payload)] = id
	return id, c.conn.message(kindPrepare, id, payload)
}

// Renew has the worker forget everything, so that it can serve another pipeline. Nothing may be under way, and the chains
// that were prepared are none any more. A [Client.Ping] is answered when it is done.
func (c *Client) Renew() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.chains)
	return c.conn.message(kindRenew, 0, nil)
}

// Run starts a run of a prepared chain. The caller reads the stream to its end, or cancels it, and then asks for its
// Outcome; no more than Slots may be under way.
func (c *Client) Run(chain uint32) (*Stream, error) {
	return c.start(kindRun, binary.BigEndian.AppendUint32(nil, chain))
}

// Check starts a run of a chain whose commands are only checked. The chain need not be prepared. Else it is like Run.
func (c *Client) Check(chain Chain) (*Stream, error) {
	payload, err := encode(chain, MaxPrepare)
	if err != nil {
		return nil, err
	}
	return c.start(kindCheck, payload)
}

// Keep starts to send an input that commands of later runs read. The caller writes it to the stream and ends or cancels
// it, and then asks for its Outcome, whose Failure says why it was not kept; no more than MaxInputs may be under way.
func (c *Client) Keep(in Input) (*Stream, error) {
	payload, err := encode(in, maxKeep)
	if err != nil {
		return nil, err
	}
	return c.start(kindKeep, payload)
}

// start opens a stream under a new id. The lock keeps ids in order on the way.
func (c *Client) start(k kind, payload []byte) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	s, err := c.conn.open(c.runs, k == kindKeep)
	if err != nil {
		return nil, err
	}
	return s, c.conn.message(k, c.runs, payload)
}

// Ping asks the worker for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	answered := make(chan struct{})
	c.mu.Lock()
	c.nonce++
	nonce := c.nonce
	c.pings[nonce] = answered
	err := c.conn.message(kindPing, 0, binary.BigEndian.AppendUint64(nil, nonce))
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pings, nonce)
	}()
	if err != nil {
		return err
	}
	select {
	case <-answered:
		return nil
	case <-c.conn.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End says that the input has ended.
func (s *Stream) End() error { return s.conn.message(kindEnd, s.id, nil) }

// Cancel kills the run. What it still sends is dropped; its outcome still comes.
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
	if h.kind == kindPong {
		return c.pong(binary.BigEndian.Uint64(payload))
	}
	s, _ := c.conn.find(h.id)
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

func (c *Client) pong(nonce uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered, ok := c.pings[nonce]; ok {
		close(answered)
		delete(c.pings, nonce)
	}
	return nil
}

func (c *Client) streamFrame(s *Stream, h header, payload []byte) error {
	switch h.kind {
	case kindData:
		if s.keep {
			return protocolError("data of input %d, which only goes the other way", h.id)
		}
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
