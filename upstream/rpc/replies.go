package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	maxReplies   = 16  // being sent to one server
	maxRequestID = 256 // bytes of an id
)

// A Role is what a client does for the server of a session, beside answering ping.
type Role struct {
	Roots json.RawMessage // the result of roots/list; nil: it is refused

	// Asked says that the client has declared that it answers questions. A question that may belong to several requests, or to
	// none, is then declined, and Unnamed is called, which must not block; else all questions are refused. unanswered says that
	// a request has ended without a response: nothing is certain until the server answers it.
	Asked   bool
	Unnamed func(unanswered bool)

	// Log is called with the parameters of notifications/message, which it must not keep, and must not block. Nil: they
	// are ignored.
	Log func(params []byte)

	// Seen returns what is called with every message of ours (out) and of the server, which it must not keep, and must not block.
	// Nil, or if it returns nil: nobody looks.
	Seen func() func(out bool, msg []byte)
}

// See shows a message to those who watch. Without them it is not made.
func (r *Role) See(out bool, msg func() []byte) {
	if r.Seen == nil {
		return
	}
	if look := r.Seen(); look != nil {
		look(out, msg())
	}
}

// Replies answers requests of a server: ping, roots/list, questions, and an error for everything else. Replies are sent in
// the background. A server that does not read them gets no more, so that they cannot pile up here.
type Replies struct {
	Role     Role // set before the first request
	InFlight InFlight

	sending atomic.Int32 // replies that are on their way

	mu   sync.Mutex
	open map[string]context.CancelFunc // questions, by their ids as they were sent; guarded by mu
}

// answers to requests of servers.
const (
	pong    = `"result":{}`
	refusal = `"error":{"code":-32601,"message":"this client does not do that"}`
)

// Send answers a request, in a goroutine of its own. came is the request of ours on whose stream it came, nil if on none.
func (r *Replies) Send(request Envelope, came *Request, send func(msg []byte)) {
	if len(request.ID) > maxRequestID {
		return
	}
	method := Text(request.Method)
	switch {
	case method == "ping":
		r.reply(request.ID, pong, send)
	case method == "roots/list" && r.Role.Roots != nil:
		r.reply(request.ID, `"result":`+string(r.Role.Roots), send)
	case !IsQuestion(method) || !r.Role.Asked:
		r.reply(request.ID, refusal, send)
	default:
		r.question(method, request, came, send)
	}
}

// question asks the caller of the request or task in whose middle the server asks, or declines.
func (r *Replies) question(method string, request Envelope, came *Request, send func(msg []byte)) {
	of, named := r.asker(request.Params, came)
	if of == nil && !named && r.Role.Unnamed != nil {
		r.Role.Unnamed(r.InFlight.hasUnanswered())
	}
	if of == nil || len(request.Params) > MaxQuestion || !of.admit() {
		r.reply(request.ID, declined(method), send)
		return
	}
	r.ask(string(request.ID), Question{method, bytes.Clone(request.Params), !named}, of, send)
}

// reply sends a reply.
func (r *Replies) reply(id json.RawMessage, answer string, send func(msg []byte)) {
	if r.sending.Add(1) > maxReplies {
		r.sending.Add(-1)
		return
	}
	msg := replyTo(string(id), answer)
	go func() {
		defer r.sending.Add(-1)
		send(msg)
	}()
}

func replyTo(id, answer string) []byte {
	return []byte(strings.Join([]string{`{"jsonrpc":"2.0","id":`, id, `,`, answer, `}`}, ""))
}

// ask asks the caller of a request, and sends the answer. An id that is still open is no second question. A question that
// the server has cancelled, or whose request has ended, gets no answer.
func (r *Replies) ask(id string, q Question, of *Request, send func(msg []byte)) {
	ctx, cancel := context.WithCancel(context.Background()) // Ask ends with its call
	r.mu.Lock()
	_, twice := r.open[id]
	if r.open == nil {
		r.open = map[string]context.CancelFunc{}
	}
	if !twice {
		r.open[id] = cancel
	}
	r.mu.Unlock()
	if twice {
		cancel()
		return
	}
	go func() {
		defer cancel()
		result, err := of.Ask(ctx, q)
		r.mu.Lock()
		delete(r.open, id)
		r.mu.Unlock()
		if ctx.Err() == nil && !errors.Is(err, ErrEnded) {
			send(replyTo(id, answerTo(q.Method, result, err)))
		}
	}()
}

// Cancel ends the question that notifications/cancelled names, if it is open.
func (r *Replies) Cancel(params []byte) {
	var id json.RawMessage
	if len(params) > maxCancelled || !Members(params, func(name, value []byte) {
		if string(name) == "requestId" {
			id = value
		}
	}) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.open[string(id)]; cancel != nil {
		cancel()
	}
}

// maxCancelled bounds the parameters of notifications/cancelled that are read, in bytes.
const maxCancelled = 64 << 10

// Take handles what a server sends beside answers: came is the request of ours on whose stream it came, nil if on none. It
// reports whether it was a request or one of the notifications that Replies handles.
func (r *Replies) Take(e Envelope, came *Request, send func(msg []byte)) bool {
	switch {
	case e.Method == nil:
		return false
	case e.ID != nil:
		r.Send(e, came, send)
	case string(e.Method) == `"notifications/cancelled"`:
		r.Cancel(e.Params)
	case string(e.Method) == `"notifications/message"`:
		if r.Role.Log != nil {
			r.Role.Log(e.Params)
		}
	default:
		return false
	}
	return true
}

// answerTo is the answer to a question.
func answerTo(method string, result json.RawMessage, err error) string {
	if err == nil {
		return `"result":` + string(result)
	}
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return declined(method)
	}
	encoded, err := json.Marshal(wire)
	if err != nil {
		return declined(method)
	}
	return `"error":` + string(encoded)
}
