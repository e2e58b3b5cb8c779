package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Protocol versions: the newer one has no handshake, the older ones begin with initialize.
const (
	newVersion = "2026-07-28"
	oldVersion = "2025-11-25"
)

// closeGrace is how long a session may take to end politely, and after that to end at all.
const (
	closeGrace = time.Second
	closeLimit = 10 * time.Second

	settleStep  = 20 * time.Millisecond
	settleSteps = 10
)

// An era is which of the two protocols a server speaks, as far as it is known.
type era int

const (
	eraUnknown era = iota
	eraOld
	eraNew
)

// A link is one session with a server.
type link struct {
	session   *mcp.ClientSession
	transport mcp.Transport
	started   time.Time
	calls     atomic.Int32  // in flight
	ended     chan struct{} // closed when the session is over
	err       error         // why it ended, once ended is closed
}

// dialer makes links to one server.
type dialer struct {
	dial    func(context.Context) (mcp.Transport, error)
	impl    *mcp.Implementation
	probe   time.Duration // how long a server may take to answer the question for its era
	changed func()        // told that the tool list has changed
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
	var errs []error
	for i := 0; i < len(attempts); i++ {
		t, err := d.open(ctx)
		if err != nil {
			return nil, known, nil, err
		}
		last = t
		if p, ok := inner(t).(interface{ plain() bool }); ok && p.plain() {
			attempts = []attempt{{oldVersion, 0}}
			i = 0
		}
		l, err := d.try(ctx, t, attempts[i])
		if err == nil {
			found := eraOld
			if l.session.InitializeResult().ProtocolVersion >= newVersion {
				found = eraNew
			}
			return l, found, t, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		if known == eraUnknown && i == 1 && refused(err) {
			attempts = append(attempts, attempt{newVersion, 0}) // it was only slow to start
		}
	}
	err := errs[len(errs)-1]
	if refused(err) {
		known = eraUnknown // it has changed
	}
	return nil, known, last, err
}

// refused reports whether the server has answered, with a no.
func refused(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code != codeRejected
}

// open dials, and taps what comes back.
func (d *dialer) open(ctx context.Context) (mcp.Transport, error) {
	t, err := d.dial(ctx)
	switch t := t.(type) {
	case *tapTransport, *stdioTransport, *httpTransport:
		return t, err
	case *mcp.StreamableClientTransport:
		return tapStreamable(t)
	case nil:
		if err == nil {
			err = errors.New("there is no transport")
		}
		return nil, err
	}
	return &tapTransport{Transport: t}, err
}

// inner is what is behind the tap.
func inner(t mcp.Transport) mcp.Transport {
	if h, ok := t.(*httpTransport); ok {
		t = h.Transport
	}
	if tap, ok := t.(*tapTransport); ok {
		return tap.Transport
	}
	return t
}

// try makes a session on t, within the limit of the attempt.
func (d *dialer) try(ctx context.Context, t mcp.Transport, a attempt) (*link, error) {
	if a.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.limit)
		defer cancel()
	}
	options := &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // nothing: no roots, sampling or questions to a person
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
	if h, ok := t.(interface{ isHTTP() bool }); !ok || !h.isHTTP() {
		options.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { d.changed() }
	}
	session, err := mcp.NewClient(d.impl, options).Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: a.version})
	if err != nil {
		hangUp(t)
		return nil, err
	}
	return &link{session: session, transport: t, started: time.Now(), ended: make(chan struct{})}, nil
}

// hangUp ends a connection by force.
func hangUp(t mcp.Transport) {
	if h, ok := t.(interface{ hangUp() }); ok {
		h.hangUp()
	}
}

// watch waits for the end of the session.
func (l *link) watch() {
	l.err = l.session.Wait()
	hangUp(l.transport)
	close(l.ended)
}

func (l *link) dead() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// close ends the session, politely first. The caller has cancelled the calls in flight.
func (l *link) close() {
	l.settle()
	done := make(chan struct{})
	go func() {
		_ = l.session.Close()
		close(done)
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		hangUp(l.transport)
	}
	timer.Reset(closeLimit)
	select {
	case <-l.ended:
	case <-timer.C: // a transport that is not ours, or a built-in tool that ignores its context
	}
}

// settle waits a moment for cancelled calls to return and for the SDK, which does that behind their return, to tell
// the server of it: some servers do not stop a tool just because its session ends.
func (l *link) settle() {
	if l.calls.Load() == 0 {
		return
	}
	tick := time.NewTicker(settleStep)
	defer tick.Stop()
	for range settleSteps {
		idle := l.calls.Load() == 0
		select {
		case <-tick.C:
		case <-l.ended:
			return
		}
		if idle {
			return
		}
	}
}

// A callError is a call without a result.
type callError struct {
	err   error
	sent  bool // the request may have reached the tool
	lost  bool // the session is over or unknown to the server
	large bool // the result was over the limit
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// request runs one request of the session and returns its raw result.
func (l *link) request(ctx context.Context, do func(context.Context) (any, error)) (json.RawMessage, *callError) {
	ctx, capt := withCapture(ctx)
	decoded, err := do(ctx)
	if capt.release != nil {
		capt.release()
	}
	raw, sent, captErr := capt.state()
	if raw != nil && ctx.Err() == nil {
		return raw, nil // also when the SDK could not decode what it saw
	}
	if err == nil {
		raw, err = json.Marshal(decoded) // a form of answer that the tap does not know
		if err == nil {
			return raw, nil
		}
	}
	if captErr != nil {
		err = captErr
	}
	var status *statusError
	gone := errors.As(err, &status) && status.gone
	return nil, &callError{
		err: err, sent: sent, large: errors.Is(err, errTooLarge),
		lost: gone || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing) || l.dead(),
	}
}

// call calls a tool.
func (l *link) call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, *callError) {
	l.calls.Add(1)
	defer l.calls.Add(-1)
	return l.request(ctx, func(ctx context.Context) (any, error) {
		return l.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	})
}

// list fetches one page of the tool list.
func (l *link) list(ctx context.Context, cursor string) (json.RawMessage, error) {
	raw, err := l.request(ctx, func(ctx context.Context) (any, error) {
		return l.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tool list: %w", err)
	}
	return raw, nil
}
