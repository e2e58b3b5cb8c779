package sandbox

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// defaultTimeout is that of a command that names none.
const defaultTimeout = 30 * time.Second

// A session is one worker while it serves one run.
type session struct {
	pool   *Pool
	client *wire.Client
	gone   func()        // gives back what the session holds; called once
	leased *pooledWorker // whose worker it is
	plan   *plan         // that the worker waits for when the session ends; nil: for any run of its caller
	slots  chan struct{} // holds one value for each chain that runs

	keeping chan struct{} // holds one value for each input on its way

	passed  func() bool // pass, once: whether the worker, or a new one in its place, waits for another run
	mu      sync.Mutex
	active  int  // chains and inputs that are under way
	spoiled bool // something has happened after which the worker serves nobody else
	closed  bool
}

func newSession(p *Pool, t *pooledWorker) *session {
	s := &session{
		pool: p, client: t.client, leased: t, slots: make(chan struct{}, wire.Slots), keeping: make(chan struct{}, wire.MaxInputs),
	}
	s.passed = sync.OnceValue(s.pass)
	return s
}

// Prepare implements [stages.Session].
func (s *session) Prepare(chain []stages.Command, used func(i int, u stages.Usage)) (stages.Filter, error) {
	f, err := s.prepare(chain, used)
	if err != nil {
		return nil, err
	}
	return f.run, nil
}

// Map implements [stages.Session]: it is for programs that take items, and for those that map lines.
func (s *session) Map(c stages.Command, used func(i int, u stages.Usage)) (stages.MapFilter, error) {
	p, _ := programs.Find(c.Name)
	takesItems := p.Script && p.Bin == ""
	inv, err := s.pool.parse(c)
	if err != nil || !c.Each || inv.Files != nil || !takesItems && !c.MapsLines && !inv.Traits.MapsLines {
		return nil, err // each item has the files opened anew
	}
	f, err := s.prepare([]stages.Command{c}, used)
	if err != nil {
		return nil, err
	}
	if !takesItems {
		return f.batches(asLines)
	}
	return f.batches(asItems)
}

func (s *session) prepare(chain []stages.Command, used func(i int, u stages.Usage)) (*filter, error) {
	if len(chain) == 0 {
		return nil, stages.Errorf(stages.Internal, "", "preparing a chain of no commands")
	}
	message := s.pool.budget.chain()
	message.Commands = make([]wire.Command, len(chain))
	for i, c := range chain {
		inv, err := s.pool.parse(c)
		if err != nil {
			return nil, at(err, i, c.Name)
		}
		if c.LineBuffered {
			inv = inv.LineBuffered()
		}
		message.Commands[i] = command(c, inv)
	}
	prepared, err := wire.Prepare(message)
	if err != nil {
		return nil, unprepared(err, chain[0].Name)
	}
	f := &filter{session: s, chain: message.Commands, prepared: prepared, used: used}
	for _, c := range chain {
		f.args = append(f.args, c.Args)
	}
	return f, nil
}

// unprepared explains why a chain cannot be sent to the worker.
func unprepared(err error, name string) error {
	return at(stages.Errorf(stages.LimitExceeded, "use fewer commands next to each other", "preparing neighbouring commands: %w", err), 0, name)
}

// at says which command of the chain an error is about.
func at(err error, i int, name string) error {
	copied := *stages.AsError(err)
	copied.Place, copied.Label = stages.Place(strconv.Itoa(i+1)), "command "+name
	return &copied
}

// Close implements [stages.Session]. The worker, or another one in its place, waits for the next run of its caller, or it
// ends with all that is left of this one.
func (s *session) Close() error {
	if s.passed() {
		return nil
	}
	err := s.client.Close()
	s.pool.forget(s)
	return err
}

// pass ends the session without waiting for anything, if something can serve another run. It is called once.
func (s *session) pass() bool {
	s.mu.Lock()
	s.closed = true
	whole := s.active == 0 && !s.spoiled
	s.mu.Unlock()
	kept := false
	if whole && s.plan != nil {
		kept = s.pool.releaseTo(s.leased, s.plan)
	} else {
		kept = s.pool.release(s.leased, whole)
	}
	if kept {
		s.pool.forget(s)
	}
	return kept
}

var errEnded = errors.New("the run has ended")

// enter begins something that the worker does for this run. leave ends it.
func (s *session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return lostError(errEnded) // the worker may serve another run by now
	}
	s.active++
	return nil
}

func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// judge looks at how a chain or an input has ended. A command that has failed by itself is nothing unusual; whatever else
// has ended one leaves a worker that serves nobody else.
func (s *session) judge(o wire.Outcome, lost error) {
	if lost != nil || o.Failure != nil && o.Failure.Reason != wire.Exit {
		s.spoil()
	}
}

func (s *session) spoil() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoiled = true
}

// An exchange is what has come of a chain that ran.
type exchange struct {
	outcome     wire.Outcome
	lost        error // why the worker was lost
	read, write error // of what was read from and written to
}

// exchange has the worker run a chain on in, and writes to out what it says. places bounds how many exchanges run at once. The error is why
// it was not run. A Read of in may still be under way when it returns.
func (s *session) exchange(ctx context.Context, places chan struct{}, chain wire.Prepared, in io.Reader, out io.Writer) (x exchange, err error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-s.client.Done():
		return x, lostError(s.client.Err())
	case <-ctx.Done():
		return x, cancelled(ctx)
	}
	if err := s.enter(); err != nil {
		return x, err
	}
	defer s.leave()
	stream, err := s.client.Run(chain)
	if err != nil {
		return x, lostError(err)
	}
	c := &call{stream: stream, session: s, fed: make(chan struct{})}
	defer context.AfterFunc(ctx, c.cancel)()
	go c.feed(in)
	x.write = c.drain(out)
	x.outcome, x.lost = stream.Outcome()
	s.judge(x.outcome, x.lost)
	x.read = c.close()
	return x, nil
}

// Keep implements [stages.Session]. A Read of in may still be under way when it returns, as with a filter.
func (s *session) Keep(ctx context.Context, set int, name string, in io.Reader) error {
	limit := s.pool.budget.Disk
	chain, err := wire.Prepare(wire.Chain{Keep: &wire.Input{Set: uint32(set), Name: name, Disk: limit}})
	if err != nil {
		return err
	}
	x, err := s.exchange(ctx, s.keeping, chain, in, io.Discard)
	switch {
	case err != nil:
		return err
	case x.lost == nil && x.outcome.Failure == nil:
		return nil
	case ctx.Err() != nil:
		return cancelled(ctx)
	case x.read != nil:
		return x.read
	case x.lost != nil:
		return lostError(x.lost)
	}
	return notKept(name, limit, x.outcome.Failure)
}

// notKept makes an error of an input that the worker has not kept.
func notKept(name string, limit int64, f *wire.Failure) error {
	if f.Reason == wire.DiskLimit {
		return stages.Errorf(stages.LimitExceeded, "let the stages of the input pass on only what the command needs: fewer rows, fewer fields",
			"the named inputs of the run, here @%s, need more than %s on disk, the limit of a run, or the disk is full", name, texts.Bytes(limit))
	}
	return stages.Errorf(stages.Internal, "this is the server's fault, not the pipeline's: ask its operator to run mcsh commands",
		"the input @%s could not be kept: %s %s", name, f.Reason, texts.Cut(f.Detail, stderrShown))
}
