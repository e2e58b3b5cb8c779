package upstream

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestClock: the time of a call ends it, does not pass while a question is open, and goes on after the last one.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, k, cancel := newClock(t.Context(), time.Minute)
		defer cancel()
		time.Sleep(20 * time.Second)
		k.stop()
		k.stop()
		time.Sleep(time.Hour)
		k.start()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("it has ended while a question was open")
		}
		k.start()
		<-ctx.Done()
		if took := time.Since(begun); context.Cause(ctx) != errCallTimeout || took != 2*time.Hour+time.Minute {
			t.Errorf("it has ended after %v with %v", took, context.Cause(ctx))
		}
	})
}

// TestClockCancelled: a call that ends otherwise has no cause of the clock's.
func TestClockCancelled(t *testing.T) {
	ctx, _, cancel := newClock(t.Context(), time.Minute)
	cancel()
	if context.Cause(ctx) != context.Canceled {
		t.Errorf("got %v", context.Cause(ctx))
	}
}

// TestQuestionStopsClock: the time of a call does not pass while its caller is asked, in either era.
func TestQuestionStopsClock(t *testing.T) {
	params := json.RawMessage(`{"message":"who?","requestedSchema":{"type":"object"}}`)
	for name, ask := range map[string]func(context.Context, *asking) (json.RawMessage, error){
		"older era": func(_ context.Context, a *asking) (json.RawMessage, error) {
			return a.ask(context.Background(), rpc.Elicitation, params)
		},
		"newer era": func(ctx context.Context, a *asking) (json.RawMessage, error) {
			return a.input(ctx, inputRequest{method: rpc.Elicitation, params: params})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPool(Options{})
			defer p.Close()
			ctx, k, cancel := newClock(t.Context(), time.Minute)
			defer cancel()
			sc := newServerConn(&Server{Name: "s"}, p)
			turn := &turn{conn: sc}
			a := &asking{conn: sc, turn: turn, ctx: ctx, session: &session{transport: mute{}}, clock: k, call: stages.Call{Asker: &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
				time.Sleep(time.Hour)
				return json.RawMessage(`{"action":"decline"}`), nil
			}}}}
			got, err := ask(ctx, a)
			if string(got) != `{"action":"decline"}` || err != nil || ctx.Err() != nil {
				t.Errorf("%s: got %s, %v, the call: %v", name, got, err, context.Cause(ctx))
			}
			turn.leave()
			<-ctx.Done()
			if context.Cause(ctx) != errCallTimeout {
				t.Errorf("%s: ended with %v", name, context.Cause(ctx))
			}
		})
	}
}

// mute is a transport that is not used.
type mute struct{ rawTransport }
