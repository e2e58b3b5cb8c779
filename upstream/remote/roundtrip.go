package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxErrorBody = 2 << 10  // of an error's body, for the message
	maxRPCError  = 64 << 10 // of an error's body that may be a JSON-RPC message
	maxRedirects = 5
	deleteWait   = 2 * time.Second // a server may delay the answer until its tools are done
)

// A statusError is an answer other than 2xx.
type statusError struct {
	status      int
	body        string // its text
	at          string
	rpc         error // the JSON-RPC error in it, or nil
	wait        time.Duration
	known       bool   // the session exists: neither the address nor the token is wrong
	sessionLost bool   // the session has ended
	signIn      string // the command that signs in, if that may help

	server string   // that a person may sign in to; empty: none
	scopes []string // that the person has to grant, too
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%d %s at %s", e.status, http.StatusText(e.status), e.at)
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// refusals are the answers that say that no tool has seen the request: the server has looked only at its envelope. 403
// is not one: a tool may pass on the 403 of another service.
var refusals = map[int]bool{
	http.StatusUnauthorized: true, http.StatusMethodNotAllowed: true,
	http.StatusNotAcceptable: true, http.StatusProxyAuthRequired: true, http.StatusLengthRequired: true,
	http.StatusRequestEntityTooLarge: true, http.StatusUnsupportedMediaType: true, http.StatusMisdirectedRequest: true,
	http.StatusUpgradeRequired: true, http.StatusTooManyRequests: true, http.StatusRequestHeaderFieldsTooLarge: true,
}

// neverRan reports whether no tool has seen the request: one that lacks scopes is refused before. A 503 with a time to come
// back is a refusal; without one, a proxy may have lost its server.
func (e *statusError) neverRan() bool {
	return refusals[e.status] || e.signIn != "" || e.status == http.StatusServiceUnavailable && e.wait > 0
}

// sessionMaybeLost reports whether the server may answer so because it has lost the session.
func (e *statusError) sessionMaybeLost() bool {
	return e.status == http.StatusNotFound || e.status == http.StatusBadRequest
}

// A redirectError is a redirect that is not followed.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "the server redirects to " + e.to + "; requests with arguments and credentials do not follow there"
}

// A client sends our requests to an endpoint and those of the SDK's client: with our headers, only to our host, and with
// bounded answers. It keeps the text of errors. All sessions with the endpoint share it.
type client struct {
	Endpoint
	http    http.Client
	base    *http.Transport
	target  *url.URL
	auth    signer       // nil: none
	max     atomic.Int64 // bytes of one message, set by Prepare; 0: not set
	secrets *addressHider
}

// newClient makes a client. The files of TLS are read when they are first needed, and again after an error.
func newClient(e Endpoint) (*client, error) {
	target, err := parse(e.URL)
	if err != nil {
		return nil, &rpc.DialError{Hint: "give the server's address as url" + at(e.Where), Err: err}
	}
	own, err := e.TLS.config()
	var others *tls.Config
	if err == nil {
		others, err = e.TLS.elsewhere()
	}
	if err != nil {
		return nil, &rpc.DialError{Hint: "check the files of tls" + at(e.Where), Err: err}
	}
	c := &client{Endpoint: e, base: e.baseTransport(own), target: target, secrets: newAddressHider(target, e.Headers)}
	if c.auth, err = c.signer(own, others); err != nil {
		return nil, &rpc.DialError{Hint: "check oauth" + at(e.Where), Err: err}
	}
	c.http = http.Client{Transport: c, CheckRedirect: c.redirect}
	return c, nil
}

// messageMax bounds one message, in bytes.
func (t *client) messageMax() int64 { return cmp.Or(t.max.Load(), rpc.DefaultMax) }

// Hide removes the secrets of the endpoint from a text.
func (t *client) Hide(text string) string {
	if p, ok := t.auth.(*person); ok {
		text = p.hide(text)
	}
	return t.secrets.hide(text)
}

// abort closes idle connections, and those that become idle within a moment.
func (t *client) abort() {
	t.base.CloseIdleConnections()
	time.AfterFunc(2*drainWait, t.base.CloseIdleConnections)
}

