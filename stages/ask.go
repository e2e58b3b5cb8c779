package stages

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// An Asker asks the caller of a run on behalf of servers.
type Asker struct {
	Form, URL, Sampling bool // what the caller can answer

	// Ask waits for the caller's answer to a question: the result of its method. A caller that refuses or does not answer gives
	// one too, or an error that may go to the server. It ends with ctx, and by itself after some time. It may be called
	// concurrently.
	Ask func(ctx context.Context, q Question) (json.RawMessage, error)

	// Patience bounds one Pause.
	Patience time.Duration

	// Pause pauses the clocks without a question until resume is called: somebody signs in on a page. In a Call it is
	// set.
	Pause func() (resume func())
}

// A Question is what a server asks in the middle of a call.
type Question struct {
	Server, Tool string
	Item         string          // of a for_each, empty outside
	Method       string          // elicitation/create or sampling/createMessage
	Params       json.RawMessage // as the server has written them
	Own          bool            // mcsh itself asks, on behalf of the server: its page may be on this machine
}

// errCallOver is the answer to a question whose call has ended.
var errCallOver = errors.New("the call has ended: nobody answers its questions")

// InCall returns the asker of one call, and what is called when the call has ended: then questions are refused. The clock of the
// call's run is paused while a question is open. For nil there is none.
func (a *Asker) InCall(clock *pausing.Clock) (own *Asker, over func()) {
	if a == nil {
		return nil, func() {}
	}
	call, end := context.WithCancelCause(context.Background())
	copied := *a
	own = &copied
	own.Ask = func(ctx context.Context, q Question) (json.RawMessage, error) {
		if call.Err() != nil {
			return nil, errCallOver
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(call, func() { cancel(errCallOver) })()
		defer clock.Pause()()
		return a.Ask(ctx, q)
	}
	own.Pause = func() func() {
		goOn, rest := clock.Pause(), func() {}
		if a.Pause != nil { // of a call around this one
			rest = a.Pause()
		}
		late := time.AfterFunc(own.Patience, goOn)
		return func() { late.Stop(); goOn(); rest() }
	}
	return own, func() { end(errCallOver) }
}

// Clock returns a clock for a run. It pauses only if somebody can be asked.
func (a *Asker) Clock() *pausing.Clock {
	if a == nil {
		return nil
	}
	return pausing.New()
}

// mostShown is how much of an item its name has, in bytes.
const mostShown = 100

// name names the item in questions: its number and its beginning, then those of the items around it.
func (it *item) name() string {
	var parts []string
	for ; it != nil; it = it.around {
		part := "item " + strconv.Itoa(it.number) + ": " + texts.Cut(string(it.data[:min(len(it.data), 4*mostShown)]), mostShown)
		parts = append(parts, part)
	}
	return strings.Join(parts, ", within ")
}
