package pausing_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
)

var errUp = errors.New("the time is up")

// TestClock: a timeout counts only the time in which its clock runs.
func TestClock(t *testing.T) {
	tests := map[string]struct {
		pauses [][2]time.Duration // from, to
		want   time.Duration      // when a timeout of 10 s ends
	}{
		"never paused":      {nil, 10 * time.Second},
		"paused once":       {[][2]time.Duration{{2 * time.Second, 5 * time.Second}}, 13 * time.Second},
		"paused twice":      {[][2]time.Duration{{time.Second, 2 * time.Second}, {3 * time.Second, 5 * time.Second}}, 13 * time.Second},
		"paused by two":     {[][2]time.Duration{{time.Second, 4 * time.Second}, {2 * time.Second, 6 * time.Second}}, 15 * time.Second},
		"paused before it":  {[][2]time.Duration{{0, time.Minute}}, 70 * time.Second},
		"paused after it":   {[][2]time.Duration{{time.Minute, 2 * time.Minute}}, 10 * time.Second},
		"paused for longer": {[][2]time.Duration{{9 * time.Second, time.Hour}}, time.Hour + time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock, begun := pausing.New(), time.Now()
				for _, p := range test.pauses {
					pause := func() { time.AfterFunc(p[1]-p[0], clock.Pause()) }
					if p[0] == 0 {
						pause()
					} else {
						time.AfterFunc(p[0], pause)
					}
				}
				ctx, cancel := clock.WithTimeout(t.Context(), 10*time.Second, errUp)
				defer cancel()
				inner, end := context.WithCancel(ctx)
				defer end()
				<-inner.Done()
				if took := time.Since(begun); took != test.want || context.Cause(inner) != errUp {
					t.Errorf("ended after %v with %v, want %v", took, context.Cause(inner), test.want)
				}
			})
		})
	}
}

// TestDeadline: the deadline of a context moves with its clock, and that of an outer context stays.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := pausing.New()
		left := func(ctx context.Context) time.Duration {
			at, _ := ctx.Deadline()
			return time.Until(at)
		}
		outer, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		ctx, cancel := clock.WithTimeout(outer, 10*time.Second, errUp)
		defer cancel()
		time.Sleep(4 * time.Second)
		resume := clock.Pause()
		time.Sleep(time.Minute)
		if got := left(ctx); got != 6*time.Second {
			t.Errorf("in a pause %v are left", got)
		}
		resume()
		resume() // has no effect
		time.Sleep(time.Second)
		if got := left(ctx); got != 5*time.Second {
			t.Errorf("after a pause %v are left", got)
		}
		defer clock.Pause()()
		time.Sleep(time.Hour - 66*time.Second)
		if got := left(ctx); got != time.Second || ctx.Err() != nil {
			t.Errorf("before the end of the outer context %v are left, %v", got, ctx.Err())
		}
		time.Sleep(time.Second)
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Error(ctx.Err())
		}
	})
}

// TestNoClock: without a clock a timeout is that of package context.
func TestNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock *pausing.Clock
		clock.Pause()()
		ctx, cancel := clock.WithTimeout(t.Context(), time.Second, errUp)
		defer cancel()
		if <-ctx.Done(); ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != errUp {
			t.Error(ctx.Err(), context.Cause(ctx))
		}
	})
}
