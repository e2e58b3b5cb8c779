package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxErrorBody = 2 << 10  // of an error's body kept for the message
	maxRPCError  = 64 << 10 // of an error's body that may be a JSON-RPC message
	idlePerHost  = 64       // connections kept; with the default of 2, calls at the same time cost a third more
	deleteWait   = 2 * time.Second
	drainWait    = 250 * time.Millisecond
)

// An Endpoint is an MCP server that is reached over HTTP.
type Endpoint struct {
	URL     string      // with http:// or https://
	Headers http.Header // sent with every request to the URL's host, and to no other

	// Proxy picks the proxy for a request; nil: none is used. See [http.ProxyFromEnvironment].
	Proxy func(*http.Request) (*url.URL, error)

	LegacySSE  bool // the transport of 2024-11-05 with its two addresses, instead of streamable HTTP
	MaxMessage int  // bytes of one message, 0: 64 MiB; a longer one fails its call with LIMIT_EXCEEDED

	Where string // where it is configured, such as "mcp.json:7", for messages
}

// HTTP reaches a server over streamable HTTP. The function it returns owns the connections of all its sessions.
func HTTP(e Endpoint) func(context.Context) (mcp.Transport, error) {
	base := &http.Transport{
		Proxy:                 e.Proxy,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   idlePerHost,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		// No ResponseHeaderTimeout: the header may come with the result, when the tool is done.
	}
	return func(context.Context) (mcp.Transport, error) {
		target, err := parseEndpoint(e.URL)
		if err != nil {
			return nil, &dialError{"give the server's address as url" + at(e.Where), err}
		}
		limit := int64(e.MaxMessage)
		if limit <= 0 {
			limit = defaultMaxMessage
		}
		trip := newRoundTripper(base, target, e.Headers, limit)
		client := &http.Client{Transport: trip}
		if e.LegacySSE {
			t := &mcp.SSEClientTransport{Endpoint: e.URL, HTTPClient: client, MaxEventSize: int(limit)}
			return &httpTransport{Transport: &tapTransport{Transport: &sseTransport{t}}, trip: trip, where: e.Where}, nil
		}
		t := &mcp.StreamableClientTransport{
			Endpoint: e.URL, HTTPClient: client, DisableStandaloneSSE: true, MaxEventSize: -1,
		}
		return &httpTransport{Transport: t, trip: trip, where: e.Where}, nil
	}
}

func at(where string) string {
	if where == "" {
		return ""
	}
	return " (" + where + ")"
}

// parseEndpoint checks an address. Its error shows no secrets that the address may hold.
func parseEndpoint(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		return nil, fmt.Errorf("url needs http:// or https:// before the host")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url has the scheme %q, want http or https", u.Scheme)
	case u.Host == "":
		return nil, fmt.Errorf("url has no host")
	}
	return u, nil
}

// httpTransport hands out the SDK's connection as it is: wrapped, the SDK would not recognise it. It is tapped at the
// round tripper instead.
type httpTransport struct {
	mcp.Transport
	trip  *roundTripper
	where string
	conn  mcp.Connection // set by Connect
}

func (t *httpTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	t.conn = c
	return c, err
}

func (t *httpTransport) hangUp() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
	if base, ok := t.trip.base.(interface{ CloseIdleConnections() }); ok && t.trip.base != http.DefaultTransport {
		base.CloseIdleConnections()
	}
}

// isHTTP reports that notifications reach us only within an answer, so that a tool list is refreshed by time.
func (t *httpTransport) isHTTP() bool { return true }

