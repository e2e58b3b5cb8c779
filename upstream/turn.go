package upstream

import (
	"context"
	"sync"
)

// A turn is the turn of a call, where calls on a session take turns because the questions of the server name none of several.
type turn struct {
	conn *serverConn

	mu    sync.Mutex // guards what follows
	holds bool
	over  bool // the call has returned
}

// await waits for the turn, where calls take turns.
func (t *turn) await(ctx context.Context) error {
	if !t.conn.oneByOne() {
		return nil
	}
	select {
	case t.conn.turns <- struct{}{}:
		t.holds = true
	case <-t.conn.replaced: // the caller sees that too
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// hold takes the turn, if it is free: from the first question on, no other call may begin.
func (t *turn) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds || t.over {
		return
	}
	select {
	case t.conn.turns <- struct{}{}:
		t.holds = true
	default:
	}
}

// leave gives the turn to the next call.
func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.holds {
		t.holds = false
		<-t.conn.turns
	}
}
