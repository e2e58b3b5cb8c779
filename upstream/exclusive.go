package upstream

import (
	"context"
	"sync"
)

// An exclusive is the right of a call to be the only one in flight on a connection, where calls are made one by one because the
// questions of the server name none of several.
type exclusive struct {
	conn *serverConn

	mu   sync.Mutex // guards the fields below
	has  bool
	over bool // the call has returned
}

// await waits for the right, where calls are made one by one.
func (x *exclusive) await(ctx context.Context) error {
	if !x.conn.oneByOne() {
		return nil
	}
	select {
	case x.conn.exclusive <- struct{}{}:
		x.has = true
	case <-x.conn.replaced: // the caller sees that too
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// take takes the right, if it is free: from the first question on, no other call may begin.
func (x *exclusive) take() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.has || x.over {
		return
	}
	select {
	case x.conn.exclusive <- struct{}{}:
		x.has = true
	default:
	}
}

// leave gives the right to the next call.
func (x *exclusive) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over = true; x.has {
		x.has = false
		<-x.conn.exclusive
	}
}
