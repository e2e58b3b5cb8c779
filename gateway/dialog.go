package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/stages"
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

// Bounds of the dialogs without a request. One caller has as many as it may have runs, and this machine as many as all.
const (
	stateLife   = 10 * time.Minute // how long the client's answers are taken, and a result waits for them
	parkedShare = 2                // at most so large a part of all runs
)

// dialogs holds the dialogs without a request.
type dialogs struct {
	seal *sealer

	mu     sync.Mutex
	parked map[string]*dialog // by id; guarded by mu
}

// noDialog is the answer to answers that nothing waits for. It is the same for every reason.
func noDialog() error {
	return stages.Errorf(stages.UnknownRun,
		`call again without requestState; a "from" stage with "resume" goes on from the kept outputs of a run`,
		"no open call of yours expects these answers: it has ended, was answered already, had other arguments, or is at another gateway")
}

// A conversation is a call of a tool that may ask its client. The context of the call ends with the call, and kept when the
// client has the result, or will not get it.
type conversation func(ctx, kept context.Context) (mcp.Result, error)

// converse runs a call that may ask its client. If the client is of the stateless era, a question ends the reply, and the call
// goes on until the client calls again.
func (g *Gateway) converse(ctx context.Context, req *mcp.CallToolRequest, s *slots, call conversation) (mcp.Result, error) {
	if req.Params.RequestState != "" {
		return g.rejoin(ctx, req)
	}
	if s != g.runs || ctx.Value(ableKey{}) == nil || !g.stateless(ctx, req) {
		inner, end, err := g.begin(ctx, s, req.Extra)
		if err != nil {
			return nil, err
		}
		defer end()
		return call(inner, ctx)
	}
	d, err := g.start(ctx, req, s, call)
	if err != nil {
		return nil, err
	}
	return g.follow(ctx, req, d)
}

// stateless reports whether the client of a request is of the stateless era.
func (g *Gateway) stateless(ctx context.Context, req mcp.Request) bool {
	c, direct := ctx.Value(callKey{}).(*Call)
	return direct && c.typed || statelessSession(req)
}

