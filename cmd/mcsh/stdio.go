package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	maxInput = 16 << 20 // one message of a client on standard input
	maxDepth = 900      // of its nesting; 1000 are too many for the SDK, which ends the session over them
	maxField = 1 << 10  // what is looked at of a member of a message; ids are shorter
)

// serveStdio serves on standard input and output until the input has ended and what it asked for is answered or
// cancelled, or ctx is done and the ending is over.
func (p *program) serveStdio(ctx context.Context, server *mcp.Server, answer answerer, e ending) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	server.AddReceivingMiddleware(endingWith(life))
	out := &wholeWriter{w: p.stdout}
	direct := newDirect(life, answer, out)
	in := &messageReader{in: bufio.NewReaderSize(p.stdin, 64<<10), out: out, direct: direct}
	session, err := server.Connect(ctx, &stdioTransport{direct: direct, piped: &in.piped, gone: func() { end(gateway.ErrGone) }, inner: &mcp.IOTransport{
		Reader:        io.NopCloser(in),
		Writer:        keepOpen{out},
		MaxLineLength: -1, // the reader has its own
	}}, nil)
	if err != nil {
		return err
	}
	direct.join(session)
	if e.finish == nil {
		e.finish = func(context.Context) error { return session.Close() }
	}
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { e.run(end); close(finished) })
	served := make(chan error, 1)
	go func() { served <- session.Wait() }() // for ever, where the client takes no answer
	select {
	case err = <-served:
	case <-finished:
	}
	if !stop() {
		<-finished
	}
	end(nil)
	err = errors.Join(err, direct.close())
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// endingWith makes requests end with life.
func endingWith(life context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })()
			return next(ctx, method, req)
		}
	}
}

