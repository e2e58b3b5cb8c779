package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// Protocol versions: the newer one has no handshake, the older ones begin with initialize.
const (
	newVersion = "2026-07-28"
	oldVersion = "2025-11-25"
)

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
	limit   time.Duration // of a start, without its wait for a slot
	probe   time.Duration // how long a server may take to answer the request that tells its era
	queue   *startQueue   // for programs
	needed  func() bool   // whether a plan waits for the server
	changed func()        // called when the tool list has changed
	memory  *memory.Share // for messages
	message int           // bytes of one message, at most

	onTransport func(mcp.Transport) // called with every transport before it is tried
}

// An attempt is one try to make a session.
type attempt struct {
	version string
	limit   time.Duration // 0: what is left of the start's time
}

// attempts lists the attempts, in their order.
func (d *dialer) attempts(known era) []attempt {
	older, newer := attempt{oldVersion, 0}, attempt{newVersion, 0}
	switch {
	case d.allowed == OnlyOlder, known == eraOld:
		return []attempt{older}
	case d.allowed == NewerFirst, known == eraNew: // the SDK falls back to the older era by itself
		return []attempt{newer}
	case d.allowed == OlderFirst:
		return []attempt{older, newer}
	}
	return []attempt{{newVersion, d.probe}, older, newer} // the last where it was only slow to start
}

// worthTrying reports whether attempt i can succeed after the one before it has failed.
func (d *dialer) worthTrying(i int, err error) bool {
	// After the older era, only a server that has answered is asked for the newer one: the request may decide which era
	// other clients can use, if a proxy connects them to the same server.
	return i == 1 && d.allowed == AnyProtocol || isAnswer(err)
}

// connect makes a session. A server that ignores unknown requests never answers the one for the newer protocol, and some
// end at it; both get the older handshake on a transport of its own. The caller remembers the era. The transport is
// returned with an error too, because it may explain the error.
func (d *dialer) connect(ctx context.Context, known era) (*session, era, mcp.Transport, error) {
	attempts := d.attempts(known)
	var last mcp.Transport
	var err error
	left := d.limit
	for i := 0; i < len(attempts) && (i == 0 || d.worthTrying(i, err)); i++ {
		var t rawTransport
		if t, err = d.open(ctx, &left); err != nil {
			return nil, known, nil, markSlow(err, left)
		}
		last = t
		d.onTransport(t)
		if t.Traits().OlderOnly {
			attempts = []attempt{{oldVersion, 0}}
			i = 0
		}
		var s *session
		if s, err = d.start(ctx, t, attempts[i], &left); err == nil {
			return s, s.era(), t, nil
		}
		if s, other := d.fallback(ctx, t, err, &left); s != nil {
			return s, eraOld, other, nil
		} else if other != nil || ctx.Err() != nil || left <= 0 || wantsSignIn(err) {
			break // another handshake would be refused too, for a reason that says less
		}
	}
	if isAnswer(err) {
		known = eraUnknown // the server has changed
	}
	err = markSlow(err, left)
	if s, ok := last.(interface {
		FindEndpoint(ctx context.Context, err error)
	}); ok {
		s.FindEndpoint(ctx, err)
	}
	return nil, known, last, err
}

// slowStart is the failure of a start that has used up its time.
type slowStart struct{ error }

func (e slowStart) Unwrap() error { return e.error }

// markSlow marks the failure of a start that has used up its time.
func markSlow(err error, left time.Duration) error {
	if left <= 0 {
		return slowStart{err}
	}
	return err
}

// start waits for a slot, and then makes a session on t within the time that is left.
func (d *dialer) start(ctx context.Context, t rawTransport, a attempt, left *time.Duration) (*session, error) {
	if t.Traits().Program {
		release, err := d.queue.acquire(ctx, d.needed)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	begun := time.Now()
	defer func() { *left -= time.Since(begun) }()
	if a.limit == 0 || a.limit > *left {
		a.limit = *left
	}
	return d.try(ctx, t, a)
}

// era is the protocol that the session speaks.
func (s *session) era() era {
	if s.stateless() {
		return eraNew
	}
	return eraOld
}

// fallback tries another transport to the same server, if the transport knows one that may fit better.
func (d *dialer) fallback(ctx context.Context, t rawTransport, err error, left *time.Duration) (*session, rawTransport) {
	f, ok := t.(interface {
		Fallback(err error) (mcp.Transport, func())
	})
	if !ok {
		return nil, nil
	}
	transport, works := f.Fallback(err)
	other, ok := transport.(rawTransport)
	if !ok {
		return nil, nil
	}
	d.onTransport(other)
	s, err := d.start(ctx, other, attempt{oldVersion, 0}, left)
	if err != nil {
		return nil, other
	}
	works()
	return s, other
}

// wantsSignIn reports whether the server refuses every caller that has not signed in.
func wantsSignIn(err error) bool {
	var refusal interface{ NeedsSignIn() bool }
	return errors.As(err, &refusal) && refusal.NeedsSignIn()
}

// open dials within the time that is left.
func (d *dialer) open(ctx context.Context, left *time.Duration) (rawTransport, error) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, *left)
	defer func() { cancel(); *left -= time.Since(begun) }()
	t, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := t.(rawTransport)
	if !ok {
		return nil, fmt.Errorf("its transport is a %T, and not one of package upstream: Stdio, HTTP or InProcess", t)
	}
	return p, nil
}

// try makes a session on t within the limit of the attempt.
func (d *dialer) try(ctx context.Context, t rawTransport, a attempt) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	t.Notify(d.changed)
	t.LimitMessages(d.memory, d.message)
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // nothing: no roots, sampling or questions to a person
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if !t.Traits().NoListener {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { d.changed() } // asks for the notification
	}
	sdk, err := mcp.NewClient(d.impl, options).Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: a.version})
	if err != nil {
		t.Abort()
		if r, ok := t.(interface{ Refusal() error }); ok && r.Refusal() != nil {
			err = r.Refusal()
		}
		return nil, err
	}
	return newSession(sdk, t, d.impl), nil
}
