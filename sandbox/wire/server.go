package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"
)

// A Runner runs one chain for one stream: it reads the input from in, writes the output to out and returns how it
// went. When ctx is done everything it started must be dead before it returns.
type Runner func(ctx context.Context, s *Stream, chain Chain) Outcome

// A Keeper reads an input from s to its end and keeps it for the commands that name it. When ctx is done it returns soon.
type Keeper func(ctx context.Context, s *Stream, in Input) Outcome

// A Host is what a worker does for the gateway. There are no inputs without Keep. Renew leaves nothing of what was run and
// kept, or fails; without it the worker serves one pipeline.
type Host struct {
	Run   Runner
	Keep  Keeper
	Renew func() error
}

// A server is the worker's end of a connection.
type server struct {
	conn    *conn
	host    Host
	running sync.WaitGroup
	chains  map[uint32]Chain // for the loop that reads frames
}

// Serve says hello on rwc and runs what the gateway asks for, until its stream ends, which is no error. It returns
// when all runs have ended.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, hello Hello, host Host) error {
	s := &server{conn: newConn(rwc, worker), host: host, chains: map[uint32]Chain{}}
	hello.Version = version
	payload, err := encode(hello, maxHello)
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
		return s.run(ctx, h, payload)
	case kindCheck:
		return s.check(ctx, h, payload)
	case kindKeep:
		return s.keep(ctx, h, payload)
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
	stream.fail(ErrCancelled)
	stream.cancel(ErrCancelled)
	return nil
}

func (s *server) prepare(id uint32, payload []byte) error {
	var chain Chain
	if err := decode(kindPrepare, payload, &chain); err != nil {
		return err
	}
	if _, again := s.chains[id]; again || len(s.chains) == MaxChains {
		return protocolError("prepare frame %d: the id is in use, or %d are", id, MaxChains)
	}
	if len(chain.Commands) > MaxCommands {
		return protocolError("a chain of %d commands", len(chain.Commands))
	}
	s.chains[id] = chain
	return nil
}

func (s *server) run(ctx context.Context, h header, payload []byte) error {
	chainID := binary.BigEndian.Uint32(payload)
	chain, ok := s.chains[chainID]
	if !ok {
		return protocolError("run of chain %d, which was not prepared", chainID)
	}
	return s.start(ctx, h, func(ctx context.Context, stream *Stream) Outcome { return s.host.Run(ctx, stream, chain) })
}

func (s *server) check(ctx context.Context, h header, payload []byte) error {
	var chain Chain
	if err := decode(kindCheck, payload, &chain); err != nil {
		return err
	}
	if i := slices.IndexFunc(chain.Commands, func(c Command) bool { return c.Check == nil }); i >= 0 {
		return protocolError("check frame %d: command %d has no check", h.id, i)
	}
	return s.start(ctx, h, func(ctx context.Context, stream *Stream) Outcome { return s.host.Run(ctx, stream, chain) })
}

func (s *server) keep(ctx context.Context, h header, payload []byte) error {
	var in Input
	if err := decode(kindKeep, payload, &in); err != nil {
		return err
	}
	if s.host.Keep == nil {
		return protocolError("keep frame %d: this worker keeps no inputs", h.id)
	}
	return s.start(ctx, h, func(ctx context.Context, stream *Stream) Outcome { return s.host.Keep(ctx, stream, in) })
}

// renew makes the worker as good as new.
func (s *server) renew() error {
	if n := s.conn.under(); n > 0 || s.host.Renew == nil {
		return protocolError("renew frame: %d runs are under way, or this worker serves no other pipeline", n)
	}
	clear(s.chains)
	return s.host.Renew()
}

// start opens a stream and has work serve it.
func (s *server) start(ctx context.Context, h header, work func(context.Context, *Stream) Outcome) error {
	stream, err := s.conn.open(h.id, h.kind == kindKeep)
	if err != nil {
		return err
	}
	ctx, stream.cancel = context.WithCancelCause(ctx)
	s.running.Go(func() {
		outcome := work(ctx, stream)
		stream.cancel(nil)
		s.finish(h.id, outcome)
	})
	return nil
}

// finish frees the slot before the outcome leaves: the gateway starts the next run when it has read it.
func (s *server) finish(id uint32, o Outcome) {
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