// redirect follows redirects only within the server's host, and from http to https there. A request that would lose its
// body is not followed either.
func (t *client) redirect(req *http.Request, via []*http.Request) error {
	same := req.URL.Host == t.target.Host && req.URL.Scheme == t.target.Scheme ||
		req.URL.Hostname() == t.target.Hostname() && t.target.Scheme == "http" && req.URL.Scheme == "https"
	if !same || req.Method != via[0].Method {
		return &redirectError{origin(req.URL)}
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper]. An HTTP error becomes a Go error with its text, unless the SDK must see the
// answer.
func (t *client) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "":
		return resp, nil
	case resp.StatusCode/100 != 2:
		return t.failure(req, resp)
	}
	if req.Context().Value(rawKey{}) == nil {
		limit := min(t.messageMax(), rpc.MaxHandshake) // the SDK makes the handshake; calls and lists are requests of our own
		resp.Body = &cappedBody{ReadCloser: resp.Body, left: limit, limit: limit}
	}
	return resp, nil
}

// rawKey marks the context of a request of our own, whose reader bounds the answer itself.
type rawKey struct{}

// send sends a request, and signs in first if the server demands it.
func (t *client) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if req.Method == http.MethodDelete {
		short, cancel := context.WithTimeout(ctx, deleteWait)
		defer cancel()
		ctx = short
	}
	out := req.Clone(ctx)
	out.Close = req.Method == http.MethodDelete // the session is over
	out.Header.Del("Referer")                   // the client adds it to redirects, with the secrets of the address
	for name, values := range t.Headers {
		out.Header[name] = values
	}
	token := ""
	if t.auth != nil {
		var err error
		if token, err = t.auth.sign(out); err != nil {
			return nil, &signInError{err}
		}
	}
	resp, err := t.base.RoundTrip(out)
	if err == nil && t.auth != nil && repeatable(req) && refusesToken(resp) {
		resp, err = t.again(out, token, resp)
	}
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodDelete {
		_ = resp.Body.Close() // nobody reads it
		resp.Body = http.NoBody
	}
	return resp, nil
}

func refusesToken(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

// repeatable reports whether a request can be sent once more.
func repeatable(req *http.Request) bool { return req.GetBody != nil || req.Method == http.MethodGet }

// again signs in and sends a refused request once more.
func (t *client) again(req *http.Request, token string, resp *http.Response) (*http.Response, error) {
	if retry, err := t.auth.renew(req.Context(), token, req, resp); err != nil {
		return nil, &signInError{err}
	} else if !retry {
		return resp, nil
	}
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	if _, err := t.auth.sign(out); err != nil {
		return nil, &signInError{err}
	}
	return t.base.RoundTrip(out)
}

// A signInError is a failed sign-in: the request itself was not sent.
type signInError struct{ err error }

func (e *signInError) Error() string { return e.err.Error() }
func (e *signInError) Unwrap() error { return e.err }

// NeedsSignIn reports whether an error is the refusal of a caller who has not signed in, by the server or a proxy.
func NeedsSignIn(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.signIn != "" || status.status == http.StatusUnauthorized || status.status == http.StatusProxyAuthRequired
	}
	_, failed := errors.AsType[*signInError](err)
	return failed
}

// SignedOut returns the server that has refused a caller, where a person may sign in to it, and the scopes that the person has to
// grant for the request; nil: not named. It reports false for any other error.
func SignedOut(err error) (server string, scopes []string, ok bool) {
	status, _ := errors.AsType[*statusError](err)
	if status == nil || status.server == "" {
		return "", nil, false
	}
	return status.server, status.scopes, true
}

