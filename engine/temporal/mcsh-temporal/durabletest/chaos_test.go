package durabletest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestChaos: whatever is killed whenever, no item is lost, no call with effects is made twice, and each whose outcome is unknown is named.
func TestChaos(t *testing.T) {
	t.Parallel()
	for name, postgres := range map[string]bool{"SQLite": false, "PostgreSQL": true} {
		t.Run(name, func(t *testing.T) {
			if postgres && !parttest.Night() {
				t.Skip("at night only")
			}
			items := parttest.Times(2200, 50_000) // of each of two tools
			w := startWorld(t, postgres)
			begun := time.Now()
			c := &chaos{world: w, front: w.agent(w.gateway(0))}
			c.run = c.front.submit(each(arguments{N: items, Ms: 60}, `,"concurrency":16`, "look", "post"))
			kills := c.killing(time.Duration(parttest.Times(8, 20))*time.Second, time.Duration(parttest.Times(5, 60))*time.Minute)
			got := c.front.check(c.front.results(c.run), "post", items)
			looks := 0
			for _, n := range w.tools.made("look") {
				looks += n
			}
			t.Logf("%d items in %s, %d kills: %+v; %d calls of the tool that reads were made again",
				2*items, time.Since(begun).Round(time.Second), kills, got, looks-items)
			if kills == 0 {
				t.Error("the run has ended before anything was killed")
			}
			if got.lost > 0 || got.repeated > 0 {
				t.Errorf("got %+v", got)
			}
			if most := 16 * kills; got.unknown > most { // calls in flight
				t.Errorf("%d outcomes are unknown after %d kills", got.unknown, kills)
			}
		})
	}
}

// A chaos is a run whose client waits while parts of its world are killed.
type chaos struct {
	*world
	run     string
	front   agent
	replies <-chan reply // to the client
}

// killing kills a part now and then, each as often as the others, until the run has succeeded.
func (c *chaos) killing(every, limit time.Duration) (kills int) {
	parts, order := c.parts(), []int(nil)
	c.replies = c.front.await(c.run)
	end := time.After(limit)
	for ; ; kills++ {
		select {
		case r := <-c.replies:
			if fine(c.T, r.err); r.failed {
				c.Fatalf("the run has failed: %s", r.text)
			}
			return kills
		case <-end:
			c.Fatalf("the run has not ended after %d kills", kills)
		case <-time.After(every):
			if len(order) == 0 {
				order = rand.Perm(len(parts))
			}
			parts[order[0]]()
			order = order[1:]
		}
	}
}

// parts are functions that kill something and start it again.
func (c *chaos) parts() []func() {
	parts := []func(){
		func() {
			c.end(c.front.of)
			c.front = c.agent(c.gateway(0))
			c.replies = c.front.await(c.run)
		},
		func() {
			c.end(c.engine)
			c.temporal(c.engine.address)
		},
	}
	for range 2 {
		worker := c.gateway(2)
		parts = append(parts, func() {
			c.end(worker)
			worker = c.gateway(2)
		})
	}
	if c.postgres != nil {
		parts = append(parts, func() {
			c.postgres.Kill()
			c.postgres.Start()
		})
	}
	return parts
}

// end kills a process, which must not have ended by itself.
func (c *chaos) end(p *process) {
	select {
	case <-p.ended:
		c.Errorf("%s has ended by itself: %s", filepath.Base(p.Path), p.log())
	default:
		p.kill()
	}
}
