package stdio

import (
	"bufio"
	"bytes"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/gateway"
)

// readAll reads messages until the end of the input. It runs beside the SDK, which takes its messages one by one.
func (c *conn) readAll() {
	for {
		m, err := c.next()
		select {
		case c.parsed <- parsed{m, err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// next returns the next message for the SDK. It starts ordinary calls itself, and answers a line that is no message with an
// error, because the SDK would end the session with all its runs.
func (c *conn) next() (jsonrpc.Message, error) {
	for c.err == nil {
		c.waiting.wait(c.life, nil, (*backlog).hasRoom)
		var o outline
		c.err = c.readLine(&o)
		line := bytes.Trim(c.line, " \t\r\n")
		if len(line) == 0 && !o.long {
			continue
		}
		if !c.begun {
			c.begun = true
			c.piped = !o.opens() || c.in.Buffered() > 0
		}
		if m, err := c.take(&o, line); m != nil || err != nil {
			return m, err
		}
	}
	return nil, c.err
}

// readLine reads a line into c.line and o. A line that is too long leaves only o.
func (c *conn) readLine(o *outline) error {
	if c.line = c.line[:0]; cap(c.line) > 1<<20 {
		c.line = nil // such lines are rare
	}
	for {
		part, err := c.in.ReadSlice('\n')
		o.add(part)
		if o.long = o.long || len(c.line)+len(bytes.TrimRight(part, "\r\n")) > maxInput; o.long {
			c.line = nil
		} else {
			c.line = append(c.line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// take returns the message in a line if it is for the SDK, else it answers the line and returns nil.
func (c *conn) take(o *outline, line []byte) (jsonrpc.Message, error) {
	// Calls before the handshake go to the SDK, so that none overtakes it.
	if c.direct != nil && c.opened.Load() && !o.long {
		call, fault := c.direct(c.life, c.session, line)
		if call != nil {
			c.line = nil // it belongs to the call
			c.waiting.add(1, 1, len(line))
			go c.answer(call, len(line))
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

// answer runs an ordinary call.
func (c *conn) answer(call *gateway.Call, bytes int) {
	defer c.waiting.add(-1, -1, -bytes)
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
