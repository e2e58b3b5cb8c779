package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/memory"
)

// abandoned is a call of a user whose client does not come back, and which has ended.
func abandoned(t *testing.T, g *gateway.Gateway, user string) (*stateless, askReply) {
	t.Helper()
	s := newStateless(g, user)
	for range 100 { // the question may end before the client sees it
		a := s.call(t, asks(nameForm), "")
		idle(t, g)
		if a.Type == "input_required" {
			return s, a
		}
	}
	t.Fatalf("no call of %s waits for its client", user)
	return nil, askReply{}
}

// TestParkedEnded: calls that have ended without their client keep nobody from being asked. The caller's oldest
// result gives way, or that of all.
func TestParkedEnded(t *testing.T) {
	share := memory.New(64<<20).Share("runs", 64<<20)
	g := curiousGateway(t, gateway.Options{Runs: 8, CallerRuns: 2, AskTimeout: 300 * time.Millisecond, Memory: share})
	type waiting struct {
		of *stateless
		askReply
	}
	var all []waiting
	for i := range 6 { // four have room; each caller may have two
		s, a := abandoned(t, g, fmt.Sprint("user", i/2))
		all = append(all, waiting{s, a})
	}
	for i, w := range all {
		got := w.of.call(t, asks(nameForm), w.answers(t, accepted))
		if gone := refusal(got); gone != (i == 0 || i == 4) || // the oldest one of all, then the caller's own
			!gone && got.text() != `{"action":"cancel"}` {
			t.Errorf("call %d comes to %+v", i, got)
		}
	}
	within(t, "no memory counts", func() bool { return share.Used() == 0 })
}

// TestParkedGone: the results that a client has not fetched go with its access, and with the gateway.
func TestParkedGone(t *testing.T) {
	for name, end := range map[string]func(*gateway.Gateway){
		"access":  func(g *gateway.Gateway) { g.EndUser("ann") },
		"gateway": func(g *gateway.Gateway) { _ = g.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			share := memory.New(64<<20).Share("runs", 64<<20)
			g := curiousGateway(t, gateway.Options{AskTimeout: 300 * time.Millisecond, Memory: share})
			ann, a := abandoned(t, g, "ann")
			_, other := abandoned(t, g, "bob")
			one := share.Used() / 2
			if one == 0 {
				t.Fatal("no memory counts")
			}
			end(g)
			left := int64(0)
			if name == "access" {
				left = one
			}
			within(t, "the memory is free", func() bool { return share.Used() == left })
			if got := ann.call(t, asks(nameForm), a.answers(t, accepted)); !refusal(got) {
				t.Errorf("got %+v", got)
			}
			if got := newStateless(g, "bob").call(t, asks(nameForm), other.answers(t, accepted)); refusal(got) != (left == 0) {
				t.Errorf("bob gets %+v", got)
			}
		})
	}
}
