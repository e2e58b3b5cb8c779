package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: the time of a call ends it, does not pass while a question is open, and goes on after the last one.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, k, cancel := newClock(t.Context(), time.Minute)
		defer cancel()
		time.Sleep(20 * time.Second)
		k.stop()
		k.stop()
		time.Sleep(time.Hour)
		k.start()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("it has ended while a question was open")
		}
		k.start()
		<-ctx.Done()
		if took := time.Since(begun); context.Cause(ctx) != errCallTimeout || took != 2*time.Hour+time.Minute {
			t.Errorf("it has ended after %v with %v", took, context.Cause(ctx))
		}
	})
}

// TestClockCancelled: a call that ends otherwise has no cause of the clock's.
func TestClockCancelled(t *testing.T) {
	ctx, _, cancel := newClock(t.Context(), time.Minute)
	cancel()
	if context.Cause(ctx) != context.Canceled {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
