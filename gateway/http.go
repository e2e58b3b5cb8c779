package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	// statelessEra is the first version of the protocol without sessions. Versions are dates and sort as text.
	statelessEra = "2026-07-28"
)

// HTTPOptions bound clients over HTTP. A zero field has its default.
type HTTPOptions struct {
	Body           int64   // bytes of one message, 8 MiB
	Message        int64   // bytes of a message other than tools/call; a longer one must name its method within it, 64 KiB
	Sessions       int     // 10,000
	CallerSessions int     // of one caller, or of one address without authentication, 1,000; no bound for this machine
	Proxies        Proxies // those that may name the address of a client

	Bodies       *memory.Share // the memory of messages until their answers
	SessionBytes *memory.Share // the memory of sessions
}

// Defaults of [HTTPOptions].
const (
	DefaultBody           = 8 << 20
	DefaultMessage        = 64 << 10
	DefaultSessions       = 10_000
	DefaultCallerSessions = 1_000
)

func (o HTTPOptions) withDefaults() HTTPOptions {
	o.Body = cmp.Or(o.Body, DefaultBody)
	o.Message = min(cmp.Or(o.Message, DefaultMessage), o.Body)
	o.Sessions = cmp.Or(o.Sessions, DefaultSessions)
	o.CallerSessions = cmp.Or(o.CallerSessions, DefaultCallerSessions)
	return o
}

// Handler serves /mcp and /mcp/GROUP, for clients of both protocol eras on one URL, and /healthz. It belongs in [WithDeadlines],
// with the checks of requests before it.
func (f *front) Handler() http.Handler {
	mux := http.NewServeMux()
	endpoint := http.NewCrossOriginProtection().Handler(http.HandlerFunc(f.serveMCP))
	mux.Handle(endpointPath, endpoint)
	mux.Handle(endpointPath+"/{group}", endpoint)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}

// front serves an MCP server to its clients: it bounds sessions and messages, and answers ordinary calls without the SDK.
type front struct {
	server            *mcp.Server
	sessions          sessions
	calls             *calls
	answers           answers
	http              HTTPOptions
	self              *mcp.Implementation                             // in answers without the SDK
	handlers          map[string]mcp.ToolHandler                      // by tool
	exposes           bool                                            // handle also answers calls of tools by other names
	handle            mcp.MethodHandler                               // calls a tool
	listens           listenHandler                                   // answers subscriptions/listen; nil: the SDK does
	listening         *calls                                          // such requests
	reads             mcp.MethodHandler                               // reads a resource of a server; nil: there are none
	hasGroup          func(group string, caller *auth.TokenInfo) bool // nil: there are no groups
	grace             time.Duration                                   // of calls whose client has gone
	stateless, legacy http.Handler                                    // of the SDK, by era of the protocol
	versions          []string                                        // of the protocol, known to the SDK
}

func newFront(server *mcp.Server, o HTTPOptions) front {
	o = o.withDefaults()
	same := func(*http.Request) *mcp.Server { return server }
	return front{
		server: server,
		calls:  newCalls(), listening: newCalls(),
		handlers: map[string]mcp.ToolHandler{},
		http:     o,
		sessions: sessions{
			most: o.Sessions, mostOfOne: o.CallerSessions, room: o.SessionBytes,
			all: map[*mcp.ServerSession]*session{}, byID: map[string]*session{}, owners: map[string]*owner{},
		},
		versions: mcp.SupportedProtocolVersions(),
		stateless: mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: o.Body,
		}),
		// No SessionTimeout: the SDK does not see all requests.
		legacy: mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: o.Body}),
	}
}

// callTool calls a known tool.
func (f *front) callTool(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
	r := req.(*mcp.CallToolRequest)
	return f.handlers[r.Params.Name](ctx, r)
}

// serveMCP answers ordinary calls and passes all other requests to the SDK.
func (f *front) serveMCP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no") // else a proxy would hold back progress
	f.http.Proxies.mark(r)
	if !f.enterGroup(r) {
		http.Error(w, noGroup, http.StatusNotFound)
		return
	}
	n, open, post := f.sessions.find(r.Header.Get(sessionHeader)), true, r.Method == http.MethodPost
	switch {
	case n != nil && (n.user != userIn(r.Context()) || n.group != r.Header.Get(groupHeader)):
		http.Error(w, "session not found", http.StatusNotFound) // so that the client opens its own
		return
	case r.Method == http.MethodDelete && n != nil && f.speaks(r) && !rebinds(r):
		f.delete(w, r, n)
		return
	case n != nil:
		open = f.sessions.use(n, post)
		defer f.sessions.leave(n, post)
	}
	if !post {
		f.sdk(r).ServeHTTP(w, r)
		return
	}
	if refused := f.post(w, r, n, open); refused != nil {
		refused.write(w)
	}
}

// post answers a message, with or without a session, or passes it to the SDK.
func (f *front) post(w http.ResponseWriter, r *http.Request, n *session, open bool) *refusal {
	m, refused := f.receive(r.Context(), r)
	if refused != nil {
		return refused
	}
	defer m.room.Close()
	if n != nil && f.Answered(n.server, m.data) {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if c := f.ordinary(r, m, n); c != nil && open {
		if c.Lasts() {
			c.detach()
			m.forget()
		}
		c.serve(w, r, n)
		return nil
	}
	if refuseRounded(w, m) || refuseMisnamed(w, r, m) {
		return nil
	}
	if n == nil && f.sdk(r) == f.legacy && r.Header.Get(sessionHeader) == "" {
		return f.begin(w, r, m)
	}
	if n != nil {
		if refused := f.sessions.keeps(n, r, m); refused != nil {
			return refused
		}
	}
	f.sdk(r).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), lengthKey{}, int64(len(m.data)))))
	return nil
}

