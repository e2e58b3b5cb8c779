package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// A Runner runs one chain for one stream: it reads the input from s, writes the output to s and returns how it went. When
// ctx is done everything it started must be dead before it returns, which it does soon.
type Runner func(ctx context.Context, s *Stream, chain Chain) Outcome

// A Host is what a worker does for the gateway. Renew leaves nothing of what was run and kept, or fails; without it the
// worker serves one pipeline.
type Host struct {
	Run   Runner
	Renew func() error
}

// A server is the worker's end of a connection.
type server struct {
	conn    *conn
	host    Host
	running sync.WaitGroup
}

// Serve says hello on rwc and runs what the gateway asks for, until its stream ends, which is no error. It returns
// when all runs have ended.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, hello Hello, host Host) error {
	s := &server{conn: newConn(rwc, worker), host: host}
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
	defer context.AfterFunc(ctx, func() { s.conn.fail(context.Cause(ctx)) })()

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
	case kindRun:
		return s.run(ctx, h.id, payload)
	case kindRenew:
		return s.renew()
	}
	stream := s.conn.find(h.id)
	if stream == nil {
		return nil // it was on its way when the outcome was sent
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

// run opens a stream for a chain and runs it. A ping is answered at once.
func (s *server) run(ctx context.Context, id uint32, payload []byte) error {
	if string(payload) == ping {
		return s.conn.message(kindOutcome, id, []byte("{}"))
	}
	var chain Chain
	if err := decode(kindRun, payload, &chain); err != nil {
		return err
	}
	if len(chain.Commands) > MaxCommands {
		return protocolError("a chain of %d commands", len(chain.Commands))
	}
	stream, err := s.conn.open(id)
	if err != nil {
		return err
	}
	ctx, stream.cancel = context.WithCancelCause(ctx)
	s.running.Go(func() {
		outcome := s.host.Run(ctx, stream, chain)
		stream.cancel(nil)
		s.finish(id, outcome)
	})
	return nil
}

// renew makes the worker as good as new.
func (s *server) renew() error {
	if n := s.conn.under(); n > 0 || s.host.Renew == nil {
		return protocolError("renew frame: %d runs are under way, or this worker serves no other pipeline", n)
	}
	return s.host.Renew()
}

// finish frees the slot before the outcome leaves: the gateway starts the next run when it has read it.
func (s *server) finish(id uint32, o Outcome) {
	s.conn.forget(id)
	payload, err := encode(o, MaxMessage)
	if err != nil { // it is bounded far below MaxMessage
		s.conn.fail(err)
		return
	}
	_ = s.conn.message(kindOutcome, id, payload) // Serve knows of a lost connection already
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
