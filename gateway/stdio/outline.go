package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxInput = 16 << 20 // bytes of a message
	maxDepth = 900      // of its nesting: at 1000 the SDK ends the session
	maxField = 1 << 10  // bytes read of a member; ids are shorter
)

// An outline collects the outer members of a message of any length, in bounded memory.
type outline struct {
	framed          bool // behind a header; else the message is a line
	long            bool // longer than maxInput
	depth, deepest  int
	quoted, escaped bool
	member          []byte            // the current member, without nested values
	members         map[string][]byte // the values of the members in outlined
	twice           string            // a repeated one
}

// outlined has the members that decide the kind of a message, as written.
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

// id returns the id for an answer, or nil.
func (o *outline) id() json.RawMessage {
	id := o.members[`"id"`]
	if o.twice == `"id"` || len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') || !json.Valid(id) {
		return nil
	}
	return id
}

// exactID reports whether the SDK answers with the same id.
func (o *outline) exactID() bool {
	value := o.members[`"id"`]
	if len(value) == 0 || value[0] == '"' || string(value) == "null" {
		return true
	}
	return o.id() != nil && !gateway.RoundsID(value)
}

// answers reports whether the message is an answer. To answer it could start an endless exchange.
func (o *outline) answers() bool {
	return o.members[`"method"`] == nil && (o.members[`"result"`] != nil || o.members[`"error"`] != nil)
}

// opens reports whether the message is a handshake, whose answer a client waits for.
func (o *outline) opens() bool {
	method := string(o.members[`"method"`])
	return method == `"initialize"` || method == `"server/discover"`
}

// message returns the message in a line, or the error of one that the SDK cannot read.
func (o *outline) message(line []byte) (jsonrpc.Message, *jsonrpc.Error) {
	switch {
	case o.long:
		return nil, invalid("the message is longer than %s: send less, or let a stage of the pipeline fetch the data", texts.Bytes(maxInput))
	case o.deepest > maxDepth:
		return nil, invalid("the message is nested deeper than %d levels: send flatter data, or send it as a string", maxDepth)
	case !json.Valid(line):
		err := json.Unmarshal(line, new(json.RawMessage))
		rule := "send one message per line"
		if o.framed {
			rule = "send as many bytes as Content-Length says"
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("parse error: the message is not JSON (%v): %s", err, rule)}
	case line[0] == '[':
		return nil, invalid("the message is an array: send the messages of a batch one by one, each on a line")
	case line[0] != '{':
		return nil, invalid("the message is not an object: send a JSON-RPC 2.0 request or notification")
	case o.twice != "":
		return nil, invalid("the message has the member %s twice", o.twice)
	case !o.exactID():
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: gateway.RoundedID}
	case o.members[`"method"`] == nil && !o.answers():
		return nil, invalid("the message has no method")
	}
	if o.members[`"id"`] == nil && string(o.members[`"method"`]) == `"initialized"` { // as clients of early versions write it
		return &jsonrpc.Request{Method: "notifications/initialized"}, nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return m, nil
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: " + fmt.Sprintf(format, args...)}
}
