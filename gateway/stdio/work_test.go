package stdio

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestWork: of the goroutines that have run a call, a few wait for others, until the connection is closed.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(t.Context(), nil, Options{})
		var working sync.WaitGroup
		for range 2 * maxResting {
			working.Go(func() { c.work(func() {}) })
		}
		synctest.Wait()
		if c.resting.TryAcquire(1) {
			t.Errorf("fewer than %d goroutines wait", maxResting)
		}
		ran := make(chan bool, 1)
		select {
		case c.calls <- func() { ran <- true }:
			<-ran
		default:
			t.Error("no goroutine takes a call")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		working.Wait()
	})
}
