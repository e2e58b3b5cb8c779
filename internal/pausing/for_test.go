package pausing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFor: a wait takes its time, and ends early with its context.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := For(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := For(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(begun) != time.Minute+time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}
