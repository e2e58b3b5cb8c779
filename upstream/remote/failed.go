package remote

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// failed makes the failure of a request without a result.
func (c *call) failed(ctx context.Context, err error) *rpc.Failure {
	f := &rpc.Failure{Err: rpc.NormalizeClosed(err), Sent: c.sent.Load()}
	var status *statusError
	switch {
	case ctx.Err() != nil:
		f.Err = ctx.Err()
		if f.Sent && c.r.Version < statelessVersion {
			c.t.notify(rpc.Cancelled(c.id), c.r.Version)
		}
	case errors.As(err, &status):
		c.classifyStatus(ctx, f, status)
	case notReached(err):
		f.Sent = false
		f.Lost = isDial(err) || errors.Is(err, errOtherLogin)
	default:
		_, full := errors.AsType[*memory.Full](err)
		_, answered := errors.AsType[*jsonrpc.Error](err)
		f.Unavailable = !full && !answered && !errors.Is(err, rpc.ErrTooLarge) && !errors.Is(err, rpc.ErrBroken)
	}
	return f
}

// notReached reports whether a request was never sent to the server. One answered with a redirect was: 303 means that it
// is done.
func notReached(err error) bool {
	_, signIn := errors.AsType[*signInError](err)
	return signIn || isDial(err)
}

// isDial reports whether there was no connection to send a request on.
func isDial(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// classifyStatus handles an answer other than 2xx. In a session, 404 means that the session has ended, whatever the body says,
// and 400 may mean it; but tools cause these too. Only if a ping is refused as well has the server certainly lost the
// session, and no tool has seen the request.
func (c *call) classifyStatus(ctx context.Context, f *rpc.Failure, status *statusError) {
	f.RetryAfter = status.wait
	f.Unavailable = status.status >= 500 && status.rpc == nil
	if f.Sent = c.accepted || !status.neverRan(); !f.Sent {
		return
	}
	if c.t.conn.SessionID() != "" && c.r.Version < statelessVersion && status.sessionMaybeLost() {
		sessionLost := c.t.sessionLost(ctx, c.r.Version)
		if sessionLost || status.status == http.StatusNotFound {
			f.Sent, f.Lost = c.accepted || !sessionLost, true
			status.sessionLost, status.known = sessionLost, !sessionLost
			return
		}
	}
	status.known = status.status/100 == 4 && status.status != http.StatusForbidden
	if status.rpc != nil && status.known {
		f.Err = status.rpc
	}
}

// sessionLost reports whether the server has lost the session: it refuses a ping, too.
func (t *Transport) sessionLost(ctx context.Context, version string) bool {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, rawKey{}, true), notifyWait)
	defer cancel()
	c := &call{t: t, r: &rpc.Request{Method: "ping", Version: version}, id: t.next.Add(1)}
	resp, err := c.post(ctx)
	if err == nil {
		_ = resp.Body.Close()
	}
	status, ok := errors.AsType[*statusError](err)
	if !ok || !status.sessionMaybeLost() {
		return false
	}
	wire, answered := errors.AsType[*jsonrpc.Error](status.rpc)
	return !answered || wire.Code != jsonrpc.CodeMethodNotFound
}
