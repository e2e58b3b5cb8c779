package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/outward"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	toolsCall       = "tools/call"
	quotedToolsCall = `"` + toolsCall + `"`
	resourcesRead   = "resources/read"
)

// A Call is an ordinary call of a tool, the reading of a server's resource, or a request subscriptions/listen, answered without
// the SDK at a fraction of its cost. A message is a Call only if the SDK would read it in the same way.
type Call struct {
	front     *front
	method    string
	id        json.RawMessage       // as the client wrote it
	params    mcp.CallToolParamsRaw // of a resource: its name is the URI
	extra     *mcp.RequestExtra     // headers and token, over HTTP
	server    *mcp.ServerSession
	wants     *mcp.NotificationSubscriptions // of subscriptions/listen
	tasks     bool                           // it wants those about tasks, without the extension
	stateless bool                           // of the stateless protocol
	typed     bool                           // the result has a resultType
	status    int                            // of the response over HTTP, once there is an answer
	ctx       context.Context
	cancel    context.CancelCauseFunc
	leave     func() // removes it from the session that can cancel it; nil without one

	sending sync.Mutex
	out     func(message []byte) error // sends a message before the answer; nil after it; guarded by sending
}

// Direct returns the ordinary call in a message of the session ss, or nil for a message that must go to the SDK. The call
// ends with ctx or when the client cancels it. An id that is already in flight is an error.
func (f *front) Direct(ctx context.Context, ss *mcp.ServerSession, message []byte) (*Call, *jsonrpc.Error) {
	c := f.readCall(message)
	if c == nil || ss.InitializeParams() == nil {
		return nil, nil
	}
	if fault := c.enter(ctx, f.sessions.register(ss, nil)); fault != nil {
		return nil, fault
	}
	return c, nil
}

// enter adds c to the calls in flight of a session.
func (c *Call) enter(ctx context.Context, s *session) *jsonrpc.Error {
	c.server = s.server
	c.typed = s.server.InitializeParams().ProtocolVersion >= statelessEra
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if !c.front.sessions.enter(s, string(c.id), c.cancel) {
		c.cancel(nil)
		return Duplicate(string(bytes.Trim(c.id, `"`)))
	}
	stop := context.AfterFunc(s.life, func() { c.cancel(context.Cause(s.life)) })
	c.leave = func() { stop(); c.front.sessions.exit(s, string(c.id)) }
	return nil
}

// Duplicate is the error for a request whose id is already in flight. Its answer has no id: the client would take it for the
// answer to the other request.
func Duplicate(id any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("duplicate in-flight request ID %v", id)}
}

// Answer runs the call and returns its answer, with a newline at the end, or nil if the client has cancelled the call. It
// may run once. It passes notifications before the answer to send, one at a time. The caller calls Close when it has written
// the answer.
func (c *Call) Answer(send func(message []byte) error) []byte {
	if c.leave != nil {
		defer c.leave()
	}
	c.out = send
	ctx := context.WithValue(c.ctx, senderKey{}, progressSender(func(_ context.Context, p *mcp.ProgressNotificationParams) error {
		return c.send(notification{"2.0", "notifications/progress", p})
	}))
	result, err := c.run(context.WithValue(ctx, callKey{}, c), send)
	c.sending.Lock() // after a message that is on its way
	c.out = nil
	c.sending.Unlock()
	// Close ends the sessions after the last call, perhaps before this answer is written.
	if context.Cause(c.ctx) == errUnwanted && !c.front.calls.closing() {
		return nil
	}
	return c.encode(result, err)
}

// Close gives back the memory that is counted for the answer.
func (c *Call) Close() { c.cancel(nil) }

// run answers the call.
func (c *Call) run(ctx context.Context, send func(message []byte) error) (mcp.Result, error) {
	if c.Lasts() {
		return c.front.listens(ctx, c, send)
	}
	if c.method == resourcesRead {
		return c.front.reads(ctx, resourcesRead, &mcp.ReadResourceRequest{
			Session: c.server, Params: &mcp.ReadResourceParams{Meta: c.params.Meta, URI: c.params.Name}, Extra: c.extra,
		})
	}
	return c.front.handle(ctx, toolsCall, &mcp.CallToolRequest{Session: c.server, Params: &c.params, Extra: c.extra})
}

// A listenHandler answers a request subscriptions/listen at its end, and sends notifications before.
type listenHandler func(ctx context.Context, c *Call, send func(message []byte) error) (mcp.Result, error)

