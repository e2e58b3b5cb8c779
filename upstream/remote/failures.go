package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// statusHints are the hints for an answer, by its status.
var statusHints = map[int]string{
	http.StatusUnauthorized:          `the server wants sign-in: set "headers": {"Authorization": "Bearer ${TOKEN}"} for it`,
	http.StatusForbidden:             "check the token's rights; a server on this machine may accept one host name only, localhost or 127.0.0.1",
	http.StatusNotFound:              "check the path of url: most servers answer at /mcp",
	http.StatusMethodNotAllowed:      `check the path of url, or set "type": "sse" if this is a server of the older SSE transport`,
	http.StatusBadRequest:            `check the path of url, or set "type": "sse" if this is a server of the older SSE transport`,
	http.StatusTooManyRequests:       "wait, or lower concurrency for this server",
	http.StatusRequestEntityTooLarge: "pass less in one call: the server does not take so much",
	http.StatusProxyAuthRequired:     "check the proxy's user and password",
}

// Explain explains a failure. The SDK reports an answer without a result like a lost connection.
func (t *Transport) Explain(err error) (msg, hint string) {
	if errors.Unwrap(err) == io.EOF && strings.HasPrefix(err.Error(), `calling "`) {
		err = fmt.Errorf("%w: it has neither a result nor an error", rpc.ErrBroken)
	}
	msg, hint = t.client.Explain(err)
	if found := t.found.Load(); found != nil {
		hint = "there is an MCP server at " + *found + ": write that as url" + at(t.Where)
	}
	return msg, hint
}

// Explain explains a failure of HTTP. Both texts may be empty.
func (t *client) Explain(err error) (msg, hint string) {
	host := t.target.Host
	var status *statusError
	var dns *net.DNSError
	var redirect *redirectError
	var signIn *signInError
	switch text := err.Error(); {
	case errors.As(err, &status) && status.signIn != "":
		return status.signIn, "no tool signs in: a person runs the command" + at(t.Where)
	case errors.As(err, &status):
		hint = statusHints[status.status]
		if _, ok := t.auth.(*person); ok && status.status == http.StatusUnauthorized {
			hint = "the server wants sign-in: " + loginCommand(t.Name) + `, or set "headers": {"Authorization": "Bearer ${TOKEN}"} for the server`
		}
		if status.sessionLost {
			hint = "the server has lost its session, and the next call begins another; where several processes share the address, they need session affinity"
		}
		if status.known {
			hint = "the server answers, but not this call: see its logs"
		}
		if hint == "" && status.status >= 500 {
			hint = "the server or a proxy in front of it has a problem: see its logs, or try again later"
		}
		if hint == "" {
			hint = "see the server's logs"
		}
		return status.Error(), hint + at(t.Where)
	case errors.As(err, &redirect):
		return redirect.Error(), "if that is where the server is now, set url to an address there" + at(t.Where)
	case errors.As(err, &signIn):
		return t.explainSignIn(signIn)
	case errors.Is(err, rpc.ErrBroken):
		return host + " answers, but not with MCP: " + texts.Cut(text, 300), "check the path of url: most servers answer at /mcp" + at(t.Where)
	case errors.As(err, &dns):
		return fmt.Sprintf("there is no host named %q", dns.Name), "check the host of url" + at(t.Where)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens on " + host, "start the server, or check the host and port of url" + at(t.Where)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return host + " speaks http, not https", "write url with http://" + at(t.Where)
	case strings.Contains(text, "malformed HTTP response"):
		return host + " does not answer with HTTP", "check the port, or write url with https://" + at(t.Where)
	case strings.Contains(text, "x509: "):
		_, cert, _ := strings.Cut(text, "x509: ")
		return "the certificate of " + host + " is not accepted: " + texts.Cut(cert, 300), "check the host name and the certificate" + at(t.Where)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "terminated without response"), errors.Is(err, syscall.EPIPE):
		return host + " closed the connection before it answered", "see the server's logs: it may have crashed or been restarted"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer from " + origin(t.target), "see whether the server runs and the address is right" + at(t.Where)
	}
	return "", "see whether the server runs and the address is right" + at(t.Where)
}

// explainSignIn explains a sign-in that has failed without a refusal of the request.
func (t *client) explainSignIn(err error) (msg, hint string) {
	text := texts.Cut(rpc.WithoutRequest(t.Hide(err.Error())), 500)
	if _, ok := t.auth.(*person); ok {
		return text, "try again later, or " + loginCommand(t.Name) + at(t.Where)
	}
	return "signing in failed: " + text, "check oauth: issuer, clientId and clientSecret" + at(t.Where)
}

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

// classifyStatus handles an answer other than 2xx. In a session, 404 means that the session has ended, with any body,
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

const (
	defaultPath = "/mcp" // of most servers
	findWait    = 2 * time.Second
	findBytes   = 4 << 10 // of an answer that are read
)

// findPing is a request that does nothing, and that every MCP server answers with JSON-RPC.
const findPing = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// FindEndpoint looks for a server at the usual path of the same host, after a handshake that failed because nothing is
// at the address; [Transport.Explain] then names it. It makes one request without a token,
// and none where the server has given one.
func (t *Transport) FindEndpoint(ctx context.Context, err error) {
	status, ok := errors.AsType[*statusError](err)
	if !ok || status.status != http.StatusNotFound && status.status != http.StatusMethodNotAllowed {
		return
	}
	target := *t.target
	if strings.TrimSuffix(target.Path, "/") == defaultPath || status.rpc != nil || t.signs() {
		return
	}
	target.Path, target.RawPath, target.RawQuery, target.Fragment = defaultPath, "", "", ""
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, rawKey{}, true), findWait)
	defer cancel()
	if t.serves(ctx, &target) {
		found := origin(&target) + defaultPath
		t.found.Store(&found)
	}
}

// serves reports whether an address answers with JSON-RPC, or demands a sign-in.
func (t *Transport) serves(ctx context.Context, address *url.URL) bool {
	req, err := http.NewRequestWithContext((&signing{plain: true}).in(ctx), http.MethodPost, address.String(), strings.NewReader(findPing))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := t.http.Do(req)
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.rpc != nil || NeedsSignIn(err)
	} else if err != nil {
		return false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, findBytes)) // as much as arrives in time
	if _, data, ok := bytes.Cut(text, []byte("data:")); ok && mediaOf(resp) == "text/event-stream" {
		text = data
	}
	answer, _ := rpc.Scan(text) // it need not have arrived whole
	return answer.Answers()
}
