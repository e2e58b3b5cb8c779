package stages_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestSharedFailure: one error, such as that of an input, fails several items at once. Each gets its own copy to add to.
func TestSharedFailure(t *testing.T) {
	shared := stages.Errorf(stages.ServerUnavailable, "", "the server is gone")
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = stages.ItemError(stages.ItemError(shared, i+1), i+11) })
	}
	all.Wait()
	for i, err := range errs {
		e := err.(*stages.Error)
		if want := fmt.Sprintf("the server is gone (within item %d of the for_each around it)", i+11); e.Item != i+1 || e.Msg != want {
			t.Errorf("item %d, %q; want item %d, %q", e.Item, e.Msg, i+1, want)
		}
	}
	if shared.Msg != "the server is gone" || shared.Item != 0 {
		t.Errorf("the shared error has become that of item %d: %q", shared.Item, shared.Msg)
	}
}

// TestSharedKeepsItself: an answer that grows when its call is made again does not give way to itself.
func TestSharedKeepsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var seen effects
		slow := w.add("slow2", reads, "x", func(_ context.Context, args map[string]any) (string, error) {
			n := seen.add(args)
			switch x := fmt.Sprint(args["x"]); {
			case x == "1" && n == 1:
				return "", stages.Errorf(stages.ServerUnavailable, "", "not now")
			case x == "1":
				time.Sleep(5 * time.Second)
			case x == "3":
				time.Sleep(20 * time.Second)
			default:
				time.Sleep(10 * time.Millisecond)
			}
			return strings.Repeat("x", 600), nil
		})
		d := w.deps()
		d.Limits = stages.Limits{Shared: 1600}
		_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"slow2","for_each":true,"concurrency":2,"retries":1}]`, "1\n2\n3\n1\n", d, stages.RunOptions{})
		if err != nil || seen.times["1"] != 2 || slow.calls.Load() != 4 {
			t.Errorf("got %v, calls %v", err, seen.times)
		}
	})
}
