package memory

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestCollect: however many leases ask for it, the process collects its memory ten times a second at most.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forced := func() uint32 {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.NumForcedGC
		}
		b := New(64 << 20)
		shares := []*Share{b.Share("a", 32<<20), b.Share("b", 32<<20)}
		before := forced()
		for range 10 {
			for range 10 {
				for _, s := range shares {
					l := s.Lease()
					l.Collect()
					l.Close()
				}
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(collectRest)
		shares[0].Lease().Collect()
		if n := forced() - before; n != 2 {
			t.Errorf("%d collections in 200 ms, want 2", n)
		}
		(*Lease)(nil).Collect()
	})
}