// keepOpen is a stream that stays open: the process has it, not the session.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// A wholeWriter keeps messages apart that are written at the same time, each with one Write.
type wholeWriter struct {
	mu sync.Mutex // guards w, also while it is written to: that is what it is for
	w  io.Writer
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// A messageReader reads lines, and gives on those that hold a message. The others, which would end the session and
// every run in it, it answers with an error.
type messageReader struct {
	in     *bufio.Reader
	out    io.Writer
	direct *direct
	begun  bool        // the first message has come
	piped  atomic.Bool // whoever sent it did not wait for an answer
	line   []byte      // the buffer of lines
	ready  []byte      // what is to be read of line
	err    error       // why nothing comes after ready
}

// Read implements [io.Reader].
func (r *messageReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var o outline
		r.err = r.readLine(&o)
		line := bytes.Trim(r.line, " \t\r\n")
		if len(line) == 0 && !o.long {
			continue
		}
		if !r.begun {
			r.begun = true
			r.piped.Store(!o.opens() || r.in.Buffered() > 0)
		}
		if err := r.give(&o, line); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// give has a message answered, or gives it on.
func (r *messageReader) give(o *outline, line []byte) error {
	if r.direct != nil && !o.long {
		taken, fault := r.direct.take(line)
		if taken {
			r.line = nil // it belongs to the call
			return nil
		}
		if fault != nil { // an answer with the id of the other call would be taken for that one's
			return r.tell(json.RawMessage("null"), fault)
		}
	}
	if fault := o.fault(line); fault != nil {
		return r.refuse(o, fault)
	}
	r.ready = append(line, '\n')
	return nil
}

// readLine reads a line into r.line and o. Of a line that is too long only o is left.
func (r *messageReader) readLine(o *outline) error {
	if r.line = r.line[:0]; cap(r.line) > 1<<20 {
		r.line = nil // such lines are rare
	}
	for {
		part, err := r.in.ReadSlice('\n')
		o.add(part)
		if o.long = o.long || len(r.line)+len(bytes.TrimRight(part, "\r\n")) > maxInput; o.long {
			r.line = nil
		} else {
			r.line = append(r.line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// refuse answers a line that is not given on. The answer to a call of ours is not answered: the call gets the error.
func (r *messageReader) refuse(o *outline, fault *jsonrpc.Error) error {
	id := o.id()
	// "If there was an error in detecting the id in the Request object (e.g. Parse error/Invalid Request), it MUST be
	// Null." What looks like an id in a text that is not JSON may be the id of another call.
	if fault.Code == jsonrpc.CodeParseError || id == nil {
		id = json.RawMessage("null")
	}
	if !o.answers() || fault.Code == jsonrpc.CodeParseError {
		return r.tell(id, fault)
	}
	if o.id() != nil {
		answer, err := refusal(id, fault)
		r.ready = answer
		return err
	}
	return nil
}

// tell answers a message with an error.
func (r *messageReader) tell(id json.RawMessage, fault *jsonrpc.Error) error {
	answer, err := refusal(id, fault)
	if err == nil {
		_, err = r.out.Write(answer)
	}
	return err
}

// refusal is the message that answers one with an error.
func refusal(id json.RawMessage, fault *jsonrpc.Error) ([]byte, error) {
	answer, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, fault})
	if err != nil {
		return nil, fmt.Errorf("answering a message that is refused: %w", err)
	}
	return append(answer, '\n'), nil
}

// An outline is what can be told of a message as its bytes pass by, in little memory whatever they are.
type outline struct {
	long            bool // longer than maxInput
	depth, deepest  int
	quoted, escaped bool
	member          []byte            // of the member that passes by, what is not nested
	members         map[string][]byte // the outer values of the members in outlined
	twice           string            // one of them that is there twice
}

// outlined are the members that tell what a message is, as they are written.
var outlined = map[string]bool{`"jsonrpc"`: true, `"id"`: true, `"method"`: true, `"result"`: true, `"error"`: true}

// add takes the next bytes of the message.
func (o *outline) add(p []byte) {
	for _, b := range p {
		switch {
		case o.quoted:
			o.keep(b)
			o.quoted = o.escaped || b != '"'
			o.escaped = !o.escaped && b == '\\'
		case b == '{' || b == '[':
			o.keep(b)
			o.depth++
			o.deepest = max(o.deepest, o.depth)
		case b == '}' || b == ']':
			if o.depth == 1 {
				o.endMember()
			}
			o.depth = max(0, o.depth-1)
		case b == ',' && o.depth == 1:
			o.endMember()
		default:
			o.quoted = b == '"'
			o.keep(b)
		}
	}
}

func (o *outline) keep(b byte) {
	if o.depth == 1 && len(o.member) < maxField {
		o.member = append(o.member, b)
	}
}

func (o *outline) endMember() {
	name, value, _ := bytes.Cut(o.member, []byte(":"))
	o.member = o.member[:0]
	if name = bytes.TrimSpace(name); !outlined[string(name)] {
		return
	}
	if _, ok := o.members[string(name)]; ok {
		o.twice = string(name)
	}
	if o.members == nil {
		o.members = map[string][]byte{}
	}
	o.members[string(name)] = bytes.Clone(bytes.TrimSpace(value))
}

// id returns the id of a message if it has one that it can be answered with.
func (o *outline) id() json.RawMessage {
	id := o.members[`"id"`]
	if o.twice == `"id"` || len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') || !json.Valid(id) {
		return nil
	}
	return id
}

// exactID reports whether the SDK, which has numbers as int64, answers with the id that the message has.
func (o *outline) exactID() bool {
	var id any
	value := o.members[`"id"`]
	if len(value) == 0 || value[0] == '"' || string(value) == "null" {
		return true
	}
	if json.Unmarshal(value, &id) != nil {
		return false
	}
	number, ok := id.(float64)
	return ok && number == math.Trunc(number) && math.Abs(number) <= 1<<53
}

// answers reports whether the message is an answer, which must not be answered: two sides could go on for ever.
func (o *outline) answers() bool {
	return o.members[`"method"`] == nil && (o.members[`"result"`] != nil || o.members[`"error"`] != nil)
}

// opens reports whether the message is one by which clients make themselves known and wait for the answer.
func (o *outline) opens() bool {
	method := string(o.members[`"method"`])
	return method == `"initialize"` || method == `"server/discover"`
}

// fault returns what is wrong with the message in a line, or nil if the SDK can read it.
func (o *outline) fault(line []byte) *jsonrpc.Error {
	switch {
	case o.long:
		return invalid("the message is longer than %d MiB: send less, or let a stage of the pipeline fetch the data", maxInput>>20)
	case o.deepest > maxDepth:
		return invalid("the message is nested deeper than %d levels: send flatter data, or send it as a string", maxDepth)
	case !json.Valid(line):
		err := json.Unmarshal(line, new(json.RawMessage))
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("parse error: the line is not JSON (%v): send one message per line", err)}
	case line[0] == '[':
		return invalid("the message is an array: send the messages of a batch one by one, each on a line")
	case line[0] != '{':
		return invalid("the message is not an object: send a JSON-RPC 2.0 request or notification")
	case o.twice != "":
		return invalid("the message has the member %s twice", o.twice)
	case !o.exactID():
		return invalid("the id of the message is neither a string nor a whole number up to 2^53")
	case o.members[`"method"`] == nil && !o.answers():
		return invalid("the message has no method")
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return invalid("%v", err)
	}
	return nil
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + fmt.Sprintf(format, args...)}
}

// A stdioTransport makes sessions that work from a shell, where a few lines are piped in: the end of the input does not
// cancel the calls before it, and a tools/call may come without a handshake.
type stdioTransport struct {
	inner  mcp.Transport
	direct *direct
	piped  *atomic.Bool // the calls were piped in
	gone   func()       // cancels what is left when the client has gone
}

// Connect implements [mcp.Transport].
func (t *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &stdioConn{Connection: inner, stdioTransport: t, asked: map[any]bool{}, changed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type stdioConn struct {
	mcp.Connection
	*stdioTransport

	begun bool              // a first message has come; only Read uses it
	ahead []jsonrpc.Message // to be read next; only Read uses it

	changed chan struct{} // holds a value after asked has changed
	closed  chan struct{}
	once    sync.Once // closes closed

	mu    sync.Mutex
	asked map[any]bool // ids of calls that are not answered; guarded by mu
}

// handshakeID is the id of the handshake that stands in for one that was left out.
const handshakeID = "mcsh-handshake"

// Read returns the next message. The end of the input comes when all calls before it are answered.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(c.ahead) > 0 {
		m := c.ahead[0]
		c.ahead = c.ahead[1:]
		return m, nil
	}
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.wait(ctx)
	}
	if err != nil {
		return m, err
	}
	first := !c.begun
	c.begun = true
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	c.note(req)
	if first && req.Method == "tools/call" && !stateless(req) {
		return c.shakeHands(req)
	}
	return m, nil
}