// mostNested bounds the brackets that a message opens, and so its depth: the SDK has a limit for that.
const mostNested = 900

// readCall returns the ordinary call in a message, or nil for any other message.
func (f *front) readCall(message []byte) *Call {
	if bytes.Count(message, []byte("{"))+bytes.Count(message, []byte("[")) > mostNested || !json.Valid(message) {
		return nil
	}
	c := &Call{front: f, method: toolsCall, status: http.StatusOK}
	var version, method, params, meta, name, responses, state json.RawMessage
	known := map[string]*json.RawMessage{
		"_meta": &meta, "name": &name, "arguments": &c.params.Arguments, "inputResponses": &responses, "requestState": &state,
	}
	if !members(message, map[string]*json.RawMessage{"jsonrpc": &version, "id": &c.id, "method": &method, "params": &params}) ||
		string(version) != `"2.0"` || !plainID(c.id) {
		return nil
	}
	if f.listens != nil && string(method) == quotedListen {
		if !c.readListen(params) {
			return nil
		}
		return c
	}
	if f.reads != nil && string(method) == strconv.Quote(resourcesRead) {
		c.method, known = resourcesRead, map[string]*json.RawMessage{"_meta": &meta, "uri": &name}
	}
	if !members(params, known) || string(method) != strconv.Quote(c.method) || c.method == toolsCall && argumentsFault(c.params.Arguments) != nil {
		return nil
	}
	c.params.Name = string(bytes.Trim(name, `"`))
	if !c.readAnswers(responses, state) || !f.knows(c) || len(name) != len(c.params.Name)+2 || meta != nil && !c.readMeta(meta) {
		return nil
	}
	return c
}

// readAnswers reads the answers of a client to questions, and reports whether the call is still ordinary.
func (c *Call) readAnswers(responses, state json.RawMessage) bool {
	if responses == nil && state == nil {
		return true
	}
	var list map[string]json.RawMessage
	typed := c.params.InputResponses.UnmarshalJSON
	if responses != nil && (json.Unmarshal(responses, &list) != nil || typed(responses) != nil) || state != nil && json.Unmarshal(state, &c.params.RequestState) != nil {
		return false
	}
	for key, text := range list {
		c.params.InputResponses[key] = exactResponse{c.params.InputResponses[key], text}
	}
	return true
}

// An exactResponse is an answer of a client as it is written. The SDK rounds numbers.
type exactResponse struct {
	mcp.InputResponse
	text json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (r exactResponse) MarshalJSON() ([]byte, error) { return r.text, nil }

// knows reports whether the front has the tool, or may have the tool or the resource. A name with escapes goes to the SDK.
func (f *front) knows(c *Call) bool {
	plain, ok := plainID(json.RawMessage(`"`+c.params.Name+`"`)), f.exposes
	if c.method == toolsCall {
		return f.handlers[c.params.Name] != nil || plain && ok
	}
	_, _, ok = outward.Split(c.params.Name)
	return ok && plain
}

// readMeta reads the _meta of a call, and reports whether the call is still ordinary.
func (c *Call) readMeta(meta json.RawMessage) bool {
	if meta[0] != '{' || json.Unmarshal(meta, &c.params.Meta) != nil {
		return false
	}
	version, ok := c.params.Meta[mcp.MetaKeyProtocolVersion]
	if !ok {
		return true
	}
	c.stateless = true
	found, _ := pick(meta, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities)
	client, capabilities := found[0], found[1]
	return version == statelessEra && object(capabilities, new(clientCapabilities)) &&
		(client == nil || object(client, new(mcp.Implementation)))
}

// clientCapabilities are read only to find those that the SDK would refuse.
type clientCapabilities struct {
	mcp.ClientCapabilities
	Roots *struct { // the embedded field has another type
		ListChanged bool `json:"listChanged"`
	} `json:"roots"`
}

// object decodes raw, and reports whether it is a JSON object of the right types.
func object(raw json.RawMessage, into any) bool {
	return len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, into) == nil
}

// members reads a JSON object into the known members. It reports false for an unknown or repeated one.
func members(raw json.RawMessage, known map[string]*json.RawMessage) bool {
	ok := true
	complete := rpc.Members(raw, func(name, value []byte) {
		into := known[string(name)]
		if into == nil || *into != nil {
			ok = false
			return
		}
		*into = value
	})
	return complete && ok
}

