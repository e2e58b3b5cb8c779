package upstream

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// TestQuestionStopsClock: the time of a call does not pass while its caller is asked, in either era.
func TestQuestionStopsClock(t *testing.T) {
	params := json.RawMessage(`{"message":"who?","requestedSchema":{"type":"object"}}`)
	for name, ask := range map[string]func(context.Context, *asking) (json.RawMessage, error){
		"older era": func(_ context.Context, a *asking) (json.RawMessage, error) {
			return a.answerQuestion(context.Background(), rpc.Question{Method: rpc.Elicitation, Params: params})
		},
		"newer era": func(ctx context.Context, a *asking) (json.RawMessage, error) {
			return a.input(ctx, results.InputRequest{Method: rpc.Elicitation, Params: params})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPool(Options{})
			defer p.Close()
			k := pausing.New()
			ctx, cancel := k.WithTimeout(t.Context(), time.Minute, sessions.ErrTimeout)
			defer cancel()
			sc := newServerConn(&Server{Name: "s"}, p)
			x := &exclusive{conn: sc}
			a := &asking{conn: sc, exclusive: x, ctx: ctx, session: &sessions.Session{Transport: mute{}}, clock: k, call: stages.Call{Asker: &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
				time.Sleep(time.Hour)
				return json.RawMessage(`{"action":"decline"}`), nil
			}}}}
			got, err := ask(ctx, a)
			if string(got) != `{"action":"decline"}` || err != nil || ctx.Err() != nil {
				t.Errorf("%s: got %s, %v, the call: %v", name, got, err, context.Cause(ctx))
			}
			x.leave()
			<-ctx.Done()
			if context.Cause(ctx) != sessions.ErrTimeout {
				t.Errorf("%s: ended with %v", name, context.Cause(ctx))
			}
		})
	}
}

// mute is a transport that is not used.
type mute struct{ sessions.Transport }
