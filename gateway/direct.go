package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A Call is an ordinary call of a tool that is answered beside the SDK: only what is known to mean the same to both is
// one. It costs a fraction.
type Call struct {
	front   *front
	id      json.RawMessage // as the client wrote it, and gets it back
	params  mcp.CallToolParamsRaw
	extra   *mcp.RequestExtra // what came with it over HTTP
	modern  bool              // of the protocol without sessions
	marked  bool              // the result says that it is complete
	session *session          // where it can be cancelled; nil: nowhere
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unlink  func() bool // from the end of the session
}

// Direct returns the call in a message of the session ss if it can be answered beside the SDK, and nil if the message
// has to go to the SDK. The call ends with ctx, or when the client cancels it. A call with the id of another one that
// is not answered is an error.
func (f *front) Direct(ctx context.Context, ss *mcp.ServerSession, message []byte) (*Call, *jsonrpc.Error) {
	c := f.readCall(message)
	if c == nil || ss.InitializeParams() == nil {
		return nil, nil
	}
	if fault := c.enter(ctx, f.sessions.of(ss, "")); fault != nil {
		return nil, fault
	}
	return c, nil
}

// enter makes c a call in flight of a session.
func (c *Call) enter(ctx context.Context, s *session) *jsonrpc.Error {
	c.marked = s.server.InitializeParams().ProtocolVersion >= statelessEra
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if !s.enter(string(c.id), c.cancel) {
		c.cancel(nil)
		return &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidRequest,
			Message: fmt.Sprintf("duplicate in-flight request ID %s", bytes.Trim(c.id, `"`)),
		}
	}
	c.session = s
	c.unlink = context.AfterFunc(s.life, func() { c.cancel(nil) })
	return nil
}

// Answer runs the call and returns the message that answers it, with a newline at its end. It is called once. Messages
// that come before the answer, if the client wants them, go to tell, one at a time.
func (c *Call) Answer(tell func(message []byte) error) []byte {
	defer c.cancel(nil)
	if c.session != nil {
		defer c.session.leave(string(c.id))
		defer c.unlink()
	}
	ctx := context.WithValue(c.ctx, tellerKey{}, teller(func(_ context.Context, p *mcp.ProgressNotificationParams) error {
		message, err := encoded(notification{"2.0", "notifications/progress", p})
		if err != nil {
			return err
		}
		return tell(message)
	}))
	result, err := c.front.handle(ctx, "tools/call", &mcp.CallToolRequest{Params: &c.params, Extra: c.extra})
	return c.encode(result, err)
}

// mostNested is how often a message may open an object or an array. It bounds the depth, of which the SDK has a limit.
const mostNested = 900

// readCall returns the call in a message, or nil if the message is anything else, or needs anything of the SDK.
func (f *front) readCall(message []byte) *Call {
	if bytes.Count(message, []byte("{"))+bytes.Count(message, []byte("[")) > mostNested || !json.Valid(message) {
		return nil
	}
	var version, id, method, params json.RawMessage
	if !members(message, map[string]*json.RawMessage{"jsonrpc": &version, "id": &id, "method": &method, "params": &params}) ||
		string(version) != `"2.0"` || string(method) != `"tools/call"` {
		return nil
	}
	c := &Call{front: f}
	return c.read(id, params)
}

// read reads what a call asks for, and returns nil if the call is not an ordinary one.
func (c *Call) read(id, params json.RawMessage) *Call {
	var meta, name json.RawMessage
	if !members(params, map[string]*json.RawMessage{"_meta": &meta, "name": &name, "arguments": &c.params.Arguments}) ||
		argumentsFault(c.params.Arguments) != nil {
		return nil
	}
	if c.id = id; !plainID(id) {
		return nil
	}
	if c.params.Name = string(bytes.Trim(name, `"`)); c.front.handlers[c.params.Name] == nil || len(name) != len(c.params.Name)+2 {
		return nil
	}
	if meta != nil && !c.readMeta(meta) {
		return nil
	}
	return c
}

// readMeta reads what is said about a call, and reports whether it is nothing unusual.
func (c *Call) readMeta(meta json.RawMessage) bool {
	if meta[0] != '{' || json.Unmarshal(meta, &c.params.Meta) != nil {
		return false
	}
	version, ok := c.params.Meta[mcp.MetaKeyProtocolVersion]
	if !ok {
		return true
	}
	c.modern = true
	var client, capabilities json.RawMessage
	rpc.Members(meta, func(name, value []byte) {
		switch string(name) {
		case mcp.MetaKeyClientInfo:
			client = value
		case mcp.MetaKeyClientCapabilities:
			capabilities = value
		}
	})
	return version == statelessEra && object(capabilities, new(clientCapabilities)) &&
		(client == nil || object(client, new(mcp.Implementation)))
}

// clientCapabilities are what a client is able to do. They are read to know that the SDK would take them.
type clientCapabilities struct {
	mcp.ClientCapabilities
	Roots *struct { // of another type than the SDK's first idea
		ListChanged bool `json:"listChanged"`
	} `json:"roots"`
}

// object reads a JSON object and reports whether it is one that fits into what into points to.
func object(raw json.RawMessage, into any) bool {
	return len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, into) == nil
}

// members reads a JSON object into the known members, and reports whether it has no others and none of them twice.
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

// plainID reports whether an id is written in the only way in which it can be: then its text stands for it.
func plainID(raw json.RawMessage) bool {
	if text := bytes.Trim(raw, `"`); len(text)+2 == len(raw) {
		return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '\\' })
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == string(raw)
}

// wroteID is how a client has written an id that the SDK has read. False: the SDK may have rounded it.
func wroteID(id any) (text string, known bool) {
	switch id := id.(type) {
	case string:
		return `"` + id + `"`, true
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64), math.Abs(id) < 1<<53 // which is what 2^53+1 is rounded to
	}
	return "", false
}
