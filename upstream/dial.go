package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// oldVersion is the version of the protocol of servers that need a handshake.
const oldVersion = "2025-11-25"

// An era is which of the two protocols a server speaks, as far as it is known.
type era int

const (
	eraUnknown era = iota
	eraOld
	eraNew
)

// dialer makes sessions with one server.
type dialer struct {
	dial    func(context.Context) (mcp.Transport, error)
	impl    *mcp.Implementation
	allowed Protocol
	limit   time.Duration  // of a start, without its wait for a slot
	probe   time.Duration  // how long a server may take to answer the request that tells its era
	queue   *startQueue    // for programs
	needed  func() bool    // whether a plan waits for the server
	noted   func(rpc.News) // called with the news of the server
	memory  *memory.Share  // for messages
	message int            // bytes of one message, at most

	declared questions.Declared // by the session
	role     rpc.Role

	onTransport func(mcp.Transport)                          // called with every transport before it is tried
	unnamed     func(on sessions.Transport, unanswered bool) // [rpc.Role.Unnamed], with its transport
}

// attempts lists the protocol versions to try, in their order.
func (d *dialer) attempts(known era, olderOnly bool) []string {
	switch {
	case olderOnly, d.allowed == OnlyOlder, known == eraOld:
		return []string{oldVersion}
	case d.allowed == NewerFirst, known == eraNew: // the SDK falls back to the older era by itself
		return []string{sessions.NewVersion}
	case d.allowed == OlderFirst:
		return []string{oldVersion, sessions.NewVersion}
	}
	return []string{sessions.NewVersion, oldVersion, sessions.NewVersion} // the last where it was only slow to start
}

// worthTrying reports whether attempt i can succeed after the one before it has failed.
func (d *dialer) worthTrying(i int, err error) bool {
	// After the older era, only a server that has answered is asked for the newer one: the request may decide which era
	// other clients can use, if a proxy connects them to the same server.
	return i == 1 && d.allowed == AnyProtocol || rpc.IsAnswer(err)
}

// connect makes a session. A server that ignores unknown requests never answers the one for the newer protocol, and some
// end at it; both get the older handshake on a transport of its own. All attempts have one slot of the queue, which is free
// again after [slotLimit]: a program that is started a second time may then start beside others. The caller remembers the
// era. The transport is returned with an error too, because it may explain the error.
func (d *dialer) connect(life context.Context, known era) (*sessions.Session, era, mcp.Transport, error) {
	t, err := d.open(life)
	if err != nil {
		return nil, known, nil, err
	}
	if t.Traits().Program {
		release, err := d.queue.acquire(life, d.needed)
		if err != nil {
			return nil, known, t, err
		}
		defer release()
	}
	ctx, cancel := context.WithTimeout(life, d.limit)
	defer cancel()
	attempts := d.attempts(known, t.Traits().OlderOnly)
	for i, version := range attempts {
		if i > 0 && !d.worthTrying(i, err) {
			break
		}
		if i > 0 {
			if t, err = d.open(ctx); err != nil {
				return nil, known, nil, err
			}
		}
		limit := d.limit
		if i == 0 && len(attempts) > 2 {
			limit = d.probe
		}
		var s *sessions.Session
		if s, err = d.try(ctx, t, version, limit); err == nil {
			return s, choose(s.Stateless(), eraNew, eraOld), t, nil
		}
		if s, other := d.fallback(ctx, t, err); s != nil {
			return s, eraOld, other, nil
		} else if other != nil || ctx.Err() != nil || remote.NeedsSignIn(err) {
			break // another handshake would be refused too, for a reason that says less
		}
	}
	if rpc.IsAnswer(err) {
		known = eraUnknown // the server has changed
	}
	if h, ok := t.(*remote.Transport); ok {
		h.FindEndpoint(life, err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = slowStart{err}
	}
	return nil, known, t, err
}

// slowStart is the failure of a start that has used up its time.
type slowStart struct{ error }

func (e slowStart) Unwrap() error { return e.error }

// fallback tries the older transport to the same server, if that may fit better.
func (d *dialer) fallback(ctx context.Context, t sessions.Transport, err error) (*sessions.Session, sessions.Transport) {
	h, ok := t.(*remote.Transport)
	if !ok {
		return nil, nil
	}
	older, works := h.Fallback(err)
	if older == nil {
		return nil, nil
	}
	d.onTransport(older)
	s, err := d.try(ctx, older, oldVersion, d.limit)
	if err == nil {
		works()
	}
	return s, older
}

// open makes a transport, within the limit of a start.
func (d *dialer) open(ctx context.Context) (sessions.Transport, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	t, err := d.dial(ctx)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = slowStart{err}
		}
		return nil, err
	}
	raw, ok := t.(sessions.Transport)
	if !ok {
		return nil, fmt.Errorf("its transport is a %T, and not one of package upstream: Stdio, HTTP or InProcess", t)
	}
	d.onTransport(raw)
	return raw, nil
}

// try makes a session on t within a limit.
func (d *dialer) try(ctx context.Context, t sessions.Transport, version string, limit time.Duration) (*sessions.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t.Prepare(d.noted, d.memory, d.message)
	role := d.role
	role.Unnamed = func(unanswered bool) { d.unnamed(t, unanswered) }
	t.Play(role)
	options := &mcp.ClientOptions{
		Capabilities:   d.declared.Capabilities(d.role.Roots != nil),
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if !t.Traits().NoListener {
		// These ask for the notifications.
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { d.noted(rpc.News{Method: rpc.ToolsChanged}) }
		options.ResourceListChangedHandler = func(context.Context, *mcp.ResourceListChangedRequest) {
			d.noted(rpc.News{Method: rpc.ResourcesChanged})
		}
		options.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) { d.noted(rpc.News{Method: rpc.PromptsChanged}) }
	}
	sdk, err := mcp.NewClient(d.impl, options).Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Abort()
		if h, ok := t.(*remote.Transport); ok && h.Refusal() != nil {
			err = h.Refusal()
		}
		return nil, err
	}
	o := sessions.Options{SDK: sdk, Transport: t, Client: d.impl, Roots: d.role.Roots, Answers: d.role.Asked}
	if gatewayBehind(sdk) != "" {
		o.Hops = HopsKey
	}
	return sessions.New(o), nil
}