// A statusError is an answer other than 2xx.
type statusError struct {
	status int
	body   string // the words in it
	at     string
	gone   bool // the session is unknown to the server: the request has not been looked at
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%d %s at %s", e.status, http.StatusText(e.status), e.at)
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// roundTripper sends the requests of the SDK's client: with our headers, only to our host, with a cap on what comes
// back, with the words of errors kept, and with the results of captured requests taken out.
type roundTripper struct {
	base    http.RoundTripper
	target  *url.URL
	headers http.Header
	max     int64
	secrets *scrubber
}

func newRoundTripper(base http.RoundTripper, target *url.URL, headers http.Header, limit int64) *roundTripper {
	return &roundTripper{base: base, target: target, headers: headers, max: limit, secrets: newScrubber(target, headers)}
}

// RoundTrip implements [http.RoundTripper].
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	capt := captureOf(req.Context())
	ctx, release := detach(req.Context(), req.Method)
	out := req.Clone(ctx)
	out.Header.Del("Referer") // the client adds it where it follows to another host, with all that the address holds
	if req.URL.Host == t.target.Host && req.URL.Scheme == t.target.Scheme {
		for name, values := range t.headers {
			out.Header[name] = values
		}
	}
	if capt != nil {
		capt.setSent(true)
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		release(0)
		var op *net.OpError
		if capt != nil && errors.As(err, &op) && op.Op == "dial" {
			capt.setSent(false)
		}
		return nil, err
	}
	if resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" { // followed by the client, without our headers elsewhere
		resp.Body = &jsonBody{body: &body{src: resp.Body, max: maxRPCError, release: release}}
		return resp, nil
	}
	if resp.StatusCode/100 != 2 {
		defer release(0)
		return t.failure(req, resp)
	}
	b := &body{src: resp.Body, max: t.max, capt: capt, release: release, request: req.GetBody}
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case "text/event-stream":
		resp.Body = newEventBody(b)
	default:
		resp.Body = &jsonBody{body: b}
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

// detach gives a request a context that ends with its caller's until release is called; release(d) ends it after d.
// So a stream whose answer has been read gets a moment to end by itself, and its connection can be used again.
func detach(ctx context.Context, method string) (context.Context, func(time.Duration)) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if method == http.MethodDelete { // a server may hold the answer back until its tools are done
		time.AfterFunc(deleteWait, cancel)
	}
	stop := context.AfterFunc(ctx, cancel)
	return own, func(d time.Duration) {
		stop()
		if d == 0 {
			cancel()
			return
		}
		time.AfterFunc(d, cancel)
	}
}

// failure turns an answer other than 2xx into an error with its words, or passes it on where the SDK must see it.
func (t *roundTripper) failure(req *http.Request, resp *http.Response) (*http.Response, error) {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRPCError))
	_ = resp.Body.Close()
	e := &statusError{status: resp.StatusCode, at: place(req.URL), body: t.secrets.scrub(errorWords(raw))}
	if resp.StatusCode == http.StatusUnauthorized {
		if want := resp.Header.Get("WWW-Authenticate"); want != "" && e.body == "" {
			e.body = t.secrets.scrub(shorten(want, 200))
		}
	}
	missing := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest
	// Real servers answer 404, and some 400, to a session that they do not know.
	e.gone = missing && req.Header.Get("Mcp-Session-Id") != "" && req.Method == http.MethodPost
	if capt := captureOf(req.Context()); capt != nil {
		capt.setSent(resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable)
	}
	// The SDK negotiates the version by such errors, and knows 405 as the answer of a server without a stream.
	if msg, ok := scanEnvelope(raw); (missing && !e.gone && ok && msg.err != nil) || req.Method != http.MethodPost {
		resp.Body = io.NopCloser(bytes.NewReader(raw))
		resp.ContentLength = int64(len(raw))
		return resp, nil
	}
	return nil, e
}

// errorWords finds what an error's body says: the message of JSON, or the text.
func errorWords(raw []byte) string {
	if words := messageIn(raw); words != "" {
		return shorten(words, maxErrorBody)
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a page for people
	}
	return shorten(strings.Join(strings.Fields(text), " "), maxErrorBody)
}

// synthetic is a response of our own to the request of a capture.
func synthetic(request func() (io.ReadCloser, error), msg string) []byte {
	id := json.RawMessage("null")
	if request != nil {
		if r, err := request(); err == nil {
			raw, _ := io.ReadAll(r)
			_ = r.Close()
			if e, _ := scanEnvelope(raw); e.id != nil {
				id = e.id
			}
		}
	}
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: msg},
	})
	if err != nil {
		panic("upstream: internal error: " + err.Error())
	}
	return b
}

// tapStreamable puts the tap into a streamable transport that was made elsewhere, keeping its client and settings.
func tapStreamable(t *mcp.StreamableClientTransport) (mcp.Transport, error) {
	target, err := parseEndpoint(t.Endpoint)
	if err != nil {
		return nil, &dialError{"give the server's address as Endpoint", err}
	}
	client := http.Client{}
	if t.HTTPClient != nil {
		client = *t.HTTPClient
	}
	base := client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	trip := newRoundTripper(base, target, nil, defaultMaxMessage)
	client.Transport = trip
	tapped := *t
	tapped.HTTPClient = &client
	return &httpTransport{Transport: &tapped, trip: trip}, nil
}
