package remote

import (
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// flights are the requests in whose middle the server may ask. A question on a standing stream names none of them.
type flights struct {
	mu   sync.Mutex
	open map[*rpc.Request]bool
	left bool // one has ended without an answer: the server may still ask about it
}

// begin notes that a request begins.
func (f *flights) begin(r *rpc.Request) {
	if r.Ask == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[*rpc.Request]bool{}
	}
	f.open[r] = true
}

// end notes that a request has ended.
func (f *flights) end(r *rpc.Request, failure *rpc.Failure) {
	if r.Ask == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, r)
	if failure != nil && failure.Sent {
		_, answered := errors.AsType[*jsonrpc.Error](failure.Err)
		f.left = f.left || !answered
	}
}

// asking is the only request in whose middle the server can ask now, nil if that is not certain.
func (f *flights) asking() *rpc.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.open) != 1 || f.left {
		return nil
	}
	for r := range f.open {
		return r
	}
	return nil
}
