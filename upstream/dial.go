package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
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

// dialer makes links to one server.
type dialer struct {
	dial    func(context.Context) (mcp.Transport, error)
	impl    *mcp.Implementation
	probe   time.Duration // how long a server may take to answer the question for its era
	changed func()        // told that the tool list has changed

	trying func(mcp.Transport) // told of every transport before it is tried
}

// An attempt is one try at a session.
type attempt struct {
	version string
	limit   time.Duration // 0: what ctx leaves
}

// connect makes a session. The question for the newer protocol hangs with servers that ignore what they do not know,
// and ends some others; both get the older handshake on a transport of their own. The era found is remembered by the
// caller. The transport comes back with an error too, because it may know more.
func (d *dialer) connect(ctx context.Context, known era) (*link, era, mcp.Transport, error) {
	attempts := []attempt{{newVersion, d.probe}, {oldVersion, 0}}
	switch known {
	case eraOld:
		attempts = []attempt{{oldVersion, 0}}
	case eraNew:
		attempts = []attempt{{newVersion, 0}}
	}
	var last mcp.Transport
	var err error
	for i := 0; i < len(attempts); i++ {
		var t peer
		if t, err = d.open(ctx); err != nil {
			return nil, known, nil, err
		}
		last = t
		d.trying(t)
		if p, ok := t.(interface{ Plain() bool }); ok && p.Plain() {
			attempts = []attempt{{oldVersion, 0}}
			i = 0
		}
		var l *link
		if l, err = d.try(ctx, t, attempts[i]); err == nil {
			return l, l.era(), t, nil
		}
		if l, other := d.fallback(ctx, t, err); l != nil {
			return l, eraOld, other, nil
		} else if other != nil || ctx.Err() != nil || wantsSignIn(err) {
			break // another handshake is refused too, and for a reason that tells less
		}
		if known == eraUnknown && i == 1 && refused(err) {
			attempts = append(attempts, attempt{newVersion, 0}) // it was only slow to start
		}
	}
	if refused(err) {
		known = eraUnknown // it has changed
	}
	if s, ok := last.(interface {
		Seek(ctx context.Context, err error)
	}); ok {
		s.Seek(ctx, err)
	}
	return nil, known, last, err
}

// era is which protocol the session speaks.
func (l *link) era() era {
	if l.stateless() {
		return eraNew
	}
	return eraOld
}

// fallback tries another transport to the same server, where there is one that may fit better.
func (d *dialer) fallback(ctx context.Context, t peer, err error) (*link, peer) {
	f, ok := t.(interface {
		Fallback(err error) (mcp.Transport, func())
	})
	if !ok {
		return nil, nil
	}
	transport, works := f.Fallback(err)
	other, ok := transport.(peer)
	if !ok {
		return nil, nil
	}
	d.trying(other)
	l, err := d.try(ctx, other, attempt{oldVersion, 0})
	if err != nil {
		return nil, other
	}
	works()
	return l, other
}

// refused reports whether the server has answered, with a no.
func refused(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code != codeRejected
}

// wantsSignIn reports whether the server asks who is calling, whatever the call is.
func wantsSignIn(err error) bool {
	var refusal interface{ NoSignIn() bool }
	return errors.As(err, &refusal) && refusal.NoSignIn()
}

// open dials.
func (d *dialer) open(ctx context.Context) (peer, error) {
	t, err := d.dial(ctx)
	if sdk, ok := t.(*mcp.StreamableClientTransport); ok && err == nil {
		t, err = remote.Adopt(sdk)
	}
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, errors.New("there is no transport")
	}
	if p, ok := t.(peer); ok {
		return p, nil
	}
	return rpc.Foreign(t), nil
}

// try makes a session on t, within the limit of the attempt.
func (d *dialer) try(ctx context.Context, t peer, a attempt) (*link, error) {
	if a.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.limit)
		defer cancel()
	}
	t.Notify(d.changed)
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // nothing: no roots, sampling or questions to a person
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if s, ok := t.(interface{ Silent() bool }); !ok || !s.Silent() {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { d.changed() } // asks to be told
	}
	session, err := mcp.NewClient(d.impl, options).Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: a.version})
	if err != nil {
		t.HangUp()
		if r, ok := t.(interface{ Refusal() error }); ok && r.Refusal() != nil {
			err = r.Refusal()
		}
		return nil, err
	}
	return newLink(session, t, d.impl), nil
}
