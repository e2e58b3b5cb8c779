package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// askPrefix begins the ids of the questions that the gateway sends beside the SDK. The SDK's own ids are numbers.
const askPrefix = "mcsh-asks-"

// callKey is the context key of the [Call] that a tool's handler runs for.
type callKey struct{}

// answers are the questions sent beside the SDK that wait for their answers.
type answers struct {
	mu   sync.Mutex
	open map[string]*openAsk // by id; guarded by mu
}

// An openAsk is a question that waits for the answer of one session.
type openAsk struct {
	session *mcp.ServerSession
	answer  chan answered // holds one
}

// answered is a client's answer.
type answered struct {
	result json.RawMessage
	err    error
}

// asked is a request to a client.
type asked struct {
	Version string `json:"jsonrpc"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// expect registers a question.
func (a *answers) expect(s *mcp.ServerSession) (id string, answer <-chan answered, forget func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id = askPrefix + strings.ToLower(rand.Text())
	o := &openAsk{s, make(chan answered, 1)}
	if a.open == nil {
		a.open = map[string]*openAsk{}
	}
	a.open[id] = o
	return id, o.answer, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, id)
	}
}

// take returns the question of a session with an id, at most once; nil if none waits.
func (a *answers) take(s *mcp.ServerSession, id string) *openAsk {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.open[id]
	if o == nil || o.session != s {
		return nil
	}
	delete(a.open, id)
	return o
}

// Answered takes the answer of a session to a question that was sent beside the SDK, and reports whether the message is one.
// It drops an answer that nobody waits for.
func (f *front) Answered(ss *mcp.ServerSession, message []byte) bool {
	if !bytes.Contains(message, []byte(askPrefix)) {
		return false
	}
	var version, id, result, fault json.RawMessage
	known := map[string]*json.RawMessage{"jsonrpc": &version, "id": &id, "result": &result, "error": &fault}
	if !members(message, known) || !bytes.HasPrefix(id, []byte(`"`+askPrefix)) || !json.Valid(message) {
		return false
	}
	o := f.answers.take(ss, string(bytes.Trim(id, `"`)))
	switch {
	case o == nil:
	case result == nil:
		o.answer <- answered{err: errors.New("the client answers with an error")}
	case len(result) > mostAnswer:
		o.answer <- answered{err: fmt.Errorf("the answer has %d bytes, more than %d", len(result), mostAnswer)}
	default:
		o.answer <- answered{result: bytes.Clone(result)}
	}
	return true
}

// put sends a question on the call's own stream, and waits for the answer. A question that ends before is cancelled.
func (c *Call) put(ctx context.Context, q inquiry) (json.RawMessage, error) {
	id, answer, forget := c.front.answers.expect(c.server)
	defer forget()
	if err := c.send(asked{"2.0", id, methodOf(q.request), q.request}); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		return a.result, a.err
	case <-ctx.Done():
		_ = c.send(notification{"2.0", "notifications/cancelled", &mcp.CancelledParams{RequestID: id}})
		return nil, context.Cause(ctx)
	}
}

// errAnswered is the error of a message that comes after the answer to its call.
var errAnswered = errors.New("the call is answered")

// send sends a message before the answer, one at a time.
func (c *Call) send(message any) error {
	text, err := encoded(message)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out == nil {
		return errAnswered
	}
	return c.out(text)
}
