package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Questions that open within calmWait of each other go to the client together, and none waits longer than calmMost: clients
// answer a call a few times only.
const (
	calmWait = 150 * time.Millisecond
	calmMost = time.Second
)

// dialogKey is the context key of the [dialog] that a tool's handler runs for.
type dialogKey struct{}

// A dialog is a call of a client of the stateless era that can be asked. A question ends the reply to the client, and the call
// goes on without a request until the client calls again with the answers.
type dialog struct {
	id     string
	of     binding
	caller string                  // as in callerOf
	size   int64                   // bytes of what its call keeps of the message
	kept   context.Context         // ends when the client has the result, or will not get it
	drop   context.CancelFunc      // of kept
	end    context.CancelCauseFunc // of the call
	news   chan struct{}           // holds one: a question has opened
	done   chan struct{}           // closed when the call has ended
	room   *memory.Lease           // of size and the result, while no request is attached; closed with kept

	late  *time.Timer // ends the wait for the client; guarded by dialogs.mu, as is until
	until time.Time

	result mcp.Result // after done, as is err
	err    error

	mu    sync.Mutex
	open  map[string]*openQuestion // by key; guarded by mu, as is everything below
	keys  int                      // given so far
	round uint32                   // of the last reply with questions

	sending sync.Mutex
	send    progressSender // to the attached request; nil: there is none, or it wants no progress; guarded by sending
	token   any            // of its progress; guarded by sending
}

// An openQuestion waits for its answer.
type openQuestion struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // holds one
}

// lighten reduces a request to what its call needs after the reply, when the memory of the message counts no more. It returns the
// bytes that are left.
func lighten(ctx context.Context, req *mcp.CallToolRequest) (size int64) {
	size, _ = ctx.Value(lengthKey{}).(int64)
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.id = bytes.Clone(c.id) // a part of the message
		size += int64(len(c.id))
	}
	p := req.Params
	p.Arguments, p.InputResponses = bytes.Clone(p.Arguments), nil
	maps.DeleteFunc(p.Meta, func(name string, _ any) bool { return !lastingMeta[name] })
	size += int64(len(p.Arguments))
	for name, value := range p.Meta {
		switch v := value.(type) {
		case string:
			p.Meta[name] = strings.Clone(v)
			size += int64(len(v))
		case float64:
		default:
			delete(p.Meta, name)
		}
	}
	if req.Extra != nil {
		size += sizeOf(req.Extra.Header)
	}
	return size
}

// lastingMeta are the members of metadata that a call needs all the time.
var lastingMeta = map[string]bool{
	"progressToken": true, "traceparent": true, "tracestate": true, "baggage": true, upstream.HopsKey: true, mcp.MetaKeyProtocolVersion: true,
}

// put adds a question to those that are open, and waits for the answer.
func (d *dialog) put(ctx context.Context, q inquiry) (json.RawMessage, error) {
	o := &openQuestion{q.request, make(chan json.RawMessage, 1)}
	d.mu.Lock()
	d.keys++
	key := "q" + strconv.Itoa(d.keys)
	d.open[key] = o
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, key)
	}()
	d.wake()
	select {
	case answer := <-o.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// wake makes the attached request look for questions.
func (d *dialog) wake() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// attach makes a request the one that the dialog answers, and returns what detaches it. The end of the request ends the call.
func (d *dialog) attach(ctx context.Context, req *mcp.CallToolRequest) (detach func() bool) {
	d.sending.Lock()
	d.token, d.send = req.Params.GetProgressToken(), senderOf(ctx, req)
	d.sending.Unlock()
	stop := context.AfterFunc(ctx, func() { d.end(context.Cause(ctx)) })
	return func() bool {
		d.sending.Lock()
		d.token, d.send = nil, nil
		d.sending.Unlock()
		return stop()
	}
}

// progress sends progress to the attached request.
func (d *dialog) progress(ctx context.Context, p *mcp.ProgressNotificationParams) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	if d.send == nil || d.token == nil {
		return nil
	}
	own := *p
	own.ProgressToken = d.token
	return d.send(ctx, &own)
}

// answer gives the client's answers to the open questions. Keys that are not open have no effect, and questions without an answer
// stay open.
func (d *dialog) answer(responses mcp.InputResponseMap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, response := range responses {
		o := d.open[key]
		if o == nil {
			continue
		}
		delete(d.open, key)
		text, _ := json.Marshal(response) // without a text it is no answer
		o.answer <- text
	}
}

// calm waits until no more questions open for a while. It reports false if the call has ended.
func (d *dialog) calm() bool {
	most := time.After(calmMost)
	for {
		select {
		case <-d.news:
		case <-time.After(calmWait):
			return true
		case <-most:
			return true
		case <-d.done:
			return false
		}
		d.mu.Lock()
		full := len(d.open) == mostOpen
		d.mu.Unlock()
		if full {
			return true
		}
	}
}

// requests returns the open questions.
func (d *dialog) requests() mcp.InputRequestMap {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := mcp.InputRequestMap{}
	for key, o := range d.open {
		list[key] = o.request
	}
	return list
}

// refuse answers all open questions with nothing, which is the answer to none of them.
func (d *dialog) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, o := range d.open {
		delete(d.open, key)
		o.answer <- nil
	}
}
