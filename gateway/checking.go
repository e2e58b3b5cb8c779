package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// checkWait is how long a plan waits for servers that it needs and that are still starting.
const checkWait = 30 * time.Second

// errSpent is the cause of a check that ends because the time of its call is up.
var errSpent = errors.New("the time of the call is up")

// CallTime is the time of a call, which covers the waiting for servers as well.
type CallTime struct {
	Timeout time.Duration
	Begun   time.Time
	Limits  stages.Limits // of the operator, for what is said when the time is up
}

// Check has a pipeline compiled within the time of its call; late is what it comes to if that was too short. That time
// ends a wait is no sign that a server hangs, so it is no deadline.
func (c CallTime) Check(ctx context.Context, compile func(context.Context) (*stages.Pipeline, []*stages.Error)) (p *stages.Pipeline, errs []*stages.Error, late *stages.Error) {
	checking, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	checking, spend := context.WithCancelCause(checking)
	defer spend(nil)
	timer := time.AfterFunc(c.Timeout-time.Since(c.Begun), func() { spend(errSpent) })
	defer timer.Stop()
	p, errs = compile(checking)
	if errs == nil || context.Cause(checking) != errSpent {
		return p, errs, nil
	}
	waits := []string{"nothing was called"}
	for _, e := range errs {
		if !errors.Is(e, context.Canceled) {
			return nil, errs, nil // there is more to mend than the time
		}
		if msg := strings.TrimSuffix(e.Msg, ": "+context.Canceled.Error()); !slices.Contains(waits, msg) {
			waits = append(waits, msg)
		}
	}
	return nil, nil, stages.Late(c.Timeout, c.Limits, strings.Join(waits, "; "), "try again soon, when the server has started")
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
