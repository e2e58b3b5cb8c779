package observe

import (
	"sync"
	"time"
)

// Traffic is kept in steps of a time, for a while.
const (
	TrafficStep = 10 * time.Second
	trafficKept = 90 // steps: a quarter of an hour
)

// A Step counts the calls of tools that have ended within a [TrafficStep].
type Step struct {
	Begin         time.Time
	Calls, Failed int64
	Bytes         int64 // of results
}

// traffic are the latest steps.
type traffic struct {
	mu    sync.Mutex
	steps [trafficKept]Step // of a time, at its number modulo the length; guarded by mu
}

// add counts a call.
func (t *traffic) add(now time.Time, bytes int, failed bool) {
	begin := now.Truncate(TrafficStep)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.steps[begin.Unix()/int64(TrafficStep/time.Second)%trafficKept]
	if !s.Begin.Equal(begin) {
		*s = Step{Begin: begin}
	}
	s.Calls++
	s.Bytes += int64(bytes)
	if failed {
		s.Failed++
	}
}

// Traffic returns the steps of the last quarter of an hour, the oldest first, also those without calls.
func (m *Metrics) Traffic() []Step { return m.traffic.since(time.Now()) }

func (t *traffic) since(now time.Time) []Step {
	end := now.Truncate(TrafficStep)
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Step, trafficKept)
	for i := range list {
		begin := end.Add(time.Duration(i+1-trafficKept) * TrafficStep)
		if list[i] = t.steps[begin.Unix()/int64(TrafficStep/time.Second)%trafficKept]; !list[i].Begin.Equal(begin) {
			list[i] = Step{Begin: begin}
		}
	}
	return list
}
