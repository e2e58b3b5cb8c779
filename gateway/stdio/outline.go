package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	maxInput = 16 << 20 // one message of a client
	maxDepth = 900      // of its nesting; 1000 are too many for the SDK, which ends the session over them
	maxField = 1 << 10  // what is looked at of a member of a message; ids are shorter
)

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

// exactID reports whether the SDK answers with the id that the message has.
func (o *outline) exactID() bool {
	value := o.members[`"id"`]
	if len(value) == 0 || value[0] == '"' || string(value) == "null" {
		return true
	}
	return o.id() != nil && !gateway.RoundsID(value)
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
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: gateway.RoundedID}
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
