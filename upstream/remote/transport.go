package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A Transport is a session over streamable HTTP. Connect returns the SDK's own connection (the SDK would not recognise a
// wrapped one), and Request makes requests of our own beside it.
type Transport struct {
	*client
	sdk *mcp.StreamableClientTransport

	signing  signing
	noted    func(rpc.News)
	onLegacy func() // called when the server turns out to have only the older transport

	found      atomic.Pointer[string]        // the address that FindEndpoint has found
	refusal    atomic.Pointer[error]         // the first that demands a sign-in
	draining   atomic.Pointer[chan struct{}] // closed when the stream of the last answer has ended
	slowDrains atomic.Int32                  // streams in a row that did not end soon

	conn      mcp.Connection // set by Connect
	next      atomic.Int64
	notifying sync.WaitGroup // notifications being sent
	replies   rpc.Replies
	life      context.Context
	end       context.CancelFunc
}

func newTransport(c *client, onLegacy func()) *Transport {
	t := &Transport{client: c, onLegacy: onLegacy}
	listening := c.http
	listening.Transport = &refusalRecorder{t}
	t.sdk = &mcp.StreamableClientTransport{
		Endpoint: c.URL, HTTPClient: &listening, DisableStandaloneSSE: true, MaxEventSize: -1,
	}
	t.next.Store(rpc.FirstID - 1)
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// refusalRecorder sends the SDK's requests and remembers a demand to sign in: the SDK goes on with another handshake,
// whose failure may say less.
type refusalRecorder struct{ t *Transport }

// RoundTrip implements [http.RoundTripper].
func (l *refusalRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.t.client.RoundTrip(req.WithContext(l.t.signing.in(req.Context())))
	if NeedsSignIn(err) {
		l.t.refusal.CompareAndSwap(nil, &err)
	}
	return resp, err
}

// Refusal is the error of a server that demands a sign-in, or nil.
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

// Prepare sets a function that is called with the news that come with answers, and bounds one message to max bytes. Requests
// count their own memory. It is called before Connect.
func (t *Transport) Prepare(noted func(rpc.News), _ *memory.Share, max int) {
	t.noted = noted
	t.client.max.Store(int64(max))
}

// Hold notes that somebody waits for a task, as [rpc.InFlight.Hold].
func (t *Transport) Hold(task *rpc.Request) (release func()) {
	return t.replies.InFlight.Hold(task)
}

// Play sets what we do for the server. It is called before Connect.
func (t *Transport) Play(role rpc.Role) { t.replies.Role = role }

// Traits says that there is no standing stream.
func (t *Transport) Traits() rpc.Traits { return rpc.Traits{NoListener: true} }

// Abort ends the session by force.
func (t *Transport) Abort() {
	t.end()
	if t.conn != nil {
		_ = t.conn.Close()
	}
	t.abort()
}

// FlushCancelled waits, for a moment at most, until the server has been notified of all cancelled requests.
func (t *Transport) FlushCancelled() { t.notifying.Wait() }

// Fallback returns another transport to try, if the handshake failed as with a server that does not know this one, and a
// function to call when the other one works.
func (t *Transport) Fallback(err error) (other *SSETransport, works func()) {
	status, ok := errors.AsType[*statusError](err)
	if !t.Either || !ok {
		return nil, nil
	}
	switch s := status.status; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusProxyAuthRequired, s == http.StatusTooManyRequests:
		return nil, nil
	case s/100 == 4:
		return newSSE(t.client), t.onLegacy
	}
	return nil, nil
}

var _ mcp.Transport = (*Transport)(nil)
