package docker

import (
	"testing"
	"time"
)

// TestAbandoned: containers that run end by themselves, and one that was just made is about to be started.
func TestAbandoned(t *testing.T) {
	now := time.Now()
	old, young := now.Add(-2*unstarted), now.Add(-unstarted/2)
	for _, test := range []struct {
		c    Container
		want bool
	}{
		{Container{Role: roleWorker, State: "created", Created: old}, true},
		{Container{Role: roleWorker, State: "exited", Created: old}, true},
		{Container{Role: roleWorker, State: "dead", Created: old}, true},
		{Container{Role: roleWorker, State: "created", Created: young}, false},
		{Container{Role: roleWorker, State: "exited", Created: young}, false},
		{Container{Role: roleWorker, State: "running", Created: old}, false},
		{Container{Role: roleWorker, State: "paused", Created: old}, false},
		{Container{Role: roleCommand, State: "exited", Created: old}, true},
		{Container{Role: "something else", State: "exited", Created: old}, false},
	} {
		if got := test.c.abandoned(now); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.c, got, test.want)
		}
	}
}
