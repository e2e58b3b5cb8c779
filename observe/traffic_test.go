package observe

import (
	"testing"
	"time"
)

// TestTraffic: calls count in their step, and for a quarter of an hour.
func TestTraffic(t *testing.T) {
	var traffic traffic
	begin := time.Unix(1_700_000_000, 0)
	traffic.add(begin, 10, false)
	traffic.add(begin.Add(9*time.Second), 5, true)
	traffic.add(begin.Add(10*time.Second), 1, false)
	for _, test := range []struct {
		after         time.Duration
		calls, failed int64
		bytes         int64
		last          int64 // calls of the latest step
	}{
		{10 * time.Second, 3, 1, 16, 1},
		{20 * time.Second, 3, 1, 16, 0},
		{trafficKept * TrafficStep, 1, 0, 1, 0},
		{2 * trafficKept * TrafficStep, 0, 0, 0, 0},
	} {
		var sum Step
		list := traffic.since(begin.Add(test.after))
		for i, s := range list {
			sum.Calls, sum.Failed, sum.Bytes = sum.Calls+s.Calls, sum.Failed+s.Failed, sum.Bytes+s.Bytes
			if i > 0 && s.Begin.Sub(list[i-1].Begin) != TrafficStep {
				t.Errorf("after %v: step %d begins at %v", test.after, i, s.Begin)
			}
		}
		if last := list[len(list)-1].Calls; sum.Calls != test.calls || sum.Failed != test.failed || sum.Bytes != test.bytes || last != test.last {
			t.Errorf("after %v: got %+v, and %d calls at last", test.after, sum, last)
		}
	}
}
