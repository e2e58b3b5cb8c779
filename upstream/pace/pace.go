package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	// maxHold bounds how long one answer holds back all other queries to its server. The query after it may be held again.
	maxHold = 10 * time.Minute

	// rampPause is how long a query waits at most for the answer to an earlier one, after the server has asked to wait.
	rampPause = time.Second

	NoEpoch = -1 // of a query that the pace has not held back
)

// ErrReplaced is the error of a query to a server that the source has replaced or removed. The query has not been sent.
var ErrReplaced = errors.New("the server has been replaced")

// A Pace says when a query may go to a server, for all runs and callers together and in the order in which they come:
//
//   - No more than the rate of the server. This is a window that slides, not a bucket of tokens: a bucket lets twice the
//     rate through in its first unit, or else spaces the few calls of a small pipeline evenly over an hour.
//   - None while the server has asked to wait (Retry-After). One whose time ends before is refused at once.
//   - After such a wait one at a time at first, and another one with every query that ends without a new wait, or every
//     [rampPause], so that those that have waited do not come together.
type Pace struct {
	server string
	rate   Rate
	most   int           // queries in flight
	turn   chan struct{} // held by the query that goes next
	closed <-chan struct{}

	mu     sync.Mutex // guards the fields below
	sent   []time.Time
	oldest int           // index in sent, once that has rate.N times
	until  time.Time     // the server has asked to wait until then
	asked  time.Duration // the wait that it has asked for
	epoch  int           // the number of such waits
	window int           // queries of this epoch that may be in flight; 0: any number
	flying int           // those that are, while there is a window
	last   time.Time     // when a query of this epoch went
	news   chan struct{} // closed when a query has ended or the server has asked to wait
}

// New makes the pace of a server. At most so many of its queries are in flight. closed ends all waits; nil: nothing does.
func New(server string, rate Rate, most int, closed <-chan struct{}) *Pace {
	return &Pace{server: server, rate: rate, most: most, closed: closed, turn: make(chan struct{}, 1), news: make(chan struct{})}
}

// Begin waits until a query may go, and returns its epoch for End. A wait is reported to waits, if that is not nil; the function
// that waits returns is called at the end of the wait, unless ctx has ended it.
func (p *Pace) Begin(ctx context.Context, replaced <-chan struct{}, waits func(why string) (over func())) (epoch int, err error) {
	if epoch, free := p.Free(); free {
		return epoch, nil
	}
	if waits != nil {
		over := waits(p.Why())
		defer func() {
			if err == nil || ctx.Err() == nil {
				over()
			}
		}()
	}
	if err := p.Hopeless(ctx); err != nil {
		return 0, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-replaced:
		return 0, ErrReplaced
	case <-p.closed:
		return 0, ErrReplaced // the next try finds that out
	case <-ctx.Done():
		return 0, p.ended(ctx)
	}
	return p.await(ctx, replaced)
}

// await waits for all but the turn.
func (p *Pace) await(ctx context.Context, replaced <-chan struct{}) (epoch int, err error) {
	for {
		if err := p.Hopeless(ctx); err != nil {
			return 0, err
		}
		epoch, wait, news := p.next(time.Now())
		if wait <= 0 {
			return epoch, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-news:
		case <-replaced:
			err = ErrReplaced
		case <-p.closed:
			err = ErrReplaced
		case <-ctx.Done():
			err = p.ended(ctx)
		}
		timer.Stop()
		if err != nil {
			return 0, err
		}
	}
}

// Free reports whether nothing holds queries back. Then they need no turn.
func (p *Pace) Free() (epoch int, free bool) {
	if p.rate.N > 0 {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch, p.window == 0
}

// next notes a query that goes now, or returns how long it waits at most, and what ends that early.
func (p *Pace) next(now time.Time) (epoch int, wait time.Duration, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = max(p.until.Sub(now), p.rateWait(now))
	if p.window > 0 && p.flying >= p.window {
		wait = max(wait, p.last.Add(rampPause).Sub(now))
	}
	if wait > 0 {
		return 0, wait, p.news
	}
	p.note(now)
	return p.epoch, 0, nil
}

// rateWait is how long the rate holds a query back. p.mu is held.
func (p *Pace) rateWait(now time.Time) time.Duration {
	if p.rate.N == 0 || len(p.sent) < p.rate.N {
		return 0
	}
	return p.sent[p.oldest].Add(p.rate.Per).Sub(now)
}

// note notes that a query goes. p.mu is held.
func (p *Pace) note(now time.Time) {
	if p.window > 0 {
		p.flying++
		p.last = now
	}
	switch {
	case p.rate.N == 0:
	case len(p.sent) < p.rate.N:
		p.sent = append(p.sent, now)
	default:
		p.sent[p.oldest] = now
		p.oldest = (p.oldest + 1) % p.rate.N
	}
}

// End notes the end of a query.
func (p *Pace) End(epoch int, failure *rpc.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch asks := failure != nil && failure.RetryAfter > 0; {
	case asks:
		p.hold(time.Now(), min(failure.RetryAfter, maxHold))
	case epoch != p.epoch || p.window == 0: // it went before the wait and says nothing about the time after it
		return
	default:
		p.flying--
		if p.window++; p.window >= p.most {
			p.window, p.flying = 0, 0
		}
	}
	close(p.news)
	p.news = make(chan struct{})
}

// hold makes queries wait. p.mu is held.
func (p *Pace) hold(now time.Time, wait time.Duration) {
	if until := now.Add(wait); until.After(p.until) {
		p.until, p.asked = until, wait
	}
	p.epoch++
	p.window, p.flying, p.last = 1, 0, time.Time{}
}

// Hopeless refuses a query whose time ends before the server wants to be asked again.
func (p *Pace) Hopeless(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	p.mu.Lock()
	until, asked := p.until, p.asked
	p.mu.Unlock()
	left := time.Until(until)
	if !ok || left <= 0 || until.Before(deadline) || ctx.Err() != nil {
		return nil
	}
	e := stages.Errorf(stages.ServerUnavailable, "call it again after that time, or call it less often",
		"server %q has asked all callers to wait %s (Retry-After)", p.server, asked.Round(time.Millisecond))
	e.RetryAfter = left
	return e
}

// Why says what queries wait for.
func (p *Pace) Why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.window > 0:
		return fmt.Sprintf("waiting because server %q has asked for %s (Retry-After)", p.server, p.asked.Round(time.Millisecond))
	case p.rate.N > 0:
		return fmt.Sprintf("waiting for the rate of server %q, %s", p.server, p.rate)
	}
	return fmt.Sprintf("waiting for server %q", p.server) // the wait is just over
}

func (p *Pace) ended(ctx context.Context) error { return fmt.Errorf("%s: %w", p.Why(), ctx.Err()) }
