package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// The limits of one check of a command unless [Options] say otherwise. See docs/limits.md.
const (
	DefaultCheck       = time.Second
	DefaultCheckMemory = 128 << 20
)

const (
	checkWait   = 20 // times the processor time, for the answer of a worker that hangs
	leastWait   = 20 * time.Second
	checkOutput = 256 << 10 // of a verdict; of a program on empty input it is dropped
	checksKept  = 1024      // of the pool, for equal arguments
	checkSize   = 16 << 10  // bytes of one that is kept
)

// A checked is what is known of the arguments of a command: the verdict on its script, and how the program failed on
// empty input.
type checked struct {
	verdict programs.Verdict
	failure *wire.Failure
}

// checks remembers what was checked, by a hash of the arguments.
type checks struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]checked // guarded by mu
}

func (k *checks) get(key [sha256.Size]byte) (c checked, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, known = k.known[key]
	return c, known
}

// put remembers a check, unless the worker has said more than is worth it.
func (k *checks) put(key [sha256.Size]byte, c checked) {
	if f := c.failure; f != nil { // without what no error of a check shows
		c.failure = &wire.Failure{Reason: f.Reason, Status: f.Status, Stderr: stderrTail(f.Stderr)}
	}
	if v := c.verdict; len(v.Mistake)+len(v.Hint) > checkSize {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || len(k.known) >= checksKept {
		k.known = map[[sha256.Size]byte]checked{}
	}
	k.known[key] = c
}

// A plan checks the commands of one pipeline, one at a time; callers take turns. The worker of a check waits for the next
// one, and then for the run.
type plan struct {
	pool      *Pool
	caller    string        // who takes turns with others
	owner     string        // empty: nobody's
	workersOf string        // the name by which workers are taken
	turn      chan struct{} // holds one value while a command is checked
}

// Plan implements [stages.Commands].
func (p *Pool) Plan(caller, owner, workersOf string) stages.CommandPlan {
	return &plan{pool: p, caller: caller, owner: owner, workersOf: cmp.Or(workersOf, caller), turn: make(chan struct{}, 1)}
}

// Open implements [stages.CommandPlan]. It waits while Max runs hold a worker.
func (p *plan) Open(ctx context.Context) (stages.Session, error) {
	leave, err := p.pool.queue(ctx, p.owner)
	if err != nil {
		return nil, err
	}
	s, err := p.pool.open(ctx, p.workersOf, p, leave)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Check implements [stages.CommandPlan].
func (p *plan) Check(ctx context.Context, c stages.Command) (stages.Traits, error) {
	inv, err := p.pool.parse(c)
	if err != nil {
		return stages.Traits{}, err
	}
	messages := p.messages(c, inv)
	if len(messages) == 0 {
		return inv.Traits, nil
	}
	key := sha256.Sum256([]byte(c.Name + "\x00" + strings.Join(inv.Judged(), "\x00")))
	result, known := p.pool.checks.get(key)
	if !known {
		select {
		case p.turn <- struct{}{}:
			defer func() { <-p.turn }()
		case <-ctx.Done():
			return stages.Traits{}, cancelled(ctx)
		}
		if result, known = p.pool.checks.get(key); !known {
			if result, err = p.ask(ctx, c, inv, messages); err != nil {
				return stages.Traits{}, err
			}
			p.pool.checks.put(key, result)
		}
	}
	if f := result.failure; f != nil {
		return stages.Traits{}, mistaken(c, inv, f)
	}
	return inv.Judge(c.Name, c.Args, result.verdict)
}

// messages returns what a worker is asked to check: the script, and what the program says of its arguments on empty input.
func (p *plan) messages(c stages.Command, inv programs.Invocation) (all []wire.Command) {
	program, _ := programs.Find(c.Name)
	limits := p.pool.check
	if program.Script {
		message, check := command(c, inv), limits
		check.Script = true
		message.Check, message.Timeout = &check, max(message.Timeout, check.CPU)
		all = append(all, message)
	}
	if trial, ok := inv.ArgProbe(); ok {
		message := command(c, trial)
		message.Check = &limits
		all = append(all, message)
	}
	return all
}

// ask has a worker check a command.
func (p *plan) ask(ctx context.Context, c stages.Command, inv programs.Invocation, messages []wire.Command) (result checked, err error) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	give, err := p.pool.turns.take(opening, cmp.Or(p.owner, p.caller))
	if err != nil {
		return result, unavailable(ctx, c.Name, err)
	}
	s, err := p.pool.open(opening, p.workersOf, p, give)
	if err != nil {
		return result, unavailable(ctx, c.Name, err)
	}
	defer s.Close()
	if err := s.enter(); err != nil {
		return result, unavailable(ctx, c.Name, err)
	}
	s.plan = p
	defer s.leave()
	for _, message := range messages {
		text, failure, err := s.check(ctx, message)
		switch {
		case ctx.Err() != nil:
			return result, cancelled(ctx)
		case err != nil:
			return result, unavailable(ctx, c.Name, fmt.Errorf("the worker was lost during the check: %w", err))
		case failure != nil && failure.Reason == wire.Cancelled && len(text) == checkOutput && !message.Check.Script:
			// It writes on and on, so nothing was wrong with its arguments.
		case failure != nil && (failure.Reason != wire.Exit || message.Check.Script):
			return result, p.overLimit(c, inv, failure)
		case failure != nil:
			result.failure = failure
			return result, nil
		case message.Check.Script:
			if err := json.Unmarshal([]byte(text), &result.verdict); err != nil {
				s.spoil()
				return result, unchecked(c, inv, "check", "the answer of the check cannot be read")
			}
			if result.verdict.Mistake != "" {
				return result, nil
			}
		}
	}
	return result, nil
}

// check runs one check. An error means that the worker is lost.
func (s *session) check(ctx context.Context, message wire.Command) (text string, failure *wire.Failure, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(leastWait, checkWait*s.pool.check.CPU))
	defer cancel()
	chain := s.pool.budget.chain()
	chain.Commands = []wire.Command{message}
	text, failure, err = collect(ctx, s.client, checkOutput, chain)
	s.judge(wire.Outcome{Failure: failure}, errors.Join(err, ctx.Err())) // which gives the client up
	return text, failure, err
}