// start starts a call whose context does not end with the request, but with the session, the gateway and the caller's access.
func (g *Gateway) start(ctx context.Context, req *mcp.CallToolRequest, s *slots, call conversation) (*dialog, error) {
	d := &dialog{
		id: rand.Text(), of: g.bindingOf(req), caller: callerOf(req.Extra), size: lighten(ctx, req), room: g.o.Memory.Lease(),
		news: make(chan struct{}, 1), done: make(chan struct{}), open: map[string]*openQuestion{},
	}
	d.kept, d.drop = context.WithCancel(context.WithoutCancel(ctx))
	own, cancel := context.WithCancelCause(d.kept)
	d.end = cancel
	own = context.WithValue(context.WithValue(own, dialogKey{}, d), senderKey{}, progressSender(d.progress))
	own, end, err := g.begin(own, s, req.Extra)
	if err != nil {
		d.drop()
		return nil, err
	}
	context.AfterFunc(d.kept, d.room.Close)
	stopWatching := func() bool { return true }
	if life := g.sessions.lifeOf(req.Session); life != nil {
		stopWatching = context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	}
	go func() {
		defer close(d.done)
		defer cancel(nil)
		defer end()
		defer stopWatching()
		defer func() {
			if p := recover(); p != nil {
				g.o.Log.Error("panic in a call", zap.String("type", fmt.Sprintf("%T", p)), zap.Stack("stack"))
				d.result, d.err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		d.result, d.err = call(own, d.kept)
	}()
	return d, nil
}

// follow answers a request with what its call comes to, or with the questions that are open.
func (g *Gateway) follow(ctx context.Context, req *mcp.CallToolRequest, d *dialog) (mcp.Result, error) {
	detach := d.attach(ctx, req)
	for {
		select {
		case <-d.done:
		case <-d.news:
			if !d.calm() {
				break
			}
			requests := d.requests()
			if len(requests) == 0 || ctx.Err() != nil {
				continue
			}
			state, ok := g.park(d, req.Extra)
			if !ok {
				d.refuse()
				continue
			}
			if detach() { // else the request has ended, and so does the call
				return &mcp.CallToolResult{InputRequests: requests, RequestState: state}, nil
			}
			g.dialogs.take(d.id, d.round, d.of)
		}
		if d.over() {
			detach()
			context.AfterFunc(ctx, d.drop) // it ends when the answer is written
			return d.result, d.err
		}
	}
}

func (d *dialog) over() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// park leaves a dialog without a request, and returns the state with which the client joins it. It reports false if too many are
// without one, or if there is no memory for what they keep.
func (g *Gateway) park(d *dialog, extra *mcp.RequestExtra) (state string, ok bool) {
	g.dialogs.mu.Lock()
	defer g.dialogs.mu.Unlock()
	all, own := max(1, g.o.Runs/parkedShare), g.o.CallerRuns
	if originOfCall(extra).local {
		own = all
	}
	if !g.dialogs.makeRoom(d.of.caller, all, own) ||
		d.room.Grow(d.size+int64(4*g.o.MaxOutput)-d.room.Used()) != nil {
		return "", false
	}
	d.round++
	round := d.round
	d.late = time.AfterFunc(stateLife, func() { // the call has ended long before
		if g.dialogs.take(d.id, round, d.of) != nil {
			d.end(errUnanswered)
			d.drop()
		}
	})
	d.until = time.Now().Add(stateLife)
	g.dialogs.parked[d.id] = d
	return g.dialogs.seal.close(ticket{d.id, round, d.until}, d.of), true
}

// makeRoom makes room for one more dialog of a caller, if need be by removing the oldest one that has ended: one of the caller, or
// else one of anybody where all have too many. The caller has s.mu.
func (s *dialogs) makeRoom(caller string, all, most int) bool {
	own := 0
	var ended, others *dialog
	for _, d := range s.parked {
		oldest := &others
		if d.of.caller == caller {
			own++
			oldest = &ended
		}
		if d.over() && (*oldest == nil || d.until.Before((*oldest).until)) {
			*oldest = d
		}
	}
	if own < most && len(s.parked) < all {
		return true
	}
	if ended == nil && own < most {
		ended = others
	}
	if ended == nil {
		return false
	}
	s.remove(ended)
	ended.drop()
	return true
}

// end ends the dialogs without a request that some callers have, and gives back their memory.
func (s *dialogs) end(has func(caller string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.parked {
		if has(d.caller) {
			s.remove(d)
			d.drop() // ends its call, too
		}
	}
}

// remove removes a dialog. The caller has s.mu.
func (s *dialogs) remove(d *dialog) {
	d.late.Stop()
	delete(s.parked, d.id)
}

// take removes the dialog that waits for the answers of a round, or returns nil.
func (s *dialogs) take(id string, round uint32, of binding) *dialog {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.parked[id]
	if d == nil || d.round != round || d.of != of {
		return nil
	}
	s.remove(d)
	return d
}

// rejoin gives the client's answers to its call, and answers with what the call comes to.
func (g *Gateway) rejoin(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	of := g.bindingOf(req)
	t, ok := g.dialogs.seal.open(req.Params.RequestState, of)
	if !ok {
		return nil, noDialog()
	}
	d := g.dialogs.take(t.id, t.round, of)
	if d == nil {
		return nil, noDialog()
	}
	d.answer(req.Params.InputResponses)
	d.wake() // questions without an answer are asked again
	return g.follow(ctx, req, d)
}

// A binding is what a dialog belongs to: a caller, and a tool with its groups and arguments.
type binding struct{ caller, call string }

// bindingOf returns the binding of a call. A client may write the same arguments with other white space.
func (g *Gateway) bindingOf(req *mcp.CallToolRequest) binding {
	var args bytes.Buffer
	if json.Compact(&args, req.Params.Arguments) != nil { // there are none
		args.Reset()
	}
	sum := sha256.Sum256(args.Bytes())
	return binding{strings.Join([]string{originOfCall(req.Extra).key, callerOf(req.Extra)}, "\x00"), strings.Join([]string{req.Params.Name, g.runsName(req.Extra), string(sum[:])}, "\x00")}
}
