package sessions

import (
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	standingWait  = 5 * time.Second // for a standing stream to open before the first call
	standingPause = time.Second     // before it is opened again, and twice as long each time up to standingRest
	standingRest  = time.Minute     // a stream that lasted so long was no failure
)

// KeepStanding opens the standing stream of a session whose server may ask on it, as many do, and waits a moment until it is
// open. The stream lasts as long as the session, and brings updates of resources too. A server without one asks elsewhere.
func (s *Session) KeepStanding() {
	t, ok := s.Transport.(*remote.Transport)
	if !ok || s.Stateless() || !s.Answers && s.Roots == nil {
		return
	}
	s.Feed.keepStanding()
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	if !s.Feed.start(func() { defer open(); s.Feed.standOn(t, open) }) {
		return
	}
	select {
	case <-opened:
	case <-time.After(standingWait):
	case <-s.Feed.life.Done():
	}
}

// standOn opens the standing stream again and again. It calls opened when the stream is open.
func (f *Feed) standOn(t *remote.Transport, opened func()) {
	for pause := standingPause; f.life.Err() == nil; pause = min(2*pause, standingRest) {
		begun := time.Now()
		st, failure := f.stand(f.life, t)
		if failure == nil {
			opened()
			<-st.over
			failure = st.failure
		}
		if rpc.IsAnswer(failure) || failure.Lost {
			return
		}
		if time.Since(begun) > standingRest {
			pause = standingPause
		}
		_ = pausing.For(f.life, pause) // the loop looks at its end
	}
}
