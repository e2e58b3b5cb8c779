package stages_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// trials are tools whose calls end as their arguments say: "fails" lists how the first calls with an id end, the calls
// after those succeed.
type trials struct {
	mu    sync.Mutex
	calls map[string]int // by tool and id; guarded by mu
}

// unsent is an error of a call that has certainly not reached the tool.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// endings are the ways in which a call can fail.
var endings = map[string]func(ctx context.Context, id any) error{
	"error": func(_ context.Context, id any) error {
		return stages.Errorf(stages.ToolError, "", "record %v is corrupt", id)
	},
	"429": func(context.Context, any) error {
		e := stages.Errorf(stages.ServerUnavailable, "", "429 Too Many Requests")
		e.RetryAfter = 2 * time.Second
		return unsent{e}
	},
	"later": func(context.Context, any) error {
		e := stages.Errorf(stages.ServerUnavailable, "", "429 Too Many Requests")
		e.RetryAfter = time.Hour
		return unsent{e}
	},
	"503": func(context.Context, any) error {
		return stages.Errorf(stages.ServerUnavailable, "", "503 Service Unavailable, and the call may have taken effect")
	},
	"refused": func(context.Context, any) error {
		return unsent{stages.Errorf(stages.ServerUnavailable, "", "nothing listens there")}
	},
	"late": func(ctx context.Context, _ any) error {
		<-ctx.Done()
		return ctx.Err()
	},
	"denied": func(context.Context, any) error {
		return stages.Errorf(stages.Denied, "", "the tool may not be called any more")
	},
	"bug": func(context.Context, any) error { panic("a bug") },
}

// add adds the tools: read, which only reads, put, which is idempotent, and post, which is neither.
func (x *trials) add(w *world) {
	x.calls = map[string]int{}
	for name, info := range map[string]stages.Tool{"read": {ReadOnly: true}, "put": {Idempotent: true}, "post": {}} {
		t := w.add(name, info.ReadOnly, "id", func(ctx context.Context, args map[string]any) (string, error) {
			return x.call(ctx, name, args)
		})
		t.info.Idempotent = info.Idempotent
		t.info.Input.Closed = false
	}
}

func (x *trials) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	x.mu.Lock()
	key := fmt.Sprint(tool, args["id"])
	n := x.calls[key]
	x.calls[key]++
	x.mu.Unlock()
	fails, _ := args["fails"].([]any)
	if n < len(fails) {
		return "", endings[fmt.Sprint(fails[n])](ctx, args["id"])
	}
	if text, ok := args["says"]; ok {
		return fmt.Sprint(text), nil
	}
	return fmt.Sprintf(`{"id":%v}`, args["id"]), nil
}