// stateless reports whether a request is of the protocol that has no handshake.
func stateless(req *jsonrpc.Request) bool {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(req.Params, &params) == nil && params.Meta["io.modelcontextprotocol/protocolVersion"] != nil
}

// shakeHands returns the handshake that a one-shot call left out, and keeps the call for later.
func (c *stdioConn) shakeHands(call *jsonrpc.Request) (jsonrpc.Message, error) {
	id, err := jsonrpc.MakeID(handshakeID)
	if err != nil {
		return nil, err
	}
	c.ahead = []jsonrpc.Message{&jsonrpc.Request{Method: "notifications/initialized"}, call}
	return &jsonrpc.Request{
		ID: id, Method: "initialize",
		Params: json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"one-shot","version":"1"}}`),
	}, nil
}

// note keeps account of calls that want an answer. A call that the client has cancelled may not get one.
func (c *stdioConn) note(req *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.ID.IsValid() {
		c.asked[req.ID.Raw()] = true
		return
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	if req.Method != "notifications/cancelled" || json.Unmarshal(req.Params, &cancelled) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(cancelled.ID); err == nil {
		delete(c.asked, id.Raw())
	}
}

// Write sends a message, but for the answer to a handshake that the client knows nothing of.
func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	res, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	if res.ID.Raw() == any(handshakeID) && res.Error == nil {
		c.direct.open()
		return nil
	}
	err := c.Connection.Write(ctx, m)
	c.direct.open()
	c.mu.Lock()
	delete(c.asked, res.ID.Raw())
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return err
}

// wait returns when nothing is left to answer, or the time for it is over. Then the calls that are left are cancelled.
func (c *stdioConn) wait(ctx context.Context) {
	limit := goneWait
	if c.piped.Load() {
		limit = answerWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer c.gone()
	for {
		c.mu.Lock()
		left := len(c.asked)
		c.mu.Unlock()
		if left == 0 {
			c.direct.wait(ctx, c.closed)
			return
		}
		select {
		case <-c.changed:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the session.
func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
