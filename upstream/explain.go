package upstream

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/stdio"
)

// Down is the Dial of a server that is known to be out of reach. The message says why, the hint what to do.
func Down(msg, hint string) func(context.Context) (mcp.Transport, error) {
	return func(context.Context) (mcp.Transport, error) {
		return nil, &rpc.DialError{Hint: hint, Err: errors.New(msg)}
	}
}

// A cleanError is an error whose text has no secrets any more.
type cleanError struct {
	text string
	err  error
}

func (c cleanError) Error() string { return c.text }
func (c cleanError) Unwrap() error { return c.err }

// unavailable is the error of a server that cannot be reached, in our words if the transport explains it.
func unavailable(server string, t mcp.Transport, err error) *stages.Error {
	msg, hint := "", "call list_all_tools to see which servers work"
	if dial, ok := errors.AsType[*rpc.DialError](err); ok {
		hint = dial.Hint
	} else if e, ok := t.(interface {
		Explain(err error) (msg, hint string)
	}); ok {
		var advice string
		msg, advice = e.Explain(err)
		hint = cmp.Or(advice, hint)
	}
	if msg == "" {
		msg = plainCause(err)
	}
	e := stages.Errorf(stages.ServerUnavailable, hint, "server %q: %s", server, hideIn(t, msg))
	var wait interface{ Wait() time.Duration }
	if errors.As(err, &wait) {
		e.RetryAfter = wait.Wait()
	}
	e.Err = cleanError{hideIn(t, rpc.WithoutRequest(err.Error())), err}
	return e
}

// outputOf is what a program has written: the last lines on standard error, and something odd but harmless.
func outputOf(t mcp.Transport) (stderr, note string) {
	if p, ok := t.(*stdio.Transport); ok {
		return p.StderrTail(), p.Note()
	}
	return "", ""
}

// startOutput is what a server that has not answered yet has written so far.
func startOutput(t mcp.Transport) (text string) {
	stderr, note := outputOf(t)
	if note != "" {
		text += "; it " + note
	}
	if stderr != "" {
		text += "; last on standard error: " + stderr
	}
	return text
}

// listErrorPrefix begins the error of a tool list that could not be read.
const listErrorPrefix = "reading the tool list: "

// plainCause removes from a message what the SDK adds about its own work.
func plainCause(err error) string {
	wire := rpc.AnswerIn(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within the time allowed for a start"
	case wire != nil:
		if strings.HasPrefix(err.Error(), listErrorPrefix) {
			return "refused to list its tools: " + texts.Cut(wire.Message, 500)
		}
		return "refused the session: " + texts.Cut(wire.Message, 500)
	case errors.Is(err, mcp.ErrConnectionClosed):
		return "the connection was closed"
	}
	text := rpc.WithoutRequest(err.Error())
	for _, layer := range []string{`calling "initialize": `, `calling "server/discover": `, `sending "initialize": `, "rejected by transport: "} {
		text = strings.ReplaceAll(text, layer, "")
	}
	return texts.Cut(text, 500)
}

// hideIn removes the secrets that a transport knows from a text that came over it.
func hideIn(t mcp.Transport, text string) string {
	if s, ok := t.(interface{ Hide(text string) string }); ok {
		return s.Hide(text)
	}
	return text
}