// overLimit makes an error of a check that did not end by itself.
func (p *plan) overLimit(c stages.Command, inv programs.Invocation, f *wire.Failure) error {
	switch f.Reason {
	case wire.MemoryLimit:
		return unchecked(c, inv, "check-memory", fmt.Sprintf("checking it takes more than %s of memory", texts.Bytes(f.Limit)))
	case wire.CPULimit:
		return unchecked(c, inv, "check", fmt.Sprintf("checking it takes more than %v of processor time", p.pool.check.CPU))
	case wire.Refused, wire.ProcessLimit, wire.FileLimit, wire.Cancelled, wire.BadFile, wire.Escape, wire.Unreadable, wire.NoWorkspace:
		return unavailable(context.Background(), c.Name, fmt.Errorf("%s %s", f.Reason, texts.Cut(f.Detail, stderrShown)))
	}
	return unchecked(c, inv, "check", strings.TrimSpace(fmt.Sprintf("checking it has ended the program (%s %s)", f.Reason, f.Signal)))
}

// unchecked is the error of arguments whose check took too much. Nothing runs without a verdict.
func unchecked(c stages.Command, inv programs.Invocation, limit, why string) error {
	size := 0
	for _, arg := range c.Args {
		size += len(arg)
	}
	what, at := fmt.Sprintf("the arguments of %d bytes are too costly to check", size), inv.ScriptAt
	hint := cmp.Or(programs.Hint(c.Name, programs.Complaint{Args: c.Args, Message: why}), "ask for less: smaller numbers, fewer arguments")
	if at >= 0 && at < len(c.Args) {
		what = fmt.Sprintf("the program of %d bytes is too costly to check", len(c.Args[at]))
		hint = "make the program smaller: fewer levels and repetitions; what is data belongs in the input"
	}
	e := stages.OverLimit(limit, hint+". The operator can raise the limit with --limit "+limit+"=VALUE", "%s: %s: %s", c.Name, what, why)
	e.Field = argField(at)
	return e
}

// unavailable is the error of a check without a worker.
func unavailable(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return stages.Errorf(stages.SandboxUnavailable, "try again; if that does not help, ask the operator to run mcsh doctor",
		"%s cannot be checked in the sandbox: %w", name, err)
}

func argField(at int) string {
	if at < 0 {
		return "args"
	}
	return fmt.Sprintf("args[%d]", at)
}

// Close implements [stages.CommandPlan]: a worker that waits for the run is released to its caller, or ends.
func (p *plan) Close() error {
	for t := p.pool.heldBy(p); t != nil; t = p.pool.heldBy(p) {
		if t.plan = nil; !p.pool.release(t, true) {
			p.pool.giveUp(t)
		}
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
	said = cmp.Or(said, fmt.Sprintf("it exits with status %d on empty input", f.Status))
	hint := programs.Hint(c.Name, programs.Complaint{Args: c.Args, Message: f.Stderr})
	e := stages.Errorf(stages.DisallowedArgument, hint, "%s: %s", c.Name, said)
	e.Field = argField(inv.ScriptAt)
	return e
}
