package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// An item is one element of the input of a for_each, from when it begins until its result is written.
type item struct {
	element
	number int   // counted from 1
	of     *each // the for_each
	around *item // that the for_each belongs to; nil: none

	attempts int           // made
	before   failureGroups // what those before the last came to
	note     string        // why there was no further attempt, where one was left
	hold     *effectHold   // of the attempt that runs; nil where it changes nothing
	spent    atomic.Bool   // something may have taken effect, and would again

	input   description // of in
	in, out header      // of what its stages read and write
	result  holder
	isValue bool // result is one JSON value, not what the stages wrote
	done    bool

	// Set while a MapFilter runs it:
	fed  []byte      // what it reads
	over func(error) // called at its end
}

// Input implements [Job].
func (it *item) Input() []byte { return it.fed }

// Write implements [Job].
func (it *item) Write(p []byte) (int, error) { return it.result.Write(p) }

// End implements [Job].
func (it *item) End(err error) { it.over(err) }

// itemOf returns the item that a stage runs for, nil if there is none.
func itemOf(ctx context.Context) *item { return headersOf(ctx).item }

// attempt is the number of the attempt that runs, counted over those of the items around it as well. An item that is tried
// once stands for no other call than the item around it does.
func (it *item) attempt() int {
	if it == nil {
		return 1
	}
	return (it.around.attempt()-1)*(1+it.of.Retries) + it.attempts
}

// callSent notes that a call which may change something has been sent, or that a file is about to be saved. repeats says that the same call comes again with the next
// attempt, and does no harm.
func (it *item) callSent(repeats bool) {
	for ; it != nil; it = it.around {
		if !repeats {
			it.spent.Store(true)
		}
		repeats = repeats && (it.of.direct || it.of.Retries == 0)
	}
}

// held returns the effect hold of the current attempt; nil without one.
func (it *item) held() *effectHold {
	if it == nil {
		return nil
	}
	return it.hold
}

// become makes a JSON object the result of the item.
func (it *item) become(object []member) error {
	it.isValue = true
	return it.result.adopt(encodeObject(object))
}

// takeKept gives the item the result that an earlier run had for it, if there is one, and counts it.
func (it *item) takeKept() (bool, error) {
	known, err := it.of.log.answer(it)
	if !known || err != nil {
		return false, err
	}
	it.of.m.count(func(r *StageReport) { r.Resumed++ })
	return true, it.succeeded()
}

// try runs the stages on an item until they succeed or cannot be tried again. The output of a failed attempt is
// dropped.
func (e *each) try(ctx context.Context, it *item) (err error) {
	defer recovered(&err)
	it.around = itemOf(ctx)
	over, err := e.guard(ctx, it)
	if err != nil {
		return err
	}
	defer over()
	if e.Retries > 0 {
		it.result.max = e.r.deps.Limits.Attempt
	}
	for {
		it.attempts++
		err := e.once(ctx, it)
		if err == nil || ctx.Err() != nil || it.attempts > e.Retries || !e.again(it, err) {
			return err
		}
		wait, ok := it.patience(ctx, err)
		if !ok {
			return err
		}
		it.result.release()
		it.before.add(AsError(err).Msg, 1)
		if pausing.For(ctx, wait) != nil {
			return context.Cause(ctx)
		}
		e.m.count(func(r *StageReport) { r.Retries++ })
	}
}

// once runs the stages once.
func (e *each) once(ctx context.Context, it *item) error {
	if e.changes {
		hold, release := holdEffects(ctx, e.r.outer, e.r.clock, it.around.held(), false)
		defer release()
		it.hold, ctx = hold, hold.ctx
	}
	it.input.about = e.aboutInput(it.element)
	it.in.description.Store(&it.input)
	it.out.description.Store(nil)
	return e.filter(withHeaders(ctx, headers{in: &it.in, out: &it.out, item: it}), bytes.NewReader(e.input(it)), &it.result)
}

// takesValue reports whether the stages read an item as one value, not as a line.
func (e *each) takesValue() bool { return len(e.body) > 0 && e.body[0].tool != nil }

// input returns what the stages read for an item.
func (e *each) input(it *item) []byte {
	if e.takesValue() {
		return it.data
	}
	return it.line()
}

// aboutInput describes what input returns.
func (e *each) aboutInput(el element) about {
	if el.text && !e.takesValue() {
		return about{Kind: CommandText} // a line
	}
	return el.about()
}

// conclude sets the output of an item after its last attempt. It reports whether the item failed; the
// error is what ends the other items too.
func (it *item) conclude(ctx context.Context, err error) (failed bool, ends error) {
	defer recovered(&ends)
	if err == nil {
		it.of.log.keep(it)
		if !it.of.r.dry.replaces(it.of.changes) {
			it.of.m.count(func(r *StageReport) {
				r.OK++
				if it.attempts > 1 {
					r.Retried++
				}
			})
		}
		return false, it.succeeded()
	}
	if echo(err) || err == context.Cause(ctx) {
		return false, err // it was cancelled
	}
	onError, f := it.of.OnError, failureOf(err)
	if f == nil {
		onError = onErrorFail
	}
	it.of.m.failed(AsError(err).Msg, onError == onErrorSkip)
	if onError == onErrorFail {
		return true, it.failure(err)
	}
	return true, it.failed(f, onError)
}

