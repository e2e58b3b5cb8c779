package upstream

import (
	"context"
	"errors"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialError is a mistake in how a server is to be reached, with what to do about it.
type dialError struct {
	hint string
	err  error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// A cause is an error whose text has been cleared of secrets.
type cause struct {
	text string
	err  error
}

func (c cause) Error() string { return c.text }
func (c cause) Unwrap() error { return c.err }

// explainer is implemented by transports that know more of a failure than the error says. Both texts may be empty.
type explainer interface {
	explain(err error) (msg, hint string)
}

// unavailable is the error of a server that cannot be reached: in our words where we have them.
func unavailable(server string, t mcp.Transport, err error) *stages.Error {
	msg, hint := "", "call list_all_tools to see which servers work"
	var dial *dialError
	if errors.As(err, &dial) {
		hint = dial.hint
	} else if e, ok := t.(explainer); ok {
		m, h := e.explain(err)
		if m != "" {
			msg = m
		}
		if h != "" {
			hint = h
		}
	}
	if msg == "" {
		msg = plainCause(err)
	}
	e := stages.Errorf(stages.ServerUnavailable, hint, "server %q: %s", server, scrubbed(t, msg))
	e.Err = cause{scrubbed(t, withoutRequest(err.Error())), err}
	return e
}

// soFar says what has been heard of a server that has not answered yet.
func soFar(t mcp.Transport) string {
	text := ""
	if d, ok := t.(interface{ note() string }); ok && d.note() != "" {
		text += "; it " + d.note()
	}
	if d, ok := t.(interface{ tail() string }); ok && d.tail() != "" {
		text += "; last on standard error: " + d.tail()
	}
	return text
}

// plainCause strips the layers of the SDK from a message, which say how it works rather than what is wrong.
func plainCause(err error) string {
	var wire *jsonrpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within the time allowed for a start"
	case errors.As(err, &wire) && wire.Code != codeRejected:
		return "refused the session: " + shorten(wire.Message, 500)
	case errors.Is(err, mcp.ErrConnectionClosed):
		return "the connection was closed"
	}
	text := withoutRequest(err.Error())
	for _, layer := range []string{`calling "initialize": `, `calling "server/discover": `, `sending "initialize": `, "rejected by transport: "} {
		text = strings.ReplaceAll(text, layer, "")
	}
	return shorten(text, 500)
}

// codeRejected is what the SDK puts around errors of a transport that concern one message only.
const codeRejected = -32005