// failure turns an answer other than 2xx into an error with its text, or passes it on if the SDK must see it.
func (t *client) failure(req *http.Request, resp *http.Response) (*http.Response, error) {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRPCError)) // as much as arrives
	_ = resp.Body.Close()
	e := &statusError{
		status: resp.StatusCode, at: origin(req.URL), body: t.Hide(errorText(raw)), wait: retryAfter(resp.Header.Get("Retry-After")),
	}
	if resp.StatusCode == http.StatusUnauthorized && e.body == "" {
		e.body = t.Hide(texts.Cut(resp.Header.Get("WWW-Authenticate"), 200))
	}
	if p, ok := t.auth.(*person); ok {
		if e.signIn, e.scopes = p.command(resp); e.signIn != "" || resp.StatusCode == http.StatusUnauthorized {
			e.server = t.Name
		}
	}
	msg, ok := rpc.Scan(raw)
	if ok && msg.Err != nil {
		_, e.rpc = msg.Answer()
	}
	// The SDK negotiates the version by such errors, and reads 405 as the answer of a server without a stream.
	missing := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest
	if req.Context().Value(rawKey{}) == nil && (missing && e.rpc != nil || req.Method != http.MethodPost) {
		resp.Body = io.NopCloser(bytes.NewReader(raw))
		resp.ContentLength = int64(len(raw))
		return resp, nil
	}
	return nil, e
}

// maxRetryAfter bounds the wait that a server may ask for.
const maxRetryAfter = time.Hour

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string) time.Duration {
	text = strings.TrimSpace(text)
	seconds, err := strconv.ParseFloat(text, 64)
	if (err == nil || errors.Is(err, strconv.ErrRange)) && strings.Trim(text, "0123456789.") == "" {
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	when, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(time.Second, time.Until(when).Round(time.Second)), maxRetryAfter)
}

// errorText finds the message in an error's body: that of JSON, or the text.
func errorText(raw []byte) string {
	if words := rpc.ErrorText(raw); words != "" {
		return texts.Cut(words, maxErrorBody)
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a web page
	}
	return texts.Cut(strings.Join(strings.Fields(text), " "), maxErrorBody)
}

// cappedBody bounds the answer to a request of the SDK's.
type cappedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *cappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &rpc.TooLarge{Max: b.limit}
	}
	return n, err
}

// mediaOf is the media type of an answer.
func mediaOf(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}

// Wait is how long the server asks to wait before another try; 0: it does not say.
func (e *statusError) Wait() time.Duration { return e.wait }

// Shorter words of an address or a header are not hidden: half of all messages contain them.
const (
	minSecret  = 4 // of the query, the user and a header
	minSegment = 8 // of the path: most are names such as mcp, and some are tokens
)

// anyAddress matches an address within a text.
var anyAddress = lazy.Regexp(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>\\]+`)

// An addressHider hides what may be secret of one endpoint: all of its address but scheme and host, and the values of
// its headers. Many servers get their token in the path or the query, and some repeat it in their errors.
type addressHider struct {
	host  string
	words *rpc.Hider
}

func newAddressHider(target *url.URL, headers http.Header) *addressHider {
	var s secretWords
	s.add(minSegment, target.Path, target.EscapedPath())
	s.add(minSegment, strings.Split(target.Path, "/")...)
	s.add(minSegment, strings.Split(target.EscapedPath(), "/")...)
	s.add(minSecret, target.RawQuery, target.Fragment)
	for _, pair := range strings.Split(target.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		plain, _ := url.QueryUnescape(value)
		s.add(minSecret, value, plain)
	}
	if target.User != nil {
		password, _ := target.User.Password()
		s.add(minSecret, target.User.Username(), password, target.User.String())
	}
	for _, values := range headers {
		s.add(minSecret, values...)
		for _, value := range values {
			s.add(minSegment, strings.Fields(value)...) // the token after Bearer
		}
	}
	return &addressHider{host: target.Host, words: rpc.NewHider(s)}
}

type secretWords []string

func (s *secretWords) add(least int, words ...string) {
	for _, word := range words {
		if len(word) >= least {
			*s = append(*s, word)
		}
	}
}

// hide returns a text without secrets. Addresses of other hosts stay: a server may name a page to sign in at.
func (s *addressHider) hide(text string) string {
	return rpc.Bounded(text, s.bounded)
}

func (s *addressHider) bounded(text string) string {
	return s.words.Hide(anyAddress().ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ":;,.)]")
		u, err := url.Parse(address)
		switch {
		case err != nil:
			return rpc.Hidden
		case u.Host == s.host || u.User != nil:
			return origin(u) + found[len(address):]
		}
		return found
	}))
}

// origin is the part of an address that messages show.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
