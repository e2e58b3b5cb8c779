package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBudget(t *testing.T) {
	for _, test := range []struct {
		name   string
		set    Budget
		memory int64 // of all runs
		runs   int
		want   Budget
	}{
		{"memory unknown", Budget{}, 0, 16, Budget{1 << 30, 1 << 30, 4096, 512}},
		{"a share", Budget{}, 12 << 30, 16, Budget{768 << 20, 1 << 30, 4096, 512}},
		{"a small machine", Budget{}, 256 << 20, 16, Budget{64 << 20, 1 << 30, 4096, 512}},
		{"set", Budget{1, 2, 3, 4}, 12 << 30, 16, Budget{1, 2, 3, 4}},
	} {
		if diff := cmp.Diff(test.want, test.set.withDefaults(test.memory, test.runs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if c := (Budget{Memory: 100, Disk: 200}).chain(); c.Memory != 100 || c.Disk != 200 {
		t.Errorf("got a command's limits of %d and %d bytes, want no more than the run's", c.Memory, c.Disk)
	}
}
