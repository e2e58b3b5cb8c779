package rpc

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

var (
	// ErrTooLarge is the cause of a request whose result was over the limit and was not taken.
	ErrTooLarge = errors.New("the result is larger than the limit")

	// ErrNotSent marks an error before which nothing has left that the server could have understood.
	ErrNotSent = errors.New("nothing was sent")

	// ErrBroken is the cause of a request that the server answered with something that is no message.
	ErrBroken = errors.New("the server sent an answer that is no valid message")
)

// A Request is one request of our own.
type Request struct {
	Method string
	Params json.RawMessage // a JSON object

	Version string // of the protocol that the session speaks

	Name    string            // of the tool, for servers that route by the header Mcp-Name
	Headers map[string]string // more headers where the request goes over HTTP, such as Mcp-Param-Region

	// Sent is asked immediately before the request leaves, and whether it may; nil: it may.
	Sent func() bool
}

// Leave asks Sent.
func (r *Request) Leave() bool { return r.Sent == nil || r.Sent() }

// Message is the request as it goes over the wire.
func (r *Request) Message(id int64) []byte {
	b := make([]byte, 0, len(r.Params)+len(r.Method)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, r.Method...)
	b = append(b, '"')
	if len(r.Params) > 0 {
		b = append(append(b, `,"params":`...), r.Params...)
	}
	return append(b, '}')
}

// Cancelled is the notification that nobody waits for the answer to a request any more.
func Cancelled(id int64) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
		strconv.FormatInt(id, 10) + `,"reason":"the caller does not wait any more"}}`)
}

// FirstID is the first id of our own requests on a connection. Those of the SDK begin at 1 and do not come that far.
// It is a number, and one of 31 bits, because not all servers take all that the protocol allows.
const FirstID = 1_000_000_000

// A Failure is a request without a result.
type Failure struct {
	Err        error
	Sent       bool          // the request may have reached the server's tool
	Lost       bool          // the session is over, or unknown to the server
	Trouble    bool          // the server, or the way to it, does not work, whatever is asked
	RetryAfter time.Duration // what the server asks for, 0 if nothing
}

// Error is the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// A DialError is a mistake in how a server is to be reached, with what to do about it.
type DialError struct {
	Hint string
	Err  error
}

func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *DialError) Unwrap() error { return e.Err }
