package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/gateway"
)

// readAll reads messages until the end of the input. It runs beside the SDK, which takes its messages one by one.
func (c *conn) readAll() {
	c.detect()
	for {
		m, err := c.next()
		next := parsed{message: m, err: err}
		if req, ok := m.(*jsonrpc.Request); ok && req.ID.IsValid() {
			next.weight = c.admit(len(req.Params))
		}
		select {
		case c.parsed <- next:
		case <-c.open.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// detect finds out how the client separates messages.
func (c *conn) detect() {
	framed := hasHeaders(c.in)
	c.writing.Lock()
	defer c.writing.Unlock()
	c.framed = framed
}

// next returns the next message for the SDK. It starts ordinary calls itself, and answers a line that is no message with an
// error, because the SDK would end the session with all its runs.
func (c *conn) next() (jsonrpc.Message, error) {
	for c.err == nil {
		o := outline{framed: c.framed}
		c.err = c.readMessage(&o)
		if fault, ok := errors.AsType[*jsonrpc.Error](c.err); ok {
			return nil, errors.Join(c.err, c.send(gateway.ErrorAnswer(nil, fault)))
		}
		line := bytes.Trim(c.line, " \t\r\n")
		if len(line) == 0 && !o.long && (!c.framed || c.err != nil) {
			continue
		}
		if !c.begun {
			c.begun = true
			c.piped = !o.opens() || c.in.Buffered() > 0
		}
		if m, err := c.read(&o, line); m != nil || err != nil {
			return m, err
		}
	}
	return nil, c.err
}

// readMessage reads a message into c.line and o. One that is too long leaves only o.
func (c *conn) readMessage(o *outline) error {
	if c.line = c.line[:0]; cap(c.line) > 1<<20 {
		c.line = nil // such messages are rare
	}
	if c.framed {
		return c.readFrame(o)
	}
	for {
		part, err := c.in.ReadSlice('\n')
		c.keep(o, part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// keep adds a part of a message to c.line and o.
func (c *conn) keep(o *outline, part []byte) {
	o.add(part)
	if o.long = o.long || len(c.line)+len(bytes.TrimRight(part, "\r\n")) > maxInput; o.long {
		c.line = nil
	} else {
		c.line = append(c.line, part...)
	}
}

// read returns the message in a line if it is for the SDK, else it answers the line and returns nil.
func (c *conn) read(o *outline, line []byte) (jsonrpc.Message, error) {
	// Calls before the handshake go to the SDK, so that none overtakes it.
	if c.take != nil && c.opened.Load() && !o.long {
		if c.answered != nil && c.answered(c.session, line) {
			return nil, nil
		}
		call, fault := c.take(c.life, c.session, line)
		if call != nil {
			c.line = nil // it belongs to the call
			c.start(call, len(line))
			return nil, nil
		}
		if fault != nil { // the client would take its id for the other call
			return nil, c.send(gateway.ErrorAnswer(nil, fault))
		}
	}
	m, fault := o.message(line)
	if fault == nil {
		return m, nil
	}
	return c.refuse(o, fault)
}

// admit waits until a request of so many bytes may be answered, and returns the weight that it took. After the end of life,
// which cancels all calls, it takes none: the answer comes at once.
func (c *conn) admit(bytes int) int64 {
	weight := weight(bytes)
	if c.unanswered.Acquire(c.life, weight) != nil {
		return 0
	}
	return weight
}

// start runs an ordinary call of so many bytes.
func (c *conn) start(call *gateway.Call, bytes int) {
	weight := c.admit(bytes)
	counted := c.direct.TryAcquire(1) // fails only after the end of life
	run := func() {
		defer c.unanswered.Release(weight)
		if call.Lasts() { // until its client ends
			defer context.AfterFunc(c.input, call.Close)()
		}
		if counted {
			defer c.direct.Release(1)
		}
		c.answer(call)
	}
	select {
	case c.calls <- run:
	default:
		go c.work(run)
	}
}

// work runs a call, and then others that come while it waits.
func (c *conn) work(run func()) {
	for {
		run()
		if !c.resting.TryAcquire(1) {
			return
		}
		select {
		case run = <-c.calls:
			c.resting.Release(1)
		case <-c.open.Done():
			return
		}
	}
}

// answer answers an ordinary call.
func (c *conn) answer(call *gateway.Call) {
	defer call.Close()
	answer := call.Answer(c.send)
	if answer == nil {
		return
	}
	if err := c.send(answer); err != nil { // a lost answer ends the session, as in the SDK
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lost == nil {
			c.lost = err
			go c.session.Close()
		}
	}
}

// refuse answers an invalid line with an error. If the line answers a call of ours, that call gets the error.
func (c *conn) refuse(o *outline, fault *jsonrpc.Error) (jsonrpc.Message, error) {
	id := o.id()
	// "If there was an error in detecting the id in the Request object (e.g. Parse error/Invalid Request), it MUST be
	// Null." What looks like an id in a text that is not JSON may be the id of another call.
	if fault.Code == jsonrpc.CodeParseError {
		id = nil
	}
	answer := gateway.ErrorAnswer(id, fault)
	switch {
	case !o.answers() || fault.Code == jsonrpc.CodeParseError:
		return nil, c.send(answer)
	case id != nil:
		return jsonrpc.DecodeMessage(answer)
	}
	return nil, nil
}
