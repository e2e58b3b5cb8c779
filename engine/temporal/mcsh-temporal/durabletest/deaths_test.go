package durabletest

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWorkerKilled: another worker goes on with the run of one that was killed. It calls a tool that only reads again for the items of the
// last seconds, whose results were not in the store yet, and one with effects not even for those in flight, which it names.
func TestWorkerKilled(t *testing.T) {
	const items, concurrency = 300, 4
	for tool, unknown := range map[string]int{"look": 0, "post": concurrency} {
		t.Run(tool, func(t *testing.T) {
			w := newWorld(t)
			front := w.agent(w.gateway(0))
			doomed := w.gateway(1)
			run := front.submit(each(arguments{N: items, Ms: 100}, `,"concurrency":4`, tool))
			until(t, "the for_each is in its middle", func() bool { return len(w.tools.made(tool)) >= items/2 })
			w.gateway(1)
			late := w.tools.since(time.Now().Add(-5 * time.Second)) // two of which are between two entries, the others for a busy machine
			doomed.kill()
			killed := time.Now()
			until(t, "the next attempt calls", func() bool { return !w.tools.first(killed).IsZero() })
			t.Logf("%s: the first call came %s after the kill", tool, w.tools.first(killed).Sub(killed).Round(time.Millisecond))
			front.succeeds(run)
			got := front.check(front.results(run), tool, items)
			t.Logf("%s: %+v", tool, got)
			if got.lost > 0 || got.unknown > unknown || tool == "post" && got.repeated > 0 || got.repeated > late {
				t.Errorf("got %+v; in the seconds before %d calls were made", got, late)
			}
		})
	}
}

// TestWorkerTerminated: a worker that is asked to end leaves its run to another one at once, and no outcome is unknown.
func TestWorkerTerminated(t *testing.T) {
	const items = 200
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	leaving := w.gateway(1)
	run := front.submit(each(arguments{N: items, Ms: 100}, `,"concurrency":4`, "post"))
	until(t, "the for_each is in its middle", func() bool { return len(w.tools.made("post")) >= items/2 })
	w.gateway(1)
	leaving.terminate(t)
	ended := time.Now()
	until(t, "the next attempt calls", func() bool { return !w.tools.first(ended).IsZero() })
	took := w.tools.first(ended).Sub(ended)
	t.Logf("the first call came %s after the end of the worker", took.Round(time.Millisecond))
	if took > 8*time.Second { // the death of a worker is noticed after 10 s
		t.Errorf("the run moved after %s", took)
	}
	front.succeeds(run)
	if got := front.check(front.results(run), "post", items); got != (tally{}) {
		t.Errorf("got %+v", got)
	}
}

// TestZombie: a worker that was stopped while another one has taken its run makes no call any more that the other one makes as well.
func TestZombie(t *testing.T) {
	const items, concurrency = 400, 4
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	zombie := w.gateway(1)
	run := front.submit(each(arguments{N: items, Ms: 100}, `,"concurrency":4`, "post"))
	until(t, "the for_each has begun", func() bool { return len(w.tools.made("post")) >= items/4 })
	w.gateway(1)
	zombie.signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	until(t, "the next attempt calls", func() bool { return w.tools.first(stopped.Add(5*time.Second)) != time.Time{} })
	zombie.signal(t, syscall.SIGCONT)
	front.succeeds(run)
	got := front.check(front.results(run), "post", items)
	t.Logf("%+v", got)
	if got.lost > 0 || got.repeated > 0 || got.unknown > concurrency {
		t.Errorf("got %+v", got)
	}
	select {
	case <-zombie.ended:
		t.Errorf("the worker has ended: %s", zombie.log())
	default:
	}
}

// TestFrontKilled: the gateway that took the call is killed while its client waits; another one has the reply.
func TestFrontKilled(t *testing.T) {
	w := newWorld(t)
	doomed := w.gateway(0)
	w.gateway(1)
	front := w.agent(doomed)
	run := front.submit(each(arguments{N: 40, Ms: 200}, `,"concurrency":2`, "look"))
	failed := make(chan error, 1)
	go func() {
		_, _, err := front.call(from(run), object{"wait": 60})
		failed <- err
	}()
	until(t, "the run is under way", func() bool { return len(w.tools.made("look")) > 5 })
	doomed.kill()
	if err := within(t, "the end of the call", failed); err == nil {
		t.Error("the call of the killed gateway succeeded")
	}
	other := w.agent(w.gateway(0))
	text, isError := other.wait(run)
	if isError || !strings.Contains(text, `"x":39`) {
		t.Errorf("at the other gateway: %s", text)
	}
	if got := other.check(other.results(run), "look", 40); got != (tally{}) {
		t.Errorf("got %+v", got)
	}
}
