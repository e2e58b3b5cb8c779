package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway/forms"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// DefaultAskTimeout is how long one call may wait for its client's answers, all together.
const DefaultAskTimeout = 5 * time.Minute

// Bounds of the questions of one call of a client.
const (
	mostAsked = 64 // in all
	mostOpen  = 16 // that a client of the stateless era sees at once; others see one
)

// An asking puts the questions of servers to the client of one call.
type asking struct {
	client *stages.Asker
	put    putting
	turns  chan struct{}   // one for each question that the client sees at once
	call   context.Context // of the handler, whose values say which stream the questions take
	shut   context.Context // of the gateway

	mu       sync.Mutex
	asked    int            // questions so far; guarded by mu, as is everything below
	open     int            // of them, without an answer
	clock    *pausing.Clock // runs while a question is open
	rest     func()         // starts the clock again
	patience context.Context
}

// errUnanswered is the end of a question that nobody has answered.
var errUnanswered = errors.New("nobody has answered the question")

// ableKey is the context key of what the client of a request can answer: a [stages.Asker] without functions.
type ableKey struct{}

// forClient returns the context of a request with the abilities of its client: tasks, and answers to questions. Servers learn them.
func (g *Gateway) forClient(ctx context.Context, req mcp.Request) context.Context {
	if g.takesTasks(ctx, req) {
		ctx = context.WithValue(ctx, taskKey{}, true)
	}
	if g.o.Upstream == nil {
		return ctx
	}
	able := g.able(req)
	ctx = upstream.ForCaller(ctx, able)
	if able == nil {
		return ctx
	}
	return context.WithValue(ctx, ableKey{}, able)
}

// able returns what the client of a request can answer; nil: nothing.
func (g *Gateway) able(req mcp.Request) *stages.Asker {
	if g.o.AskTimeout <= 0 {
		return nil
	}
	a := abilities(req)
	a.Patience, a.Sampling = g.o.AskTimeout, a.Sampling && g.o.Sampling
	if !a.Form && !a.URL && !a.Sampling {
		return nil
	}
	return &a
}

// abilities reads the capabilities of a client. In the stateless era each request has them, and the SDK decodes them with every
// look: a tenth of the time of a small call.
func abilities(req mcp.Request) (a stages.Asker) {
	if c, ok := metaOf(req)[mcp.MetaKeyClientCapabilities].(map[string]any); ok {
		has := func(of map[string]any, name string) bool { _, is := of[name].(map[string]any); return is }
		modes, elicits := c["elicitation"].(map[string]any)
		a.Sampling, a.URL = has(c, "sampling"), has(modes, "url")
		a.Form = elicits && (has(modes, "form") || !a.URL)
		return a
	}
	r, ok := req.(interface {
		ClientCapabilities() *mcp.ClientCapabilities
	})
	if !ok {
		return a
	}
	if c := r.ClientCapabilities(); c != nil {
		a.Sampling = samples(c)
		if e := c.Elicitation; e != nil {
			a.Form, a.URL = e.Form != nil || e.URL == nil, e.URL != nil
		}
	}
	return a
}

// metaOf returns the metadata of a request; nil: it has none.
func metaOf(req mcp.Request) map[string]any {
	p := req.GetParams()
	if p == nil || reflect.ValueOf(p).IsNil() {
		return nil
	}
	return p.GetMeta()
}

// asker returns what asks the client of a call on behalf of servers; nil if it takes no questions. ctx is that of the tool's
// handler. A call has one: each has a patience of its own.
func (g *Gateway) asker(ctx context.Context, req *mcp.CallToolRequest) *stages.Asker {
	able, _ := ctx.Value(ableKey{}).(*stages.Asker)
	put, concurrency := g.wayTo(ctx, req)
	if able == nil || put == nil {
		return nil
	}
	a := *able
	return newAsking(ctx, g.calls.shut, &a, put, concurrency)
}

// newAsking completes an asker.
func newAsking(call, shut context.Context, a *stages.Asker, put putting, concurrency int) *stages.Asker {
	asks := &asking{client: a, put: put, call: call, turns: make(chan struct{}, concurrency), shut: shut, clock: pausing.New()}
	asks.rest = asks.clock.Pause()
	asks.patience, _ = asks.clock.WithTimeout(context.Background(), a.Patience, errUnanswered) // paused without a question
	a.Ask = asks.ask
	return a
}

// AskPerson returns what asks the person at this terminal. fill shows a question, and returns the answers to its form, which is
// nil for a page to open; its error is a refusal.
func AskPerson(ctx context.Context, patience time.Duration, fill func(ctx context.Context, q *mcp.ElicitParams, form *forms.Form) (json.RawMessage, error)) *stages.Asker {
	put := func(ctx context.Context, q inquiry) (json.RawMessage, error) {
		params, ok := q.request.(*mcp.ElicitParams)
		if !ok {
			return nil, errUnanswered
		}
		content, err := fill(ctx, params, q.form)
		if err != nil {
			return nil, err
		}
		return json.Marshal(elicited{Action: "accept", Content: content})
	}
	return newAsking(ctx, context.Background(), &stages.Asker{Form: true, URL: true, Patience: patience}, put, 1)
}

// putting puts a question to a client, and waits for the answer.
type putting func(ctx context.Context, q inquiry) (json.RawMessage, error)

// wayTo returns what puts questions to the client of a call, and how many at once.
func (g *Gateway) wayTo(ctx context.Context, req *mcp.CallToolRequest) (put putting, concurrency int) {
	if d, ok := ctx.Value(dialogKey{}).(*dialog); ok {
		return d.put, mostOpen
	}
	if c, ok := ctx.Value(callKey{}).(*Call); ok && !c.typed {
		return c.put, 1
	}
	if s := req.Session; s != nil && !statelessSession(req) {
		return func(ctx context.Context, q inquiry) (json.RawMessage, error) { return putSDK(ctx, s, q) }, 1
	}
	return nil, 0
}

// ask puts a question to the client. It ends with ctx, with the patience, and when the gateway closes.
func (a *asking) ask(ctx context.Context, q stages.Question) (json.RawMessage, error) {
	own, err := newInquiry(q, a.client)
	if err != nil {
		return nil, err
	}
	if !a.begin() {
		return unanswered(q)
	}
	defer a.end()
	inner := context.WithoutCancel(a.call) // servers may ask in a context that does not know the call
	for _, life := range []context.Context{ctx, a.patience, a.shut} {
		var end func()
		inner, end = within(inner, life)
		defer end()
	}
	answer, err := a.turn(inner, own)
	if err == nil {
		answer, err = own.read(answer)
	}
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return unanswered(q)
}

// turn waits until the client may see the question, and for the answer.
func (a *asking) turn(ctx context.Context, q inquiry) (json.RawMessage, error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := a.put(ctx, q)
	if err == nil && len(answer) > mostAnswer {
		err = fmt.Errorf("the answer has %d bytes, more than %d", len(answer), mostAnswer)
	}
	return answer, err
}

// begin counts a question that opens, and reports whether it may.
func (a *asking) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked++; a.asked > mostAsked || a.patience.Err() != nil || a.shut.Err() != nil {
		return false
	}
	if a.open++; a.open == 1 {
		a.rest()
	}
	return true
}

// end counts a question that is open no more.
func (a *asking) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open--; a.open == 0 {
		a.rest = a.clock.Pause()
	}
}

// unanswered is the answer to a question that nobody has answered, or not as it was asked.
func unanswered(q stages.Question) (json.RawMessage, error) {
	if q.Method == methodElicit {
		return cancelled, nil
	}
	return nil, errUnanswered
}

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