// pick returns the values of the members of an object with some names; of repeated ones the last. It reports whether the
// object is complete.
func pick(raw json.RawMessage, names ...string) ([]json.RawMessage, bool) {
	values := make([]json.RawMessage, len(names))
	complete := rpc.Members(raw, func(name, value []byte) {
		if i := slices.Index(names, string(name)); i >= 0 {
			values[i] = value
		}
	})
	return values, complete
}

// answer is a message that answers a call.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// notification is a message without an answer.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// encode returns the answer to c.
func (c *Call) encode(result mcp.Result, err error) []byte {
	a := answer{Version: "2.0", ID: c.id}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		a.Result = c.result(r)
	case *mcp.SubscriptionsListenResult:
		a.Result = map[string]any{"resultType": "complete", "_meta": c.meta(r.Meta)}
	case *task:
		r.Meta = c.meta(r.Meta)
		a.Result = r
	case *relayed:
		r.stateless, r.Meta = c.typed, c.meta(r.Meta)
		a.Result = r
	}
	if err != nil || a.Result == nil {
		a.Result = nil
		if !errors.As(err, &a.Error) {
			a.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		}
		if c.stateless && (a.Error.Code == jsonrpc.CodeInvalidParams || a.Error.Code == mcp.CodeMissingRequiredClientCapabilities) {
			c.status = http.StatusBadRequest
		}
	}
	text, err := encoded(a)
	if r, ok := a.Result.(*relayed); ok { // of its copies only the answer is left
		_ = r.memory.Grow(int64(cap(text)) - r.memory.Used())
	}
	if err != nil { // the result has a value that JSON does not have
		return ErrorAnswer(c.id, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"})
	}
	return text
}

// ErrorAnswer returns an error as the answer to the message with an id, which may be nil.
func ErrorAnswer(id json.RawMessage, fault *jsonrpc.Error) []byte {
	text, _ := encoded(answer{Version: "2.0", ID: id, Error: fault})
	return text
}

// encoded returns a message on one line, with its newline.
func encoded(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return b.Bytes(), err
}

func (c *Call) result(r *mcp.CallToolResult) *rpc.Result {
	written := wireResult(r, c.typed)
	written.Meta = c.meta(r.Meta)
	return written
}

// wireResult returns a result as it is written: for the stateless era with a type.
func wireResult(r *mcp.CallToolResult, stateless bool) *rpc.Result {
	written := rpc.ResultOf(r)
	switch {
	case stateless && r.InputRequests != nil:
		written.Type, written.Requests, written.State, written.Content = "input_required", r.InputRequests, r.RequestState, nil
	case stateless:
		written.Type = "complete"
	}
	return written
}

// meta returns the metadata of a result, with that of the stateless protocol.
func (c *Call) meta(of mcp.Meta) mcp.Meta {
	if !c.stateless {
		return of
	}
	meta := maps.Clone(of)
	if meta == nil {
		meta = mcp.Meta{}
	}
	meta[mcp.MetaKeyServerInfo] = c.front.self
	return meta
}

// RoundedID is the error for a message whose id the SDK does not keep.
const RoundedID = "invalid request: the id of the message is neither a string nor a whole number up to 2^53"

// RoundsID reports whether the SDK, which reads numbers as floating point and has ids as int64, answers with another id
// than a message has. The client would wait for ever.
func RoundsID(id json.RawMessage) bool {
	var number float64
	if len(id) == 0 || id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		return false
	}
	if json.Unmarshal(id, &number) != nil {
		return true
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return number >= 1<<63 || int64(number) != n
	}
	return number != math.Trunc(number) || math.Abs(number) >= 1<<53
}

// refuseRounded answers a message that goes to the SDK if its id would be rounded there, and reports whether it did.
func refuseRounded(w http.ResponseWriter, m *message) bool {
	found, complete := pick(m.data, "id", "method")
	id, method := found[0], found[1]
	if !m.whole || !complete || method == nil || !RoundsID(id) || !json.Valid(m.data) {
		return false
	}
	respond(w, http.StatusBadRequest, ErrorAnswer(id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: RoundedID}))
	return true
}

// plainID reports whether an id has no other spelling, so that equal texts are equal ids.
func plainID(raw json.RawMessage) bool {
	if text := bytes.Trim(raw, `"`); len(text)+2 == len(raw) {
		return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '\\' })
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == string(raw)
}

// wroteID returns the text of an id that the SDK has read. False means that the SDK may have rounded it.
func wroteID(id any) (text string, known bool) {
	switch id := id.(type) {
	case string:
		return `"` + id + `"`, true
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64), math.Abs(id) < 1<<53 // 2^53+1 is rounded to 2^53
	}
	return "", false
}
