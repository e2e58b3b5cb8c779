package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

var (
	// ErrTooLarge is the cause of a request whose result was over the limit.
	ErrTooLarge = errors.New("the result is larger than the limit")

	// ErrNotSent marks an error before which nothing was sent that the server could have understood.
	ErrNotSent = errors.New("nothing was sent")

	// ErrClosed is the cause of a request on a connection that either side has closed.
	ErrClosed = errors.New("the connection is closed")

	// ErrBroken is the cause of a request that the server answered with an invalid message.
	ErrBroken = errors.New("the server sent an answer that is not a valid message")
)

// A TooLarge is an [ErrTooLarge] with its numbers.
type TooLarge struct {
	Size int64 // bytes of the message; 0: more than Max
	Max  int64 // the limit in bytes
}

func (e *TooLarge) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("the message with the result has more than %d bytes", e.Max)
	}
	return fmt.Sprintf("the message with the result has %d bytes, and at most %d are taken", e.Size, e.Max)
}

// Is makes it an [ErrTooLarge].
func (e *TooLarge) Is(target error) bool { return target == ErrTooLarge }

// NormalizeClosed returns err with [ErrClosed] instead of [io.ErrClosedPipe], with which pipes in memory end: callers
// have pipes of their own, where that error means something else.
func NormalizeClosed(err error) error {
	switch {
	case !errors.Is(err, io.ErrClosedPipe):
		return err
	case errors.Is(err, ErrNotSent):
		return fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	return ErrClosed
}

// A Request is one request of our own.
type Request struct {
	Method string
	Params json.RawMessage // a JSON object

	Version string // of the protocol that the session speaks

	Name    string            // of the tool, for servers that route by the header Mcp-Name
	Headers map[string]string // more headers of HTTP, such as Mcp-Param-Region

	// Lease counts the memory of the answer, even if it is an error; nil: it is not counted.
	Lease *memory.Lease

	// Progress is called with the server's progress notifications, and must not block. The parameters then have Token as
	// their progressToken, which no other request of the connection has. Nil: no progress is asked for.
	Progress func(Progress)
	Token    int64

	// Ask answers a question of the server in the middle of the request, for as long as ctx and the request last; an error
	// declines it. It is called in goroutines of its own, and must be set for all requests in whose middle servers may ask.
	Ask       func(ctx context.Context, q Question) (json.RawMessage, error)
	questions atomic.Int32 // so far

	// Task is the id of the task that the request stands for: it is never sent, but given to [InFlight.Hold].
	Task string

	// About is the task that the request is about: what the server asks in its middle, it asks about the task. Nil: none.
	About *Request

	// Acknowledged is called with the URIs of the resources whose changes the server will report, for a request of the method
	// [Listen]. It must not block. Nil: nobody waits for that.
	Acknowledged func(uris []string)

	// BeforeSend is called immediately before the request is sent, and says whether it may be; nil: it may.
	BeforeSend func() bool
}

// MaySend calls BeforeSend.
func (r *Request) MaySend() bool { return r.BeforeSend == nil || r.BeforeSend() }

// Message is the request as it is sent.
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

// Cancelled is the notification that a request is cancelled.
func Cancelled(id int64) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
		strconv.FormatInt(id, 10) + `,"reason":"the caller does not wait any more"}}`)
}

// FirstID is the first id of our own requests on a connection. Those of the SDK begin at 1 and do not reach it. It is a
// number of 31 bits, because some servers do not accept everything that the protocol allows.
const FirstID = 1_000_000_000

// A Failure is a request without a result.
type Failure struct {
	Err         error
	Sent        bool          // the request may have reached the server's tool
	Lost        bool          // the session is over, or unknown to the server
	Unavailable bool          // the server or the connection to it fails for every request
	RetryAfter  time.Duration // as the server asks; 0: it does not
}

// Error is the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// A DialError is a mistake in the address or command of a server, with a hint.
type DialError struct {
	Hint string
	Err  error
}

func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *DialError) Unwrap() error { return e.Err }
