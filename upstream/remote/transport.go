package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A Transport is a session over streamable HTTP. It hands out the SDK's connection as it is (wrapped, the SDK would not
// recognise it) and makes requests of our own beside it.
type Transport struct {
	origin
	sdk    *mcp.StreamableClientTransport
	client *http.Client

	changed  func()
	fallback func() mcp.Transport // nil: there is no other transport to try
	legacy   func()               // told that the other one works

	found    atomic.Pointer[string]        // the address at which Seek has found a server
	refusal  atomic.Pointer[error]         // the first that says that the server wants a sign-in
	draining atomic.Pointer[chan struct{}] // closed when the stream of the last answer has ended
	late     atomic.Int32                  // streams in a row that did not end soon

	conn    mcp.Connection // set by Connect
	next    atomic.Int64
	side    sync.WaitGroup // notifications on their way
	replies rpc.Replies
	life    context.Context
	end     context.CancelFunc
}

// origin is what all transports to an endpoint know.
type origin struct {
	trip  *trip
	where string
}

// Scrub cuts out of a text what may be secret of the endpoint.
func (o *origin) Scrub(text string) string { return o.trip.secrets.scrub(text) }

// hangUp closes the connections that are idle, if they are ours, and those that become so within a moment.
func (o *origin) hangUp() {
	if base, ok := o.trip.base.(interface{ CloseIdleConnections() }); ok && !o.trip.shared {
		base.CloseIdleConnections()
		time.AfterFunc(2*drainWait, base.CloseIdleConnections)
	}
}

func newTransport(e Endpoint, client *http.Client, trip *trip) *Transport {
	t := &Transport{origin: origin{trip, e.Where}, client: client}
	listening := *client
	listening.Transport = &listener{next: client.Transport, t: t}
	t.sdk = &mcp.StreamableClientTransport{
		Endpoint: e.URL, HTTPClient: &listening, DisableStandaloneSSE: true, MaxEventSize: -1,
	}
	t.next.Store(rpc.FirstID - 1)
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// listener carries the SDK's requests and remembers that one of them was not let in: the SDK goes on with another
// handshake, whose failure may say less.
type listener struct {
	next http.RoundTripper
	t    *Transport
}

// RoundTrip implements [http.RoundTripper].
func (l *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	var refusal interface{ NoSignIn() bool }
	if errors.As(err, &refusal) && refusal.NoSignIn() {
		l.t.refusal.CompareAndSwap(nil, &err)
	}
	return resp, err
}

// Refusal is the error of a server that wants to know who is calling, if this one has said so.
func (t *Transport) Refusal() error {
	if refusal := t.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// Connect implements [mcp.Transport].
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.sdk.Connect(ctx)
	t.conn = c
	return c, err
}

// Notify has changed called when an answer brings word that the tool list has changed.
func (t *Transport) Notify(changed func()) { t.changed = changed }

// Silent reports that the server cannot speak unasked, so that a tool list is refreshed by time.
func (t *Transport) Silent() bool { return true }

// HangUp ends the session by force.
func (t *Transport) HangUp() {
	t.end()
	if t.conn != nil {
		_ = t.conn.Close()
	}
	t.hangUp()
}

// Settle waits, at most for a moment, until the server has been told of all requests that were given up.
func (t *Transport) Settle() { t.side.Wait() }

// Fallback returns another transport to try where the handshake failed in a way that says that the server does not
// know this one, and what to call when that one works.
func (t *Transport) Fallback(err error) (other mcp.Transport, works func()) {
	var status *statusError
	if t.fallback == nil || !errors.As(err, &status) {
		return nil, nil
	}
	switch s := status.status; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusProxyAuthRequired, s == http.StatusTooManyRequests:
		return nil, nil
	case s/100 == 4:
		return t.fallback(), t.legacy
	}
	return nil, nil
}

var _ mcp.Transport = (*Transport)(nil)
