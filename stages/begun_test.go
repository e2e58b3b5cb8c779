package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// steady has the tools post, which takes no time and fails at 3 after a second, fails times, and later, which reads for two
// seconds.
func steady(t *testing.T, fails int) *kept {
	t.Helper()
	k := newKept(t, runs.Options{})
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["x"]) == "3" && fails > 0 {
			fails--
			time.Sleep(time.Second)
			return "", errors.New("not now")
		}
		return fmt.Sprint(args["x"]), nil
	})
	k.add("later", reads, "x", func(ctx context.Context, args map[string]any) (string, error) {
		select {
		case <-time.After(2 * time.Second):
			return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return k
}

const postLater = `{"type":"for_each","concurrency":4,"stages":[{"type":"tool","server":"demo","name":"post"},
	{"type":"tool","server":"demo","name":"later"}]}`

// TestBegunItemsFinish: an item that has begun to change something is let finish when another one fails, with the stages
// behind the call, so that the for_each can be taken up: only what has failed or was not tried is run then.
func TestBegunItemsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 1)
		e := k.failedRun(t, numbers5, postLater)
		if e.Code != stages.ToolError || e.Item != 3 || e.Done != 3 || e.Failed != 1 || strings.Contains(e.Hint, "may have taken effect") {
			t.Errorf("got %+v, want 3 items done and no doubt", e)
		}
		out, _ := k.must(t, from(e.Run, 1, postLater))
		if out != done(5) {
			t.Errorf("got %q", out)
		}
		if n := k.tools["post"].calls.Load(); n != 6 {
			t.Errorf("%d calls, want one for each item and one more for the failed one", n)
		}
	})
}

// TestBegunItemsFinishNested: so are items whose stages are a for_each of their own.
func TestBegunItemsFinishNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 1)
		nested := `{"type":"for_each","concurrency":4,"stages":[` + cat + `,` + postLater + `]}`
		if e := k.failedRun(t, numbers5, nested); e.Code != stages.ToolError || strings.Contains(e.Hint, "may have taken effect") {
			t.Errorf("got %+v, want no doubt", e)
		} else if out, _ := k.must(t, from(e.Run, 1, nested)); strings.Count(out, "done") != 5 {
			t.Errorf("got %q", out)
		}
		if n := k.tools["post"].calls.Load(); n != 6 {
			t.Errorf("%d calls, want one for each item and one more for the failed one", n)
		}
	})
}

// TestBegunItemsFinishBehind: neither does a failure behind the for_each leave an item done by half.
func TestBegunItemsFinishBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 0)
		each := strings.Replace(postLater, `"concurrency":4`, `"concurrency":1`, 1)
		k.add("refuse", reads, "done", func(context.Context, map[string]any) (string, error) {
			time.Sleep(time.Second) // the next item has begun
			return "", errors.New("no")
		})
		e := k.failedRun(t, numbers5, each, `{"type":"tool","server":"demo","name":"refuse","for_each":true}`)
		if strings.Contains(e.Hint, "may have taken effect") {
			t.Errorf("got %+v", e)
		}
		out, _ := k.must(t, from(e.Run, 1, each))
		if n := k.tools["post"].calls.Load(); out != done(5) || n != 5 {
			t.Errorf("got %q after %d calls", out, n)
		}
	})
}

// TestBegunItemsEnd: the time of the run, and its caller, end also items that are let finish.
func TestBegunItemsEnd(t *testing.T) {
	for name, limit := range map[string]time.Duration{"time": 1500 * time.Millisecond, "caller": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := steady(t, 1)
				p, errs := k.compile(t, "["+numbers5+","+postLater+"]")
				if errs != nil {
					t.Fatal(errs)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if name == "caller" {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				start := time.Now()
				_, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{Timeout: limit})
				cancel()
				var e *stages.Error
				if took := time.Since(start); !errors.As(err, &e) || took != 1500*time.Millisecond {
					t.Fatalf("it took %s, got %v", took, err)
				}
				if !strings.Contains(e.Hint, "items 1-2, 4 of stage 2 may have taken effect") {
					t.Errorf("got %q", e.Hint)
				}
			})
		})
	}
}
