package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// endpoint answers ordinary calls and hands everything else to the SDK, unread or as if it were.
type endpoint struct {
	front          *front
	modern, legacy http.Handler // of the SDK, for each era of the protocol
	versions       []string     // of the protocol, those that the SDK knows
}

// ServeHTTP implements [http.Handler].
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers would hold progress back
	sdk := e.sdk(r)
	n := e.front.sessions.find(r.Header.Get(sessionHeader))
	switch {
	case n != nil && n.user != userIn(r.Context()):
		http.Error(w, "session not found", http.StatusNotFound) // as if there were none: so its client makes its own
		return
	case r.Method == http.MethodDelete && n != nil && e.speaks(r):
		e.delete(w, r, n)
		return
	case r.Method == http.MethodPost && n != nil:
		open := n.startRequest()
		defer n.endRequest()
		if open && e.inSession(w, r, n) {
			return
		}
	case sdk == e.modern && e.stateless(w, r):
		return
	}
	if !e.refuseRounded(w, r) {
		sdk.ServeHTTP(w, r)
	}
}

// sdk is the handler of the era that a request is of.
//
// The stateless era closes the response to cancel, which only a stateless handler hears; a legacy client cancels with
// a notification, which only reaches a call within its session. So each era has its handler, chosen by the header.
func (e *endpoint) sdk(r *http.Request) http.Handler {
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) >= statelessEra {
		return e.modern
	}
	return e.legacy
}

// speaks reports whether the SDK takes a request for its version of the protocol.
func (e *endpoint) speaks(r *http.Request) bool {
	version := r.Header.Get(versionHeader)
	return version == "" || version >= statelessEra || slices.Contains(e.versions, version)
}

// inSession answers a request within a session if it holds an ordinary call, and reports whether it did.
func (e *endpoint) inSession(w http.ResponseWriter, r *http.Request, n *session) bool {
	if !ordinary(r) || !e.speaks(r) || r.Header.Get(versionHeader) >= statelessEra {
		return false
	}
	c := e.read(r)
	if c == nil || c.modern {
		return false
	}
	if fault := c.enter(context.WithoutCancel(r.Context()), n); fault != nil {
		refusal, _ := encoded(answer{Version: "2.0", ID: c.id, Error: fault})
		respond(w, http.StatusBadRequest, refusal)
		return true
	}
	defer c.follow(r)()
	c.respond(w)
	return true
}

// stateless answers a request of the era without sessions if it holds an ordinary call, and reports whether it did. The
// client closes the response to cancel.
func (e *endpoint) stateless(w http.ResponseWriter, r *http.Request) bool {
	if !ordinary(r) || r.Header.Get(versionHeader) != statelessEra || r.Header.Get("Mcp-Method") != "tools/call" {
		return false
	}
	c := e.read(r)
	if c == nil || !c.modern || r.Header.Get("Mcp-Name") != c.params.Name {
		return false
	}
	c.marked = true
	c.ctx, c.cancel = context.WithCancelCause(r.Context())
	c.respond(w)
	return true
}

// delete ends a session with its calls: the client needs neither any more. The SDK lets its own go on, and waits.
func (e *endpoint) delete(w http.ResponseWriter, r *http.Request, n *session) {
	n.end()
	said := &status{ResponseWriter: w}
	e.legacy.ServeHTTP(said, r)
	if said.code != http.StatusNoContent {
		return
	}
	e.front.sessions.remove(n)
	select {
	case <-n.close():
	case <-r.Context().Done():
	}
}

// status remembers the status of a response.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// readAhead reads the body of a request and leaves it to be read again. It reports whether that is all of it. It may be
// called again before anybody else has read.
func readAhead(r *http.Request) ([]byte, bool) {
	if ahead, ok := r.Body.(*replay); ok {
		return ahead.data, ahead.whole
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, 64<<10)) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(r.Body, maxRequestBody+1))
	ahead := &replay{
		Reader: io.MultiReader(bytes.NewReader(body.Bytes()), failing{err}, r.Body), Closer: r.Body,
		data: body.Bytes(), whole: err == nil && n <= maxRequestBody,
	}
	r.Body = ahead
	return ahead.data, ahead.whole
}

// read reads the body of a request, and returns the call in it if that is an ordinary one.
func (e *endpoint) read(r *http.Request) *Call {
	body, ok := readAhead(r)
	if !ok {
		return nil
	}
	c := e.front.readCall(body)
	if c != nil {
		c.extra = &mcp.RequestExtra{Header: r.Header, TokenInfo: auth.TokenInfoFromContext(r.Context())}
	}
	return c
}

// replay is a body that was read ahead.
type replay struct {
	io.Reader
	io.Closer
	data  []byte // what was read
	whole bool   // whether that is all
}

// failing fails as a reader before it did.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// ordinary reports whether a POST is one that the SDK would take, as far as its headers of HTTP tell.
func ordinary(r *http.Request) bool {
	if r.Header.Get("Content-Type") != "application/json" || r.Header["Last-Event-Id"] != nil || r.ContentLength > maxRequestBody {
		return false
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local.String()) && !isLoopback(r.Host) {
		return false // a page in a browser may have given its own name our address
	}
	return accepts(r.Header["Accept"], "application/json") && accepts(r.Header["Accept"], "text/event-stream")
}

// accepts reports whether a header names a type as clients of MCP do.
func accepts(header []string, mediaType string) bool {
	for _, line := range header {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part == mediaType || part == "*/*" {
				return true
			}
		}
	}
	return false
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// respond runs c and answers it: with the one message, or with a stream of events if there are others before it.
func (c *Call) respond(w http.ResponseWriter) {
	streams := false
	event := func(message []byte) error {
		if !streams {
			w.Header().Set("Cache-Control", "no-cache, no-transform")
			w.Header().Set("Content-Type", "text/event-stream")
			streams = true
		}
		if _, err := fmt.Fprintf(w, "event: message\ndata: %s\n", message); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	if answer := c.Answer(event); streams {
		event(answer) // the client may be gone
	} else {
		respond(w, http.StatusOK, answer)
	}
}

// respond writes a whole response.
func respond(w http.ResponseWriter, code int, message []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(message)))
	w.WriteHeader(code)
	w.Write(message) // the client may be gone
}
