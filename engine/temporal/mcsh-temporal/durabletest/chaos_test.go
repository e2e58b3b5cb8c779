package durabletest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestChaos: whichever worker is killed whenever, no item is lost, no call with effects is made twice, and each whose outcome is unknown
// is named.
func TestChaos(t *testing.T) {
	items := parttest.Times(2200, 50_000) // of each of two stages
	every := time.Duration(parttest.Times(8, 20)) * time.Second
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	workers := []*process{w.gateway(2), w.gateway(2)}
	begun := time.Now()
	run := front.submit(each(arguments{N: items, Ms: parttest.Times(60, 20)}, `,"concurrency":16`, "look", "post"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if text, failed := front.waitFor(run, time.Duration(parttest.Times(5, 120))*time.Minute); failed {
			t.Errorf("the run has failed: %s", text)
		}
	}()
	kills := 0
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		case <-time.After(every):
			i := rand.IntN(len(workers))
			workers[i].kill()
			kills++
			workers[i] = w.gateway(2)
		}
	}
	got := front.check(front.results(run), "post", items)
	looks := 0
	for _, n := range w.tools.made("look") {
		looks += n
	}
	t.Logf("%d items in %s, %d kills: %+v; %d calls of the tool that reads were made again", 2*items, time.Since(begun).Round(time.Second), kills, got, looks-items)
	if kills == 0 {
		t.Error("the run has ended before a worker was killed")
	}
	if got.lost > 0 || got.repeated > 0 {
		t.Errorf("got %+v", got)
	}
	if most := 16 * kills; got.unknown > most { // calls in flight
		t.Errorf("%d outcomes are unknown after %d kills", got.unknown, kills)
	}
}
