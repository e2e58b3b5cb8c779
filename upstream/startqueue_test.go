package upstream

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStartQueue: as many programs start at once as there are places. One that takes long keeps its place for a while
// only, the next place goes to a program that a plan needs, and one that nobody waits for any more takes none.
func TestStartQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &startQueue{free: 2}
		begun := time.Now()
		var mu sync.Mutex // guards started
		started := map[string]time.Duration{}
		start := func(ctx context.Context, name string, takes time.Duration, needed bool) {
			go func() {
				release, err := q.acquire(ctx, func() bool { return needed })
				if err != nil {
					return
				}
				mu.Lock()
				started[name] = time.Since(begun)
				mu.Unlock()
				time.Sleep(takes)
				release()
			}()
			synctest.Wait()
		}
		given, cancel := context.WithCancel(t.Context())
		start(t.Context(), "slow", time.Minute, false)
		start(t.Context(), "fast", time.Second, false)
		start(t.Context(), "third", 4*time.Second, false)
		start(given, "given up", time.Second, true)
		start(t.Context(), "needed", 2*time.Second, true)
		start(t.Context(), "last", time.Second, false)
		cancel()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := map[string]time.Duration{
			"slow": 0, "fast": 0, "needed": time.Second, "third": 3 * time.Second, "last": 3 * time.Second,
		}
		if diff := cmp.Diff(want, started); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		at, afterwards := time.Now(), []time.Duration(nil)
		for range 3 { // the third waits until the first has kept its place too long
			if _, err := q.acquire(t.Context(), func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			afterwards = append(afterwards, time.Since(at))
		}
		if diff := cmp.Diff([]time.Duration{0, 0, slotLimit}, afterwards); diff != "" {
			t.Errorf("later places came after (-want +got):\n%s", diff)
		}
	})
}
