package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

const (
	heartbeat     = 5 * time.Second        // the longest time without a notification
	progressBurst = 3                      // notifications without a pause
	progressRest  = 150 * time.Millisecond // between two others: at most ten a second with the burst
)

// notifier sends progress to a client that asked for it, as fast as it reads and not too often.
type notifier struct {
	news    chan struct{} // holds at most one: faster progress is summed up
	plain   bool          // it passes on what one tool says, and nothing else
	sent    chan struct{} // closed after the last notification; nil: none are sent
	running context.Context
	end     context.CancelFunc // of running

	mu    sync.Mutex                           // guards the fields below
	run   string                               // its id, where it outlives this gateway
	last  stages.Progress                      // with the highest counts so far
	tools map[stages.Place]stages.ToolProgress // of stages outside for_each
}

func newNotifier(ctx context.Context, req *mcp.CallToolRequest, plain bool) *notifier {
	n := &notifier{news: make(chan struct{}, 1), plain: plain, tools: map[stages.Place]stages.ToolProgress{}}
	n.running, n.end = context.WithCancel(ctx)
	if token, send := req.Params.GetProgressToken(), senderOf(ctx, req); token != nil && send != nil {
		n.sent = make(chan struct{})
		go func() {
			defer close(n.sent)
			n.loop(ctx, func(p mcp.ProgressNotificationParams) error {
				p.ProgressToken = token
				return send(ctx, &p)
			})
		}()
	}
	return n
}

// follow returns the run's progress callback. nil, if the client did not ask, also keeps the run from asking tools.
func (n *notifier) follow() func(stages.Progress) {
	if n.sent == nil {
		return nil
	}
	return n.progress
}

// kept has the notifications name the run, for a client whose gateway ends before it answers.
func (n *notifier) kept(run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.run = run
}

// A progressSender sends a notification.
type progressSender func(context.Context, *mcp.ProgressNotificationParams) error

// senderKey is the context key of the progressSender of a [Call].
type senderKey struct{}

// senderOf returns the progressSender for the client of a call, or nil.
func senderOf(ctx context.Context, req *mcp.CallToolRequest) progressSender {
	send, direct := ctx.Value(senderKey{}).(progressSender)
	if !direct && req.Session != nil {
		send = req.Session.NotifyProgress
	}
	return send
}

// progress records progress and never blocks. Concurrent calls may come out of order.
func (n *notifier) progress(p stages.Progress) {
	n.mu.Lock()
	p.Items, p.Calls = max(p.Items, n.last.Items), max(p.Calls, n.last.Calls)
	if p.Place == "" {
		p.Place, p.Tool, p.Each = n.last.Place, n.last.Tool, n.last.Each
	}
	if !p.Each && p.Place != "" && p.Tool.Done >= n.tools[p.Place].Done {
		n.tools[p.Place] = p.Tool
	}
	n.last = p
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// now returns the next notification. Progress counts items and the tools' own numbers; a total needs a single tool.
func (n *notifier) now() (p mcp.ProgressNotificationParams) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.Progress = float64(n.last.Items)
	for _, t := range n.tools {
		p.Progress += t.Done
		if len(n.tools) == 1 && n.last.Items == 0 && t.Total >= t.Done {
			p.Total = t.Total
		}
	}
	t := n.last.Tool
	if n.plain || n.last.Items == 0 && !n.last.Each && t.Message != "" {
		p.Message = t.Message
		return p
	}
	if n.run != "" {
		defer func() { p.Message += "; run " + n.run }()
	}
	p.Message = fmt.Sprintf("%s done, %s", texts.Count(n.last.Items, "item"), texts.Count(n.last.Calls, "tool call"))
	switch {
	case n.last.Items == 0 && n.last.Calls == 0 && t == (stages.ToolProgress{}):
		p.Message = "no tool has been called yet"
	case t.Message != "":
		p.Message += "; " + t.Message
	case t.Done > 0 && t.Total >= t.Done:
		p.Message += fmt.Sprintf("; the tool says %.6g of %.6g", t.Done, t.Total)
	}
	return p
}

// loop sends progress until the run has ended.
func (n *notifier) loop(ctx context.Context, send func(mcp.ProgressNotificationParams) error) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	sent, beats, burst, last := mcp.ProgressNotificationParams{Progress: -1}, 0.0, progressBurst, time.Now()
	done := 0.0 // what was sent, without heartbeats
	for over := false; !over; {
		select {
		case <-n.running.Done():
		case <-n.news:
		case <-tick.C:
			if n.plain {
				continue
			}
			beats += 0.001
		}
		if ctx.Err() != nil {
			return
		}
		over = n.running.Err() != nil // select may have taken another ready case
		p := n.now()
		if over && p.Progress <= done && (sent.Progress < 0 || p.Message == sent.Message) {
			return // nothing is new
		}
		done = p.Progress
		if p.Progress+beats <= sent.Progress && p.Message != sent.Message {
			beats += 0.001
		}
		if p.Progress += beats; p.Progress <= sent.Progress {
			continue // the protocol wants growing numbers
		}
		if time.Since(last) > time.Second {
			burst = progressBurst
		}
		if sent, last = p, time.Now(); send(p) != nil {
			return // the client has gone; the context ends the run
		}
		if burst = max(0, burst-1); burst == 0 {
			_ = pausing.For(n.running, progressRest)
		}
	}
}

// stop ends the notifications and waits for the last one, so that none follows the answer. Over HTTP a write that the client
// does not read fails after a while; over stdio the wait ends with ctx.
func (n *notifier) stop(ctx context.Context) {
	n.end()
	if n.sent == nil {
		return
	}
	select {
	case <-n.sent:
	case <-ctx.Done():
	}
}
