package stages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// tries says how an item is tried again.
type tries struct {
	more int            // attempts after the first
	on   *regexp.Regexp // which errors; nil: all that may be
}

// Waits before another attempt: they double, and are spread so that items that failed together do not come back
// together.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// pause is how long to wait after n attempts. A server that asks for more time gets it.
func pause(n int, asked time.Duration) time.Duration {
	d := min(firstPause<<min(n-1, 10), maxPause)
	spread := rand.N(d/2 + 1)
	if asked > 0 {
		return asked + spread
	}
	return d/2 + spread
}

// tryable are the codes of failed calls that another attempt may cure. Of the others the cause is what was asked, or
// what is allowed.
var tryable = map[Code]bool{ToolError: true, ServerUnavailable: true, Timeout: true}

// An attempt is one run of a for_each's stages on one item that may be run again, or changes something.
type attempt struct {
	around *attempt // of the item of another for_each that this one belongs to, or nil
	number int      // from 1, counted over the attempts around it as well
	direct bool     // the for_each is given the item around it as it is
	begun  begun

	spent  atomic.Bool // something may have taken effect, and would again
	unsure atomic.Bool // of that, something that the tool did not say to have failed
}

// attemptKey is the key of the attempt in the context of a for_each's stages. It is there because filters are bound
// once for all items: the context is all that a call of one has of its own.
type attemptKey struct{}

// attemptOf returns the attempt that a stage runs in, nil if there is none.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// left notes that a call which may change something has left. repeats says that the same call comes again with the
// next attempt, and does no harm; unsure, that nobody has said that it failed.
func (a *attempt) left(repeats, unsure bool) {
	for ; a != nil; a = a.around {
		if !repeats {
			a.spent.Store(true)
			if unsure {
				a.unsure.Store(true)
			}
		}
		repeats = repeats && a.direct
	}
}

// A trial is what was tried with one item.
type trial struct {
	attempts int      // made
	before   messages // of the attempts before the last
	unsure   bool     // the last attempt may have taken effect, whatever it came to
	note     string   // why there was no further attempt, where one was left
}

// input returns what the body reads for an item.
func (e *each) input(s *slot) []byte {
	if e.value {
		return s.item.data
	}
	return s.item.line()
}

// try runs the body on an item until it succeeds or cannot be tried again. What a failed attempt has written is
// forgotten.
func (e *each) try(ctx context.Context, s *slot) (trial, error) {
	data := e.input(s)
	if e.tries.more == 0 && e.effect != Changes {
		return trial{attempts: 1}, e.once(ctx, data, &s.out)
	}
	if e.tries.more > 0 {
		s.out.max = e.r.deps.Limits.Attempt
	}
	around := attemptOf(ctx)
	base := 0
	if around != nil {
		base = (around.number - 1) * (1 + e.tries.more)
	}
	var t trial
	for {
		t.attempts++
		// An item that is tried once stands for no other call than the one around it does.
		a := &attempt{around: around, number: base + t.attempts, direct: e.direct || e.tries.more == 0}
		err := e.attempt(ctx, a, data, &s.out)
		t.unsure = a.unsure.Load()
		if err == nil || ctx.Err() != nil || t.attempts > e.tries.more || !e.again(a, err) {
			return t, err
		}
		wait, ok := e.patience(ctx, &t, err)
		if !ok {
			return t, err
		}
		s.out.release()
		t.before.add(messageOf(err), 1)
		if !sleep(ctx, wait) {
			return t, context.Cause(ctx)
		}
		e.m.tally.again()
	}
}

// attempt runs the body once, where that is counted.
func (e *each) attempt(ctx context.Context, a *attempt, data []byte, out *holder) error {
	if e.effect == Changes {
		own, end := a.begun.context(ctx, e.r.outer)
		defer end()
		ctx = own
	}
	return e.once(context.WithValue(ctx, attemptKey{}, a), data, out)
}

// once runs the body once.
func (e *each) once(ctx context.Context, data []byte, out *holder) (err error) {
	defer recovered(&err)
	return e.body(ctx, bytes.NewReader(data), out)
}

// again reports whether a failed attempt may be followed by another.
func (e *each) again(a *attempt, err error) bool {
	var f *Error
	if !errors.As(err, &f) || !f.call || f.OfRun || !tryable[f.Code] || a.spent.Load() {
		return false
	}
	on := e.tries.on
	if on == nil {
		return true
	}
	matches := on.MatchString(f.Msg) || on.MatchString(string(f.Code))
	e.m.used("retry_on", matches, fmt.Sprintf("retry_on %s matches none of the failures", quoted(on.String())))
	return matches
}

// patience returns how long to wait before the next attempt, and whether that leaves time for one.
func (e *each) patience(ctx context.Context, t *trial, err error) (time.Duration, bool) {
	var f *Error
	errors.As(err, &f)
	wait := pause(t.attempts, f.RetryAfter)
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) > wait {
		return wait, true
	}
	t.note = "not tried again: the time allowed ends before"
	if f.RetryAfter > 0 {
		t.note = fmt.Sprintf("not tried again: the server asks to wait %s, and the time allowed ends before", f.RetryAfter.Round(time.Millisecond))
	}
	return 0, false
}

// sleep waits, and reports whether it has waited to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// told says in a message what was tried. Nothing is said of an item that was tried once.
func (t *trial) told(more int) string {
	var parts []string
	if t.attempts > 1 {
		text := fmt.Sprintf("attempt %d of %d", t.attempts, 1+more)
		if before := t.before.told(3); before != "" {
			text += ", before: " + before
		}
		parts = append(parts, text)
	}
	if t.note != "" {
		parts = append(parts, t.note)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func messageOf(err error) string {
	var f *Error
	if errors.As(err, &f) {
		return f.Msg
	}
	return err.Error()
}
