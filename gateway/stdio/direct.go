package stdio

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

// An Answerer answers ordinary calls of a session beside the SDK. *gateway.Gateway is one.
type Answerer interface {
	// Direct returns the call in a message, or nil if the message has to go to the SDK. See [gateway.Gateway.Direct].
	Direct(ctx context.Context, ss *mcp.ServerSession, message []byte) (*gateway.Call, *jsonrpc.Error)
}

// direct takes the messages of a session that can be answered beside the SDK, at a fraction of the cost.
type direct struct {
	answerer Answerer // nil: none can
	out      io.Writer
	ctx      context.Context // of the calls

	mu      sync.Mutex
	session *mcp.ServerSession // guarded by mu
	opened  bool               // the SDK has answered a client that it knows, guarded by mu
	err     error              // of writing an answer, guarded by mu
	calls   int                // that are not answered, guarded by mu
	idle    chan struct{}      // closed when there are no calls; nil while there are none; guarded by mu
}

func newDirect(ctx context.Context, a Answerer, out io.Writer) *direct {
	return &direct{answerer: a, out: out, ctx: ctx}
}

// join names the session.
func (d *direct) join(ss *mcp.ServerSession) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = ss
}

// open is told when the SDK has sent an answer. Calls before that go to the SDK, so that none overtakes the handshake.
func (d *direct) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = d.opened || d.session == nil || d.session.InitializeParams() != nil
}

// take answers a message, some time, if that can be done here, and reports whether it does. The message is not to be
// written to any more. An error is the answer to a message that nobody else may answer.
func (d *direct) take(message []byte) (bool, *jsonrpc.Error) {
	d.mu.Lock()
	session, opened := d.session, d.opened
	d.mu.Unlock()
	if d.answerer == nil || session == nil || !opened {
		return false, nil
	}
	call, fault := d.answerer.Direct(d.ctx, session, message)
	if call == nil {
		return false, fault
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.idle == nil {
		d.idle = make(chan struct{})
	}
	go d.answer(call)
	return true, nil
}

func (d *direct) answer(call *gateway.Call) {
	_, err := d.out.Write(call.Answer(func(message []byte) error {
		_, err := d.out.Write(message)
		return err
	}))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls--; d.calls == 0 {
		close(d.idle)
		d.idle = nil
	}
	if err != nil && d.err == nil { // as the SDK, which ends the session when an answer is lost
		d.err = err
		go d.session.Close()
	}
}

// wait returns when everything is answered, or one of the others ends.
func (d *direct) wait(ctx context.Context, closed <-chan struct{}) {
	d.mu.Lock()
	idle := d.idle
	d.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-closed:
	case <-ctx.Done():
	}
}

// close gives the answers of calls that have ended a while to be read. The error is of an answer that was not taken.
func (d *direct) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), unreadWait)
	defer cancel()
	d.wait(ctx, nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
