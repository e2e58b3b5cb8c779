package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// checkWait is how long a plan waits for servers that it needs and that are still starting.
const checkWait = 30 * time.Second

// errSpent is the cause of a check that ends because the time of its call is up.
var errSpent = errors.New("the time of the call is up")

// check compiles the pipeline of a call, whose time begins here: it covers the waiting for servers as well, and late is
// what it comes to if that was too long. That time ends a wait is no sign that a server hangs, so it is no deadline.
func check(ctx context.Context, call schemas.Call, deps stages.Deps) (p *stages.Pipeline, errs []*stages.Error, late *stages.Error) {
	checking, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	checking, spend := context.WithCancelCause(checking)
	defer spend(nil)
	defer time.AfterFunc(seconds(call.Timeout), func() { spend(errSpent) }).Stop()
	p, errs = stages.Compile(checking, json.RawMessage(call.Pipeline), deps)
	if errs == nil || context.Cause(checking) != errSpent {
		return p, errs, nil
	}
	waits := []string{"nothing was called"}
	for _, e := range errs {
		if !errors.Is(e, context.Canceled) {
			return nil, errs, nil // there is more to mend than the time
		}
		if !slices.Contains(waits, e.Msg) {
			waits = append(waits, e.Msg)
		}
	}
	return nil, nil, stages.Late(seconds(call.Timeout), deps.Limits, strings.Join(waits, "; "), "try again soon, when the server has started")
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
