package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/remote"
)

const (
	standWait  = 5 * time.Second // for a standing stream to open before the first call
	standPause = time.Second     // before it is opened again, and twice as long each time up to standRest
	standRest  = time.Minute
)

// stand opens the standing stream of a session whose server may ask on it, as many do, and waits a moment until it is open. The
// stream lasts as long as the session. A server without one asks elsewhere.
func (sc *serverConn) stand(s *session) {
	t, ok := s.transport.(*remote.Transport)
	if !ok || s.stateless() || sc.declares() == (declared{}) && s.roots == nil {
		return
	}
	ctx, cancel := context.WithCancel(sc.life)
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	started := sc.pool.goroutines.start(func() {
		defer cancel()
		defer open()
		for pause := standPause; ; pause = min(2*pause, standRest) {
			failure := t.Listen(ctx, s.version, open)
			if ctx.Err() != nil || isAnswer(failure) || failure.Lost {
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
	if !started {
		cancel()
		return
	}
	sc.pool.goroutines.run(func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	})
	select {
	case <-opened:
	case <-time.After(standWait):
	case <-ctx.Done():
	}
}