// failure says which item failed and shows it. Of nested for_each stages the innermost shows its item, those around
// it say where that was.
func (it *item) failure(err error) error {
	shared, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	own := *shared // the failure of an input is that of every item that waits for it
	e := &own
	e.adds(it.tried())
	if e.Item != 0 {
		e.adds(" (within item " + strconv.Itoa(it.number) + " of the for_each around it)")
		return e
	}
	e.Item, e.Sample, e.Cut = it.number, it.data, false
	e.each = it.of
	return e
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

// again reports whether a failed attempt may be followed by another.
func (e *each) again(it *item, err error) bool {
	f, ok := errors.AsType[*Error](err)
	if !ok || !f.call || f.OfRun || !tryable[f.Code] || it.spent.Load() {
		return false
	}
	on := e.retryOn
	if on == nil {
		return true
	}
	matches := on.MatchString(f.Msg[:min(len(f.Msg), maxMatched)]) || on.MatchString(string(f.Code))
	e.m.used("retry_on", matches, fmt.Sprintf("retry_on %s matches none of the failures", texts.Quote(on.String())))
	return matches
}

// patience returns how long to wait before the next attempt, and whether that leaves time for one.
func (it *item) patience(ctx context.Context, err error) (time.Duration, bool) {
	f, _ := errors.AsType[*Error](err) // see again
	wait := pause(it.attempts, max(f.RetryAfter, f.Backoff))
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) > wait {
		return wait, true
	}
	it.note = "not tried again: the time allowed ends before"
	if f.RetryAfter > 0 {
		it.note = fmt.Sprintf("not tried again: the server asks to wait %s, and the time allowed ends before", f.RetryAfter.Round(time.Millisecond))
	}
	return 0, false
}

// tried says in a message what was tried. Nothing is said of an item that was tried once.
func (it *item) tried() string {
	var parts []string
	if it.attempts > 1 {
		text := fmt.Sprintf("attempt %d of %d", it.attempts, 1+it.of.Retries)
		if before := it.before.text(3); before != "" {
			text += ", before: " + before
		}
		parts = append(parts, text)
	}
	if it.note != "" {
		parts = append(parts, it.note)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// ofItem says of every code whether a failure with it is one of the item, so that on_error applies. All others, and
// those that are marked as failures of the run, end the run with any on_error: they would meet every item alike,
// or nobody knows what has happened.
var ofItem = map[Code]bool{
	ToolError:         true,
	ServerUnavailable: true, // this call did not come through; the next may
	InvalidArguments:  true, // the item does not fit the tool
	CommandFailed:     true,
	Timeout:           true, // of one call, one command or a for_each within; that of the run and of the stage end the context
	LimitExceeded:     true, // the item's data is too large; limits of the run are marked

	InvalidPipeline:    false, // as all that the plan forbids
	UnknownServer:      false, // the server was removed while the pipeline ran
	UnknownTool:        false,
	UnknownRun:         false,
	DisallowedCommand:  false,
	DisallowedArgument: false,
	Denied:             false, // the tool may not be called with any item
	SandboxUnavailable: false, // nothing of the plan is checked
	Cancelled:          false, // the caller has gone, or the gateway closes
	Internal:           false, // a sandbox that is lost, a bug
}

// failureOf returns the failure of an item that on_error applies to, or nil if something else ended it.
func failureOf(err error) *Error {
	f, ok := errors.AsType[*Error](err)
	if !ok || f.OfRun || !ofItem[f.Code] && !f.repeats {
		return nil
	}
	return f
}

// succeeded sets the output of an item that succeeded.
func (it *item) succeeded() error {
	if !it.of.WithItem {
		return nil
	}
	result := null
	if list := it.out.get().values(it.result.buf.Bytes()); len(list) == 1 {
		result = list[0]
	} else if len(list) > 1 {
		result = encodeArray(list)
	}
	return it.become([]member{{"item", it.value()}, {"result", result}})
}

// failed sets the output of an item that failed: nothing, or an object with its error.
func (it *item) failed(failed *Error, onError string) error {
	it.result.release()
	if onError == onErrorSkip {
		it.out.describe(about{Kind: Values}) // of which there is none
		return nil
	}
	msg := failed.Msg
	if failed.Item != 0 {
		msg += " (item " + strconv.Itoa(failed.Item) + " of the for_each within)"
	}
	if it.note != "" {
		msg += " (" + it.note + ")"
	}
	about := []member{
		{"code", appendString(nil, []byte(failed.Code))},
		{"message", appendString(nil, []byte(msg))},
		{"attempts", json.RawMessage(strconv.Itoa(it.attempts))},
		{"index", json.RawMessage(strconv.Itoa(it.number))},
	}
	if it.of.WithItem {
		return it.become([]member{{"item", it.value()}, {"error", encodeObject(about)}})
	}
	return it.become([]member{{"error", encodeObject(append(about, member{"item", it.value()}))}})
}

// value returns the element as a JSON value, exactly as it came; a line of text as a string.
func (el element) value() json.RawMessage {
	if el.text {
		return appendString(nil, el.data)
	}
	return el.data
}
