package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	// decodedFactor is the memory to decode a long message, as a multiple of its length.
	decodedFactor = 3
	// longInitialize is the length above which an initialize is cut to its used members before the SDK keeps it.
	longInitialize = 4 << 10
	// retryAfter is the Retry-After of a 503, in seconds.
	retryAfter = "1"
)

// A refusal is the HTTP error for a request whose message nobody reads.
type refusal struct {
	code int
	text string
}

func (f *refusal) write(w http.ResponseWriter) {
	if f.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, f.text, f.code)
}

// full is the refusal of a message that finds no memory.
func full(err error) *refusal {
	return &refusal{http.StatusServiceUnavailable, err.Error()}
}

// message is the body of a request, read ahead. Its lease counts its bytes until the request ends.
type message struct {
	io.Reader
	room  *memory.Lease
	data  []byte
	whole bool // whether data is all of the body
}

// Close implements [io.Closer]. The lease ends with the request.
func (m *message) Close() error { return nil }

// forget gives the memory of the message back before its answer.
func (m *message) forget() {
	m.data, m.Reader = nil, bytes.NewReader(nil)
	m.room.Close()
}

// receive reads the body of a request, charges it as it comes, and puts it back for the next reader. Only a tools/call may
// be longer than the limit "message", and must name its method within that limit.
func (f *front) receive(ctx context.Context, r *http.Request) (*message, *refusal) {
	if r.ContentLength > f.http.Body {
		return nil, f.tooLong(r.ContentLength)
	}
	m := &message{room: f.http.Bodies.Lease()}
	if refused := f.read(ctx, r, m); refused != nil {
		m.room.Close()
		return nil, refused
	}
	r.Body = m
	return m, nil
}

func (f *front) read(ctx context.Context, r *http.Request, m *message) *refusal {
	size := min(f.http.Message, 4<<10)
	if r.ContentLength > 0 {
		size = min(f.http.Message, r.ContentLength)
	}
	size += bytes.MinRead
	if err := m.room.Take(ctx, size); err != nil {
		return full(err)
	}
	var err error
	m.data = make([]byte, 0, size)
	for err == nil {
		if len(m.data) == cap(m.data) {
			if refused := f.makeRoom(m); refused != nil {
				return refused
			}
		}
		var n int
		n, err = r.Body.Read(m.data[len(m.data):cap(m.data)])
		m.data = m.data[:len(m.data)+n]
	}
	m.whole = err == io.EOF
	m.Reader = io.MultiReader(bytes.NewReader(m.data), failing{err})
	return f.check(m)
}

// failing returns the error of an earlier reader.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// makeRoom doubles the buffer of a message, unless the message is too long.
func (f *front) makeRoom(m *message) *refusal {
	have := int64(cap(m.data))
	if refused := f.bound(m, have); refused != nil {
		return refused
	}
	if err := m.room.Grow(2 * have); err != nil {
		return full(err)
	}
	m.data = append(make([]byte, 0, 2*have), m.data...)
	_ = m.room.Grow(-have)
	return nil
}

// check refuses a message that is too long, and charges the memory to decode a long one.
func (f *front) check(m *message) *refusal {
	n := int64(len(m.data))
	if n <= f.http.Message || !m.whole && n <= f.http.Body { // the reader of an incomplete body refuses it
		return nil
	}
	if refused := f.bound(m, n); refused != nil {
		return refused
	}
	if !onlyMethod(m.data) {
		return f.tooLongFor(n)
	}
	if err := m.room.Grow(decodedFactor * n); err != nil {
		return full(err)
	}
	return nil
}

// bound refuses a message of at least n bytes if it is too long, or too long for what it begins as.
func (f *front) bound(m *message, n int64) *refusal {
	switch {
	case n > f.http.Body:
		return f.tooLong(n)
	case n > f.http.Message && string(firstMethod(m.data[:f.http.Message])) != quotedToolsCall:
		return f.tooLongFor(n)
	}
	return nil
}

func (f *front) tooLong(n int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(
		"the message is longer than %d bytes (limit body): %d came; the operator can raise it with --limit body=%s", f.http.Body, n, kib(max(n, 2*f.http.Body)),
	)}
}

func (f *front) tooLongFor(n int64) *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf(
		"the message is longer than %d bytes (limit message): at least %d came. Only a tools/call may be longer, with its method within "+
			"the first %d bytes; the operator can raise this with --limit message=%s", f.http.Message, n, f.http.Message, kib(max(n, 2*f.http.Message)),
	)}
}

// kib writes a number of bytes as --limit takes it, rounded up.
func kib(n int64) string { return fmt.Sprintf("%dKiB", (min(n, math.MaxInt64-1023)+1023)>>10) }

// firstMethod returns the method in the beginning of a message, as written, or nil.
func firstMethod(begin []byte) (method []byte) {
	rpc.Members(begin, func(name, value []byte) {
		if method == nil && string(name) == "method" {
			method = value
		}
	})
	return method
}

// onlyMethod reports whether just one member of a message can be read as its method.
func onlyMethod(data []byte) bool {
	n := 0
	return rpc.Members(data, func(name, _ []byte) {
		if bytes.IndexByte(name, '\\') >= 0 || strings.EqualFold(string(name), "method") {
			n++
		}
	}) && n == 1
}

// cutInitialize reduces a long initialize to its used members. It leaves short messages alone and refuses a long batch: one
// message opens a session.
func (f *front) cutInitialize(m *message) *refusal {
	if !m.whole || len(m.data) <= longInitialize {
		return nil
	}
	var initialize struct {
		Version string               `json:"jsonrpc"`
		ID      json.RawMessage      `json:"id,omitempty"`
		Method  string               `json:"method"`
		Params  mcp.InitializeParams `json:"params"`
	}
	err := json.Unmarshal(m.data, &initialize)
	trim(&initialize.Params)
	short, _ := json.Marshal(initialize)
	if err != nil || initialize.Method != "initialize" || len(short) > longInitialize {
		what := "is not one"
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			what = fmt.Sprintf("is not valid JSON: %v", syntax)
		}
		return &refusal{http.StatusBadRequest, fmt.Sprintf("a session begins with initialize; this message of %d bytes %s", len(m.data), what)}
	}
	m.data, m.Reader = short, bytes.NewReader(short)
	return nil
}