// lengthKey is the context key of the bytes of a message that the SDK reads. It keeps them as long as the call.
type lengthKey struct{}

// begin opens a session for the first message of a client.
func (f *front) begin(w http.ResponseWriter, r *http.Request, m *message) *refusal {
	if refused := f.cutInitialize(m); refused != nil {
		return refused
	}
	p, refused := f.sessions.open(originOf(r.Header, userIn(r.Context())), kept(r, m))
	if refused != nil {
		return refused
	}
	defer func() { f.sessions.assign(p, w.Header().Get(sessionHeader)) }() // even when the handler panics
	f.legacy.ServeHTTP(w, r)
	return nil
}

// sdk returns the SDK's handler for the era of a request. A stateless client closes the response to cancel, which only a
// stateless handler sees; a legacy client sends a notification, which needs its session.
func (f *front) sdk(r *http.Request) http.Handler {
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) >= statelessEra {
		return f.stateless
	}
	return f.legacy
}

// speaks reports whether the SDK knows the protocol version of a request.
func (f *front) speaks(r *http.Request) bool {
	version := r.Header.Get(versionHeader)
	return version == "" || version >= statelessEra || slices.Contains(f.versions, version)
}

// ordinary returns the ordinary call in a request, with or without a session, or nil if the SDK must see the request: it
// refuses or reads otherwise what differs from this in a header or in the message.
func (f *front) ordinary(r *http.Request, m *message, n *session) *Call {
	version := r.Header.Get(versionHeader)
	stateless := n == nil && version == statelessEra && r.Header.Get(sessionHeader) == ""
	legacy := n != nil && version < statelessEra && f.speaks(r)
	if !stateless && !legacy || !m.whole || r.Header.Get("Content-Type") != "application/json" || r.Header["Last-Event-Id"] != nil ||
		!accepts(r.Header["Accept"], "application/json") || !accepts(r.Header["Accept"], "text/event-stream") || rebinds(r) {
		return nil
	}
	c := f.readCall(m.data)
	if c == nil || c.stateless != stateless || stateless && (r.Header.Get("Mcp-Method") != c.method || r.Header.Get("Mcp-Name") != c.params.Name) {
		return nil
	}
	c.extra = &mcp.RequestExtra{Header: r.Header, TokenInfo: auth.TokenInfoFromContext(r.Context())}
	return c
}

// serve answers a call. Without a session the client closes the response to cancel.
func (c *Call) serve(w http.ResponseWriter, r *http.Request, n *session) {
	if n == nil {
		c.typed = true
		c.ctx, c.cancel = context.WithCancelCause(r.Context())
	} else if fault := c.enter(context.WithoutCancel(r.Context()), n); fault != nil {
		respond(w, http.StatusBadRequest, ErrorAnswer(c.id, fault))
		return
	} else {
		defer c.endAfterRequest(r)()
	}
	c.respond(w, r)
}

// delete ends a session and cancels its calls. The SDK alone would wait for its calls.
func (f *front) delete(w http.ResponseWriter, r *http.Request, n *session) {
	n.end(errUnwanted)
	f.legacy.ServeHTTP(w, r)
	f.sessions.end(n) // even if the SDK has refused: its session would live on without calls, timeout and slot
	select {
	case <-n.finished.Done():
	case <-r.Context().Done():
	}
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

// respond runs c and writes its answer: one JSON message, or a stream of events if notifications come first or the call was
// cancelled.
func (c *Call) respond(w http.ResponseWriter, r *http.Request) {
	streams := false
	stream := func() {
		w.Header().Set("Cache-Control", "no-cache, no-transform")
		w.Header().Set("Content-Type", "text/event-stream")
		streams = true
	}
	event := func(message []byte) error {
		if !streams {
			stream()
		}
		if _, err := fmt.Fprintf(w, "event: message\ndata: %s\n", message); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	defer c.Close()
	answer := c.Answer(event)
	switch {
	case r.Context().Err() != nil: // the client has closed the response
	case answer == nil && !streams:
		stream() // the protocol's form of no answer
	case answer == nil:
	case streams:
		event(answer) // the client may be gone
	default:
		respond(w, c.status, answer)
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

// An Endpoint serves any server over HTTP as a [Gateway] serves its own.
type Endpoint struct{ front }

// NewEndpoint adds middleware to the server, so call it once for each.
func NewEndpoint(server *mcp.Server, o HTTPOptions) *Endpoint {
	e := &Endpoint{newFront(server, o)}
	server.AddReceivingMiddleware(EndWith(e.calls.life), e.counted, e.sessions.track)
	return e
}

// Answer makes Direct answer calls of the server's tools, by name, as the server does. They may go on for the grace after their
// client has gone.
func (e *Endpoint) Answer(self *mcp.Implementation, tools map[string]mcp.ToolHandler, grace time.Duration) {
	e.self, e.handlers, e.grace = self, tools, grace
	e.handle = e.counted(func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, end := e.outlasting(ctx)
		defer end()
		return e.callTool(ctx, method, req)
	})
}

// counted is middleware. It registers calls of tools.
func (e *Endpoint) counted(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != toolsCall {
			return next(ctx, method, req)
		}
		ctx, end, open := e.calls.begin(ctx, callerOf(req.GetExtra()))
		if !open {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server is shutting down: call again when it is back"}
		}
		defer end()
		return next(ctx, method, req)
	}
}
