package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// TestDurableListed: every gateway lists a durable run once, under one name, with its plan: while it waits for a worker, while one does it, after a
// worker has left it to another one, and at its end. Any of them can cancel it.
func TestDurableListed(t *testing.T) {
	begun, hold := make(chan struct{}, 10), make(chan struct{})
	w := newDurableWorld(t, mcptest.Tool{Name: "wait", ReadOnly: true, Do: func(map[string]any) (string, error) {
		begun <- struct{}{}
		<-hold
		return `{}`, nil
	}})
	gateways := []*gateway.Gateway{}
	start := func(slots int) (stop func()) {
		g, stop := w.start(slots, func(o *gateway.Options) { o.Grace = time.Millisecond })
		gateways = append(gateways, g)
		return stop
	}
	start(0)
	start(0)
	agent := connect(t, gateways[0], newClient())
	const pipeline = `[{"type":"tool","server":"shop","name":"wait"}]`
	s := w.status(first(w.call(agent, pipeline, map[string]any{"durable": true, "wait": 0})))
	listed := func(state string, calls int64) {
		t.Helper()
		names := map[string]bool{}
		for i, g := range gateways {
			var list []control.Run
			within(t, fmt.Sprintf("gateway %d lists it as %s with %d calls", i, state, calls), func() bool {
				list = slices.DeleteFunc(g.History().Runs(t.Context(), operator, control.RunFilter{}).Runs, func(r control.Run) bool { return r.Tool != "execute_pipeline" })
				return len(list) == 1 && list[0].State == state && list[0].Calls == calls
			})
			names[list[0].Request] = true
			if d, err := g.History().Run(t.Context(), operator, list[0].Request); err != nil || string(d.Plan) != pipeline {
				t.Errorf("gateway %d: %+v, %v", i, d, err)
			}
		}
		if len(names) != 1 {
			t.Errorf("it has the names %v", names)
		}
	}
	listed(control.RunRunning, 0)
	stop := start(1)
	<-begun
	listed(control.RunRunning, 1)
	gateways = gateways[:2]
	stop()
	start(1)
	<-begun
	listed(control.RunRunning, 1)
	close(hold)
	waits := fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run)
	if text, failed := w.call(agent, waits, nil); failed {
		t.Errorf("the reply: %s", text)
	}
	listed(control.RunOK, 1)
}

// TestDurableCancelledByOperator: an operator cancels a durable run at a gateway that does not do it, with a worker or without one.
func TestDurableCancelledByOperator(t *testing.T) {
	for _, slots := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d workers", slots), func(t *testing.T) {
			begun := make(chan struct{}, 1)
			w := newDurableWorld(t, mcptest.Tool{Name: "wait", ReadOnly: true, Raw: func(ctx context.Context, _ json.RawMessage) (string, error) {
				begun <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}})
			front, _ := w.gateway(0)
			other, _ := w.start(0)
			w.start(slots)
			s := w.status(first(w.call(front, `[{"type":"tool","server":"shop","name":"wait"}]`, map[string]any{"durable": true, "wait": 0})))
			if slots > 0 {
				<-begun
			}
			list := func(states ...string) []control.Run {
				return other.History().Runs(t.Context(), operator, control.RunFilter{States: states}).Runs
			}
			within(t, "it is listed", func() bool { return len(list(control.RunRunning)) == 1 })
			if err := other.History().Cancel(operator, list()[0].Request); err != nil {
				t.Fatal(err)
			}
			text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil)
			if !failed || !strings.Contains(text, "CANCELLED") {
				t.Errorf("the reply: %s", text)
			}
			within(t, "it is listed as cancelled", func() bool { return len(list(control.RunCancelled)) == 1 && len(list()) == 1 })
		})
	}
}

// TestDurableSilent: an engine that does not answer, and a run that cannot be read, hide no other.
func TestDurableSilent(t *testing.T) {
	tool, release := holding(t)
	defer release()
	w := newDurableWorld(t, tool)
	front, _ := w.gateway(0)
	other, _ := w.start(0)
	for range mostListed {
		w.status(first(w.call(front, waitPipeline, map[string]any{"durable": true, "wait": 0})))
	}
	if err := w.store.Put(t.Context(), "durable/live/damaged", nil); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Put(t.Context(), "durable/damaged/job", []byte("x")); err != nil {
		t.Fatal(err)
	}
	w.engine.silent.Store(true)
	within(t, "all are listed", func() bool {
		return len(other.History().Runs(t.Context(), operator, control.RunFilter{}).Runs) == mostListed
	})
}

// mostListed is how many runs are listed at least, while each request to the engine takes its time.
const mostListed = 40

func first(text string, _ bool) string { return text }

// TestDurableLostAccess: an identity that loses access at any gateway loses its durable runs, with a worker or without one. Those of
// others go on, and one that cannot be read changes nothing.
func TestDurableLostAccess(t *testing.T) {
	tool, release := holding(t)
	w := newDurableWorld(t, tool)
	g, _ := w.start(0)
	for _, name := range []string{"durable/live/damaged", "durable/damaged/job"} {
		if err := w.store.Put(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	alice := w.clients(g)
	bob := alice
	alice.user, bob.user = "alice", "bob"
	const call = `,"durable":true,"wait":0`
	ended, others := []string{alice.call(waitPipeline, call).TaskID}, bob.call(waitPipeline, call).TaskID
	w.start(2)
	bob.until(others, func(r taskReply) bool { return strings.Contains(r.StatusMessage, "call") })
	ended = append(ended, alice.call(waitPipeline, call).TaskID, alice.call(waitPipeline, call).TaskID) // of which one waits
	g.EndUser("alicex")                                                                                 // its token, see [taskClient.ask]
	for _, id := range ended {
		if r := alice.until(id, over); r.Status != "cancelled" {
			t.Errorf("a run of alice: %s", r.Result)
		}
	}
	release()
	if r := bob.until(others, over); r.Status != "completed" {
		t.Errorf("the run of bob: %s", r.Result)
	}
}
