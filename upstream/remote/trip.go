package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxErrorBody = 2 << 10  // of an error's body kept for the message
	maxRPCError  = 64 << 10 // of an error's body that may be a JSON-RPC message
	maxRedirects = 5
	deleteWait   = 2 * time.Second // a server may hold the answer back until its tools are done
)

// A statusError is an answer other than 2xx.
type statusError struct {
	status int
	body   string // the words in it
	at     string
	rpc    error  // the JSON-RPC error in it, or nil
	id     string // of that error
	wait   time.Duration
	known  bool // the session is there: it is neither the address nor the token that is wrong
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%d %s at %s", e.status, http.StatusText(e.status), e.at)
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// refusals are the answers with which a request has not come to a tool: who gives them has looked at the envelope only.
// 403 is none of them: it may be what a tool was told by something behind it.
var refusals = map[int]bool{
	http.StatusUnauthorized: true, http.StatusMethodNotAllowed: true,
	http.StatusNotAcceptable: true, http.StatusProxyAuthRequired: true, http.StatusLengthRequired: true,
	http.StatusRequestEntityTooLarge: true, http.StatusUnsupportedMediaType: true, http.StatusMisdirectedRequest: true,
	http.StatusUpgradeRequired: true, http.StatusTooManyRequests: true, http.StatusRequestHeaderFieldsTooLarge: true,
}

// unseen reports whether no tool has seen the request. A 503 that names a time to come back is a refusal; without one
// it may be a proxy that lost the server behind it.
func (e *statusError) unseen() bool {
	return refusals[e.status] || e.status == http.StatusServiceUnavailable && e.wait > 0
}

// answers reports whether the answer is one to the request of an id, and not only to its headers.
func (e *statusError) answers(id int64) bool {
	return e.rpc != nil && e.id == strconv.FormatInt(id, 10)
}

// A redirectError is a redirect that is not followed.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "the server redirects to " + e.to + ", where requests with their arguments and credentials do not follow"
}

// A trip sends requests, ours and those of the SDK's client: with our headers, only to our host, with the words of
// errors kept and a cap on what comes back.
type trip struct {
	base    http.RoundTripper
	shared  bool // base is not ours alone
	target  *url.URL
	headers http.Header
	auth    *signer // nil: none
	max     int64
	secrets *scrubber
}

func newTrip(base http.RoundTripper, target *url.URL, headers http.Header, limit int64) *trip {
	return &trip{base: base, target: target, headers: headers, max: limit, secrets: newScrubber(target, headers)}
}

// redirect follows within the server's own host, and from http to https there, and nowhere else. A request that
// would lose its body on the way is not followed either.
func (t *trip) redirect(req *http.Request, via []*http.Request) error {
	same := req.URL.Host == t.target.Host && req.URL.Scheme == t.target.Scheme ||
		req.URL.Hostname() == t.target.Hostname() && t.target.Scheme == "http" && req.URL.Scheme == "https"
	if !same || req.Method != via[0].Method {
		return &redirectError{place(req.URL)}
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper]. A request whose answer is an error of HTTP fails with its words, unless the
// SDK must see the answer.
func (t *trip) RoundTrip(req *http.Request) (*http.Response, error) {
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
		resp.Body = &cappedBody{ReadCloser: resp.Body, left: t.max, limit: t.max}
	}
	return resp, nil
}

// rawKey marks the context of a request of our own, whose reader has its own cap.
type rawKey struct{}

// send sends a request, after a sign-in if that is wanted.
func (t *trip) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if req.Method == http.MethodDelete {
		short, cancel := context.WithTimeout(ctx, deleteWait)
		defer cancel()
		ctx = short
	}
	out := req.Clone(ctx)
	out.Close = req.Method == http.MethodDelete // the session is over
	out.Header.Del("Referer")                   // the client adds it where it follows, with all that the address holds
	for name, values := range t.headers {
		out.Header[name] = values
	}
	token := ""
	if t.auth != nil {
		var err error
		if token, err = t.auth.sign(ctx, out.Header); err != nil {
			return nil, &signInError{err}
		}
	}
	resp, err := t.base.RoundTrip(out)
	if err == nil && t.auth != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) && req.GetBody != nil {
		resp, err = t.again(out, token, resp)
	}
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodDelete {
		_ = resp.Body.Close() // nobody reads what it says
		resp.Body = http.NoBody
	}
	return resp, nil
}

// again signs in and sends a refused request once more.
func (t *trip) again(req *http.Request, token string, resp *http.Response) (*http.Response, error) {
	if err := t.auth.renew(req.Context(), token, req, resp); err != nil {
		return nil, &signInError{err}
	}
	out := req.Clone(req.Context())
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	out.Body = body
	if _, err := t.auth.sign(req.Context(), out.Header); err != nil {
		return nil, &signInError{err}
	}
	return t.base.RoundTrip(out)
}

// A signInError is a sign-in that failed: the request itself was not looked at.
type signInError struct{ err error }

func (e *signInError) Error() string { return e.err.Error() }
func (e *signInError) Unwrap() error { return e.err }

// NoSignIn reports that the failure is one of who is calling, not of what is called.
func (e *signInError) NoSignIn() bool { return true }

// NoSignIn reports whether the server or a proxy wants another sign-in, or any.
func (e *statusError) NoSignIn() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusProxyAuthRequired
}

// failure turns an answer other than 2xx into an error with its words, or passes it on where the SDK must see it.
func (t *trip) failure(req *http.Request, resp *http.Response) (*http.Response, error) {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRPCError)) // as much as there is
	_ = resp.Body.Close()
	e := &statusError{status: resp.StatusCode, at: place(req.URL), body: t.secrets.scrub(errorWords(raw)), wait: retryAfter(resp.Header.Get("Retry-After"))}
	if resp.StatusCode == http.StatusUnauthorized && e.body == "" {
		e.body = t.secrets.scrub(rpc.Shorten(resp.Header.Get("WWW-Authenticate"), 200))
	}
	msg, ok := rpc.Scan(raw)
	if ok && msg.Err != nil {
		_, e.rpc = msg.Answer()
		e.id = strings.Trim(string(msg.ID), `"`)
	}
	// The SDK negotiates the version by such errors, and knows 405 as the answer of a server without a stream.
	missing := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest
	if req.Context().Value(rawKey{}) == nil && (missing && e.rpc != nil || req.Method != http.MethodPost) {
		resp.Body = io.NopCloser(bytes.NewReader(raw))
		resp.ContentLength = int64(len(raw))
		return resp, nil
	}
	return nil, e
}

// maxRetryAfter bounds what is believed of a server's wish.
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

// errorWords finds what an error's body says: the message of JSON, or the text.
func errorWords(raw []byte) string {
	if words := rpc.Words(raw); words != "" {
		return rpc.Shorten(words, maxErrorBody)
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a page for people
	}
	return rpc.Shorten(strings.Join(strings.Fields(text), " "), maxErrorBody)
}

// cappedBody is an answer to a request of the SDK's.
type cappedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *cappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w (%d bytes)", rpc.ErrTooLarge, b.limit)
	}
	return n, err
}

// mediaOf is the type of an answer.
func mediaOf(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}

// Wait is how long the server asks to wait before another try, 0 if it does not say.
func (e *statusError) Wait() time.Duration { return e.wait }
