package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// A Runner runs one chain for one stream: it reads the input from in, writes the output to out and returns how it
// went. When ctx is done everything it started must be dead before it returns.
type Runner func(ctx context.Context, s *Stream, chain Chain) Outcome

// A Keeper reads an input from s to its end and keeps it for the commands that name it. When ctx is done it returns soon.
type Keeper func(ctx context.Context, s *Stream, in Input) Outcome

// A Host is what a worker does for the gateway. Each runs a command on items; without it there are none, as there are no
// inputs without Keep. Prepare, where it is there, is told of a chain that is going to be run, and does not wait. Renew
// leaves nothing of what was run and kept, or fails; without it the worker serves one pipeline.
type Host struct {
	Prepare func(Chain)
	Run     Runner
	Each    Runner
	Keep    Keeper
	Renew   func() error
}

// A server is the worker's end of a connection.
type server struct {
	conn    *conn
	host    Host
	running sync.WaitGroup

	mu      sync.Mutex
	chains  map[uint32]Chain
	cancels map[uint32]context.CancelCauseFunc
}

// Serve says hello on rwc and runs what the gateway asks for, until its stream ends, which is no error. It returns
// when all runs have ended.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, hello Hello, host Host) error {
	s := &server{
		conn: newConn(rwc, worker), host: host,
		chains: map[uint32]Chain{}, cancels: map[uint32]context.CancelCauseFunc{},
	}
	hello.Version = version
	payload, err := encode(hello, MaxMessage)
	if err != nil {
		return err
	}
	if err := s.conn.message(kindHello, 0, payload); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var writing sync.WaitGroup
	writing.Go(func() { s.conn.fail(s.conn.out.run(rwc)) })
	stop := context.AfterFunc(ctx, func() { s.conn.fail(context.Cause(ctx)) })
	defer stop()

	err = s.conn.read(func(h header, payload []byte) error { return s.handle(ctx, h, payload) })
	s.conn.fail(err)
	cancel(ErrLost)
	s.running.Wait()
	writing.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *server) handle(ctx context.Context, h header, payload []byte) error {
	switch h.kind {
	case kindPing:
		return s.conn.message(kindPong, 0, payload)
	case kindPrepare:
		return s.prepare(h.id, payload)
	case kindRun:
		return s.run(ctx, h, payload, s.host.Run)
	case kindEach:
		return s.run(ctx, h, payload, s.host.Each)
	case kindKeep:
		return s.keep(ctx, h.id, payload)
	case kindRenew:
		return s.renew()
	}
	stream, past := s.conn.find(h.id)
	if stream == nil {
		if past {
			return nil // it was on its way when the outcome was sent
		}
		return protocolError("%s frame for run %d, which was never started", kinds[h.kind].name, h.id)
	}
	switch h.kind {
	case kindData:
		return stream.receive(payload)
	case kindCredit:
		return stream.earn(binary.BigEndian.Uint32(payload))
	case kindEnd:
		return stream.end()
	}
	s.cancel(h.id)
	return nil
}

func (s *server) prepare(id uint32, payload []byte) error {
	var chain Chain
	if err := decode(kindPrepare, payload, &chain); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.chains[id]; again || len(s.chains) == MaxChains {
		return protocolError("prepare frame %d: the id is in use, or %d are", id, MaxChains)
	}
	if len(chain.Commands) > MaxCommands {
		return protocolError("a chain of %d commands", len(chain.Commands))
	}
	s.chains[id] = chain
	if s.host.Prepare != nil {
		s.host.Prepare(chain)
	}
	return nil
}

func (s *server) run(ctx context.Context, h header, payload []byte, run Runner) error {
	chainID := binary.BigEndian.Uint32(payload)
	s.mu.Lock()
	chain, ok := s.chains[chainID]
	s.mu.Unlock()
	switch {
	case !ok:
		return protocolError("run of chain %d, which was not prepared", chainID)
	case run == nil:
		return protocolError("%s frame %d: this worker does not know how", kinds[h.kind].name, h.id)
	}
	return s.start(ctx, h.id, false, func(ctx context.Context, stream *Stream) Outcome { return run(ctx, stream, chain) })
}

func (s *server) keep(ctx context.Context, id uint32, payload []byte) error {
	var in Input
	if err := decode(kindKeep, payload, &in); err != nil {
		return err
	}
	if s.host.Keep == nil {
		return protocolError("keep frame %d: this worker keeps no inputs", id)
	}
	return s.start(ctx, id, true, func(ctx context.Context, stream *Stream) Outcome {
		return s.host.Keep(ctx, stream, in)
	})
}

// renew makes the worker as good as new.
func (s *server) renew() error {
	if n := s.conn.under(); n > 0 || s.host.Renew == nil {
		return protocolError("renew frame: %d runs are under way, or this worker serves no other pipeline", n)
	}
	s.mu.Lock()
	clear(s.chains)
	s.mu.Unlock()
	return s.host.Renew()
}

// start opens a stream and has work serve it.
func (s *server) start(ctx context.Context, id uint32, keep bool, work func(context.Context, *Stream) Outcome) error {
	stream, err := s.conn.open(id, keep)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cancels[id] = cancel
	s.mu.Unlock()
	s.running.Go(func() {
		outcome := work(ctx, stream)
		cancel(nil)
		s.finish(id, outcome)
	})
	return nil
}

func (s *server) cancel(id uint32) {
	s.mu.Lock()
	cancel := s.cancels[id]
	s.mu.Unlock()
	if stream, _ := s.conn.find(id); stream != nil {
		stream.fail(ErrCancelled)
	}
	if cancel != nil {
		cancel(ErrCancelled)
	}
}

// finish frees the slot before the outcome leaves: the gateway starts the next run when it has read it.
func (s *server) finish(id uint32, o Outcome) {
	s.mu.Lock()
	delete(s.cancels, id)
	s.mu.Unlock()
	s.conn.forget(id)
	payload, err := encode(o, MaxMessage)
	if err != nil { // it is bounded far below MaxMessage
		s.conn.fail(err)
		return
	}
	_ = s.conn.message(kindOutcome, id, payload) // a lost connection has told Serve already
}

// StopReading tells the gateway that no more input is wanted. It may be called again.
func (s *Stream) StopReading() error {
	if !s.stopReading() {
		return nil
	}
	return s.conn.message(kindDeaf, s.id, nil)
}

// Abort ends both directions of the run on this side: its processes are being killed, and nobody waits for its output.
func (s *Stream) Abort() { s.fail(ErrCancelled) }
