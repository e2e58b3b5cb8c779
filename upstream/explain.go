package upstream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Down is the Dial of a server that is known and cannot be reached now. The message says why, the hint what to do.
func Down(msg, hint string) func(context.Context) (mcp.Transport, error) {
	return func(context.Context) (mcp.Transport, error) {
		return nil, &rpc.DialError{Hint: hint, Err: errors.New(msg)}
	}
}

// A cause is an error whose text has been cleared of secrets.
type cause struct {
	text string
	err  error
}

func (c cause) Error() string { return c.text }
func (c cause) Unwrap() error { return c.err }

// explainer is implemented by transports that know more of a failure than the error says. Both texts may be empty.
type explainer interface {
	Explain(err error) (msg, hint string)
}

// unavailable is the error of a server that cannot be reached: in our words where we have them.
func unavailable(server string, t mcp.Transport, err error) *stages.Error {
	msg, hint := "", "call list_all_tools to see which servers work"
	var dial *rpc.DialError
	if errors.As(err, &dial) {
		hint = dial.Hint
	} else if e, ok := t.(explainer); ok {
		m, h := e.Explain(err)
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
	var wait interface{ Wait() time.Duration }
	if errors.As(err, &wait) {
		e.RetryAfter = wait.Wait()
	}
	e.Err = cause{scrubbed(t, rpc.WithoutRequest(err.Error())), err}
	return e
}

// soFar says what has been heard of a server that has not answered yet.
func soFar(t mcp.Transport) string {
	text := ""
	if d, ok := t.(interface{ Note() string }); ok && d.Note() != "" {
		text += "; it " + d.Note()
	}
	if d, ok := t.(interface{ Tail() string }); ok && d.Tail() != "" {
		text += "; last on standard error: " + d.Tail()
	}
	return text
}

// listing begins the error of a tool list that could not be read.
const listing = "reading the tool list: "

// plainCause strips the layers of the SDK from a message, which say how it works rather than what is wrong.
func plainCause(err error) string {
	var wire *jsonrpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within the time allowed for a start"
	case errors.As(err, &wire) && wire.Code != codeRejected:
		if strings.HasPrefix(err.Error(), listing) {
			return "refused to list its tools: " + rpc.Shorten(wire.Message, 500)
		}
		return "refused the session: " + rpc.Shorten(wire.Message, 500)
	case errors.Is(err, mcp.ErrConnectionClosed):
		return "the connection was closed"
	}
	text := rpc.WithoutRequest(err.Error())
	for _, layer := range []string{`calling "initialize": `, `calling "server/discover": `, `sending "initialize": `, "rejected by transport: "} {
		text = strings.ReplaceAll(text, layer, "")
	}
	return rpc.Shorten(text, 500)
}

// codeRejected is what the SDK puts around errors of a transport that concern one message only.
const codeRejected = -32005

// scrubbed is a text that came over a transport without the secrets that the transport knows of.
func scrubbed(t mcp.Transport, text string) string {
	if s, ok := t.(interface{ Scrub(text string) string }); ok {
		return s.Scrub(text)
	}
	return text
}
