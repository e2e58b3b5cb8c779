package pace

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestHold: when one query is asked to wait, no other goes before, and then they do not come together: one at a time at first,
// more with each answer, and one a second where answers take longer.
func TestHold(t *testing.T) {
	ms := func(list ...int) (times []time.Duration) {
		for _, n := range list {
			times = append(times, time.Duration(n)*time.Millisecond)
		}
		return times
	}
	for name, test := range map[string]struct {
		rate  Rate
		asked time.Duration
		takes time.Duration // an answer
		want  []time.Duration
	}{
		"fast":       {Rate{}, 30 * time.Second, 100 * time.Millisecond, ms(30000, 30100, 30100, 30200, 30200, 30200, 30200, 30300)},
		"slow":       {Rate{}, 2 * time.Second, time.Minute, ms(2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000)},
		"with rate":  {Rate{2, time.Minute}, 10 * time.Second, time.Second, ms(10000, 60000, 70000, 120000, 130000, 180000, 190000, 240000)},
		"without":    {Rate{}, 0, time.Second, ms(0, 0, 0, 0, 0, 0, 0, 0)},
		"over bound": {Rate{}, 100 * time.Hour, 0, ms(600000, 600000, 600000, 600000, 600000, 600000, 600000, 600000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, begun := New("s", test.rate, 64, nil), time.Now()
				epoch, err := p.Begin(t.Context(), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p.End(epoch, &rpc.Failure{Err: errors.New("429"), RetryAfter: test.asked})
				var mu sync.Mutex // guards went
				var went []time.Duration
				for range 8 {
					go func() {
						epoch, err := p.Begin(t.Context(), nil, nil)
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						went = append(went, time.Since(begun))
						mu.Unlock()
						time.Sleep(test.takes)
						p.End(epoch, nil)
					}()
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(test.want, went); diff != "" {
					t.Errorf("queries went after (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestHeld: a query whose time ends before the server wants another is refused at once, one that waits ends with its context or
// its server, and an answer to a query from before the wait does not end it.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begun := New("s", Rate{}, 4, nil), time.Now()
		early, _ := p.Begin(t.Context(), nil, nil)
		p.End(early, &rpc.Failure{Err: errors.New("429"), RetryAfter: time.Minute})
		p.End(early, nil)
		short, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		var e *stages.Error
		if _, err := p.Begin(short, nil, nil); !errors.As(err, &e) || e.Code != stages.ServerUnavailable || e.RetryAfter != time.Minute {
			t.Errorf("too short a time: %v", err)
		}
		replaced, failed := make(chan struct{}), make(chan error, 2)
		given, giveUp := context.WithCancel(t.Context())
		go func() {
			_, err := p.Begin(given, nil, nil)
			failed <- err
		}()
		synctest.Wait()
		giveUp()
		if err := <-failed; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `server "s" has asked for 1m0s (Retry-After)`) {
			t.Errorf("given up: %v", err)
		}
		go func() {
			_, err := p.Begin(t.Context(), replaced, nil)
			failed <- err
		}()
		synctest.Wait()
		close(replaced)
		if err := <-failed; !errors.Is(err, ErrReplaced) {
			t.Errorf("replaced: %v", err)
		}
		if time.Since(begun) != 0 {
			t.Errorf("somebody has waited for %v", time.Since(begun))
		}
		if _, err := p.Begin(t.Context(), nil, nil); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}
