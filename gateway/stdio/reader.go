package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

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
