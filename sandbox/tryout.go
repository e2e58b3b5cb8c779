package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// The bounds of trying out the commands of a plan.
const (
	tryoutsAtOnce = 4 // workers for it, besides those of runs: a check does not wait until a run has ended
	tryoutTimeout = 5 * time.Second
	tryoutWait    = 10 * time.Second // for a worker and its answer
	tryoutMemory  = 256 << 20
	tryoutOutput  = 1 << 20
	triedMax      = 1024
)

// tried is what programs have said of their arguments, by what they were given: they would say it again.
type tried struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*wire.Failure
}

func (t *tried) get(key [sha256.Size]byte) (f *wire.Failure, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, known = t.known[key]
	return f, known
}

func (t *tried) put(key [sha256.Size]byte, f *wire.Failure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= triedMax {
		t.known = map[[sha256.Size]byte]*wire.Failure{}
	}
	t.known[key] = f
}

// Tryouts implements [stages.Commands].
func (p *Pool) Tryouts(caller string) stages.Tryouts { return &tryouts{pool: p, caller: caller} }

// A tryouts has one worker for all commands of a plan, which starts when the first needs it.
type tryouts struct {
	pool   *Pool
	caller string

	mu      sync.Mutex // held while the worker starts; guards what follows
	session *session
	err     error // why there is none
	closed  bool
}

// errTryouts is why no worker starts any more.
var errTryouts = errors.New("the plan has been checked")

// TryOut implements [stages.Tryouts]. Only what the program itself says of its arguments is held against the plan: a
// worker that is lost or busy, a limit that was reached will show in the run, if they are more than bad luck.
func (t *tryouts) TryOut(ctx context.Context, c stages.Command) error {
	if p, ok := programs.Find(c.Name); !ok || !p.Tries() {
		return nil // to read a filter of jq takes a while
	}
	inv, err := t.pool.parse(c)
	if err != nil {
		return err
	}
	trial, ok := inv.Tryout()
	if !ok {
		return nil
	}
	key := sha256.Sum256([]byte(c.Name + "\x00" + strings.Join(trial.Argv, "\x00")))
	failure, known := t.pool.tried.get(key)
	if !known {
		if failure, err = t.run(ctx, c, trial); err != nil || failure != nil && failure.Reason != wire.Exit {
			return nil
		}
		t.pool.tried.put(key, failure)
	}
	if failure == nil {
		return nil
	}
	return mistaken(c, inv, failure)
}

// run runs an invocation once.
func (t *tryouts) run(ctx context.Context, c stages.Command, inv programs.Invocation) (*wire.Failure, error) {
	ctx, cancel := context.WithTimeout(ctx, tryoutWait)
	defer cancel()
	s, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.slot(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.slots }()
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	c.Timeout = tryoutTimeout
	chain := t.pool.budget.chain()
	chain.Memory = min(chain.Memory, tryoutMemory)
	chain.Commands = []wire.Command{command(c, inv)}
	_, failure, err := once(ctx, s.client, chain, tryoutOutput)
	s.judge(wire.Outcome{Failure: failure}, errors.Join(err, ctx.Err())) // which gives the client up
	if failure != nil {
		failure.Stderr, failure.Sample = lastWords(failure.Stderr), nil // it is kept
	}
	return failure, err
}

func (t *tryouts) open(ctx context.Context) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, errTryouts
	case t.session == nil && t.err == nil:
		t.session, t.err = t.pool.open(ctx, t.caller, t.pool.trying)
	}
	return t.session, t.err
}

// Close implements [stages.Tryouts]. The worker goes on to the run of the plan, or ends in the background: nobody waits for
// that, unless what it lives in is the caller's, and takes up the run of the plan when it has ended.
func (t *tryouts) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	s, p := t.session, t.pool
	switch {
	case s == nil || s.passed():
		return nil
	case p.report.PerCaller:
		return s.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed { // else the pool ends it
		p.started.Go(func() { _ = s.Close() }) // a worker that is lost has ended too
	}
	return nil
}

// idle is what programs say for people at a terminal, and empty lines.
var idle = lazy.Regexp(`(?m)^Try '.*' for more information\.\n?|^\n`)

// mistaken makes an error of what a program says of its arguments.
func mistaken(c stages.Command, inv programs.Invocation, f *wire.Failure) error {
	said := strings.TrimSpace(idle().ReplaceAllString(f.Stderr, ""))
	name := inv.Argv[0]
	said = regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`: `).ReplaceAllString(said, "")
	if said == "" {
		said = fmt.Sprintf("it exits with status %d on empty input", f.Status)
	}
	hint, fix := programs.Advise(c.Name, programs.Complaint{Args: c.Args, Said: f.Stderr})
	e := stages.Errorf(stages.DisallowedArgument, hint, "%s: %s", c.Name, said)
	e.Field, e.Fix = "args", fix
	if at := inv.ScriptAt; at >= 0 {
		e.Field = fmt.Sprintf("args[%d]", at)
	}
	return e
}
