package durabletest

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mcsh-dev/mcsh/engine/temporal"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/store"
)

// TestOtherConfiguration: a worker with another configuration than the gateway runs nothing, and the reply says why.
func TestOtherConfiguration(t *testing.T) {
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	other := mcptest.New(mcptest.Tool{Name: "post", ReadOnly: true, Schema: anything, Text: "{}"}, mcptest.Tool{Name: "numbers", ReadOnly: true, Do: numbers})
	w.gatewayOf(object{"t": object{"url": other.HTTP(t, nil).URL}}, 1)
	text, failed, err := front.call(each(arguments{N: 3}, "", "post"), object{"durable": true})
	fine(t, err)
	if !failed || !strings.Contains(text, "give all gateways and workers the same configuration and version") {
		t.Errorf("a tool with other effects: %s", text)
	}
	text, failed, err = front.call(each(arguments{N: 3}, "", "look"), object{"durable": true})
	fine(t, err)
	if !failed || !strings.Contains(text, "look") {
		t.Errorf("a tool that the worker lacks: %s", text)
	}
	if n := other.Calls() + w.tools.Calls(); n > 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestNewerVersion: a run that a newer version has written is given up soon, and the reply says why.
func TestNewerVersion(t *testing.T) {
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	run := front.submit(each(arguments{N: 3}, "", "look"))
	rewrite(w, "runs/", func(object []byte) []byte {
		return bytes.Replace(object, []byte(`{"format":1,`), []byte(`{"format":9,`), 1)
	})
	worker := w.gateway(1)
	begun := time.Now()
	text, failed := front.wait(run)
	t.Logf("after %s: %s", time.Since(begun).Round(time.Millisecond), text)
	if !failed || !strings.Contains(text, "another version of mcsh has written it") || !strings.Contains(text, "same version of mcsh") {
		t.Errorf("the reply: %s", text)
	}
	if n := strings.Count(worker.log(), "a durable run is tried again"); n > 5 {
		t.Errorf("the worker has tried %d times", n)
	}
}

// rewrite replaces the objects of a world whose names begin so, as somebody with its keys can.
func rewrite(w *world, prefix string, change func([]byte) []byte) {
	w.Helper()
	dir := filepath.Join(w.dir, "store")
	plain, err := store.OpenDirectory(dir)
	fine(w.T, err)
	defer plain.Close()
	keys, err := store.ReadKeys(filepath.Join(w.dir, "keys"))
	fine(w.T, err)
	sealed := store.Seal(plain, keys)
	n := 0
	for o, err := range sealed.List(w.Context(), prefix) {
		fine(w.T, err)
		data, err := sealed.Get(w.Context(), o.Name)
		fine(w.T, err)
		fine(w.T, sealed.Delete(w.Context(), o.Name))
		fine(w.T, sealed.Put(w.Context(), o.Name, change(data)))
		n++
	}
	if n == 0 {
		w.Fatalf("there are no objects %s*", prefix)
	}
}

// TestPoison: an item whose call ends the worker each time fails after three workers, and the others have their results.
func TestPoison(t *testing.T) {
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	workers := make(chan *process, 1)
	workers <- w.gateway(1)
	dead := make(chan struct{}, 100)
	w.tools.onCall(func(_ string, x int) {
		if x == 13 {
			select {
			case p := <-workers:
				p.kill()
				dead <- struct{}{}
			default: // it is dead
			}
		}
	})
	begun := time.Now()
	run := front.submit(each(arguments{N: 30, Ms: 20}, `,"concurrency":2`, "look"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		text, failed := front.wait(run)
		t.Logf("after %s: %s", time.Since(begun).Round(time.Millisecond), text)
		if failed || strings.Count(text, `"by":"look"`) != 29 || !strings.Contains(text, `"message":"the item is not run again: its worker has ended while it ran"`) {
			t.Errorf("the reply: %s", text)
		}
	}()
	deaths := 0
	for {
		select {
		case <-dead:
			deaths++
			workers <- w.gateway(1)
			continue
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("after %d workers the run goes on", deaths)
		}
		break
	}
	if deaths != 3 {
		t.Errorf("%d workers have died", deaths)
	}
}

// TestLargeOutput: an item may have an output of 50 MB where the limits allow it; the reply is short, and the whole is there.
func TestLargeOutput(t *testing.T) {
	const size = 50_000_000
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	w.gateway(1)
	run := front.submit(each(arguments{N: 2, Size: size / 2}, "", "look"))
	text, failed := front.wait(run)
	t.Logf("two items of half of it: %.300s", text)
	if failed || len(text) > 100_000 {
		t.Errorf("the reply has %d bytes: %.500s", len(text), text)
	}
	if n := len(front.output(run)); n < size {
		t.Errorf("the output has %d bytes", n)
	}
	run = front.submit(each(arguments{N: 2, Size: 2 * size}, "", "look"))
	if text, _ = front.wait(run); !strings.Contains(text, "result") || !strings.Contains(text, "64") {
		t.Errorf("more than a result may have: %.500s", text)
	}
}

// TestTooLong: a run that takes longer than it may has a reply that says so, and can be resumed as a durable run.
func TestTooLong(t *testing.T) {
	const items = 60
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	w.gateway(1)
	text, failed, err := front.call(each(arguments{N: items, Ms: 200}, `,"concurrency":2`, "post"), object{"durable": true, "timeout": 3})
	fine(t, err)
	run := regexp.MustCompile(`r_[a-z2-7]{26}`).FindString(text)
	if !failed || !strings.Contains(text, "TIMEOUT") || run == "" {
		t.Fatalf("the reply: %s", text)
	}
	before := len(w.tools.made("post"))
	text, failed, err = front.call(resume(run), object{"durable": true})
	fine(t, err)
	if failed {
		t.Fatalf("the run that goes on: %s", text)
	}
	got := front.check(front.results(run), "post", items)
	t.Logf("%d calls, then the others: %+v", before, got)
	if before == 0 || before == items || got != (tally{}) {
		t.Errorf("%d calls before; got %+v", before, got)
	}
}

// TestCancel: a run that is cancelled ends the calls under way within a second, and has a reply.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	front := w.agent(w.gateway(0))
	w.gateway(1)
	run := front.submit(each(arguments{N: 8, Ms: 100_000}, `,"concurrency":4`, "look"))
	until(t, "calls are under way", func() bool { return w.tools.Running() == 4 })
	cancelled := time.Now()
	cancelAll(w)
	until(t, "no call is under way", func() bool { return w.tools.Running() == 0 })
	took := time.Since(cancelled)
	t.Logf("the calls ended %s after the cancel", took.Round(time.Millisecond))
	if took > 2*time.Second { // of which one is the promise, and one for a busy machine
		t.Errorf("the calls ended after %s", took)
	}
	if text, failed := front.wait(run); !failed || !strings.Contains(text, "CANCELLED") {
		t.Errorf("the reply: %s", text)
	}
}

// cancelAll cancels the jobs of a world.
func cancelAll(w *world) {
	w.Helper()
	e, err := temporal.Dial(w.Context(), temporal.Options{Address: w.engine.address})
	fine(w.T, err)
	defer e.Close()
	c, err := client.Dial(client.Options{HostPort: w.engine.address})
	fine(w.T, err)
	defer c.Close()
	n := 0
	until(w.T, "Temporal lists the job", func() bool {
		list, err := c.ListWorkflow(w.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
		fine(w.T, err)
		for _, x := range list.Executions {
			if x.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				fine(w.T, e.Cancel(w.Context(), x.Execution.WorkflowId))
				n++
			}
		}
		return n > 0
	})
}
