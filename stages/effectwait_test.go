package stages_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestHeldTask: when the stages around it have failed, the wait for a task ends with the time of the run, which stands still while
// somebody is asked.
func TestHeldTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := pausing.New()
		run, end := clock.WithTimeout(t.Context(), 10*time.Second, errors.New("the time of the run is up"))
		defer end()
		held, fail, release := stages.HoldTask(run)
		defer release()
		time.Sleep(4 * time.Second)
		fail()
		resume := clock.Pause()
		time.Sleep(time.Minute)
		if held.Err() != nil {
			t.Error("the wait has ended while the clock stood still")
		}
		resume()
		time.Sleep(5 * time.Second)
		if held.Err() != nil {
			t.Error("the wait has ended a second before the time of the run")
		}
		time.Sleep(2 * time.Second)
		if context.Cause(held) == nil {
			t.Error("the wait goes on after the time of the run")
		}
	})
}
