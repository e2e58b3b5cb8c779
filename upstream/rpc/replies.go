package rpc

import (
	"strings"
	"sync/atomic"
)

const (
	maxReplies   = 16  // being sent to one server
	maxRequestID = 256 // bytes of an id
)

// Replies answers requests of a server: ping, and an error for everything else. Replies are sent in the background. A
// server that does not read them gets no more, so that they cannot pile up here.
type Replies struct{ inFlight atomic.Int32 }

// Send answers a request, in a goroutine of its own.
func (r *Replies) Send(request Envelope, send func(msg []byte)) {
	if len(request.ID) > maxRequestID {
		return
	}
	if r.inFlight.Add(1) > maxReplies {
		r.inFlight.Add(-1)
		return
	}
	answer := `"error":{"code":-32601,"message":"this client does not do that"}`
	if string(request.Method) == `"ping"` {
		answer = `"result":{}`
	}
	msg := strings.Join([]string{`{"jsonrpc":"2.0","id":`, string(request.ID), `,`, answer, `}`}, "")
	go func() {
		defer r.inFlight.Add(-1)
		send([]byte(msg))
	}()
}
