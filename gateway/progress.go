package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// heartbeat is how often a client that asked for progress hears of a run at least.
const heartbeat = 5 * time.Second

// notifier sends progress to the client that asked for it: for every finished item, as fast as the client takes it.
type notifier struct {
	news chan struct{} // holds at most one: progress that comes faster than it is sent is summed up
	quit chan struct{}
	sent chan struct{} // closed when nothing more is sent; nil: nothing ever is

	mu   sync.Mutex
	last stages.Progress // guarded by mu
}

func newNotifier(ctx context.Context, req *mcp.CallToolRequest) *notifier {
	n := &notifier{news: make(chan struct{}, 1), quit: make(chan struct{})}
	if token, tell := req.Params.GetProgressToken(), tellerOf(ctx, req); token != nil && tell != nil {
		n.sent = make(chan struct{})
		go func() {
			defer close(n.sent)
			n.loop(ctx, tell, token)
		}()
	}
	return n
}

// A teller sends progress.
type teller func(context.Context, *mcp.ProgressNotificationParams) error

// tellerKey is where the context of a call beside the SDK has its teller.
type tellerKey struct{}

// tellerOf returns how the client of a call is told, or nil if it cannot be.
func tellerOf(ctx context.Context, req *mcp.CallToolRequest) teller {
	if req.Session != nil {
		return req.Session.NotifyProgress
	}
	tell, _ := ctx.Value(tellerKey{}).(teller)
	return tell
}

// progress takes the news and never blocks.
func (n *notifier) progress(p stages.Progress) {
	n.mu.Lock()
	if p.Items > n.last.Items {
		n.last = p
	}
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

func (n *notifier) loop(ctx context.Context, tell teller, token any) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	told := -1.0
	for beats := 0.0; ; {
		select {
		case <-n.quit:
			return
		case <-ctx.Done():
			return
		case <-n.news:
		case <-tick.C:
			beats += 0.001
		}
		if n.over() {
			return // several of them were ready
		}
		n.mu.Lock()
		p := n.last
		n.mu.Unlock()
		progress := float64(p.Items) + beats
		if progress <= told {
			continue // it must grow with every notification; a heartbeat has told this before
		}
		told = progress
		err := tell(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: progress,
			Message: fmt.Sprintf("%d items done, %d tool calls", p.Items, p.Calls),
		})
		if err != nil {
			return // the client is gone; the run hears of it by its context
		}
	}
}

// over reports whether the run has ended.
func (n *notifier) over() bool {
	select {
	case <-n.quit:
		return true
	default:
		return false
	}
}

// stop ends the sending and waits for it: no message comes behind the answer. Over HTTP the wait is bounded, since a
// write for a client that takes nothing fails; over stdio that client is the only one, and whoever cancels the call does
// not wait for it.
func (n *notifier) stop(ctx context.Context) {
	close(n.quit)
	if n.sent == nil {
		return
	}
	select {
	case <-n.sent:
	case <-ctx.Done():
	}
}
