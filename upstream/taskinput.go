package upstream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// answer answers what the task asks for, all at the same time. In the older form the server makes requests of its own, while
// we ask for the result.
func (w *waiting) answer(ctx context.Context) (json.RawMessage, error) {
	if !w.task.Inline {
		return w.fetch(ctx, inputLimit)
	}
	questions, err := results.ReadInputRequests(w.task.Requests)
	if err == nil {
		err = w.respond(ctx, questions)
	}
	if err != nil {
		return nil, err
	}
	return w.sleep(ctx)
}

// respond asks what has not been asked before, and sends the answers. The clock is paused until they are there.
func (w *waiting) respond(ctx context.Context, questions []results.InputRequest) error {
	questions = slices.DeleteFunc(questions, func(q results.InputRequest) bool { return w.asked[rpc.Name(q.Key)] })
	if len(questions) == 0 {
		return nil
	}
	if len(w.asked)+len(questions) > rpc.MaxQuestions {
		return results.Fault("%s asks more than %d questions", w.label(), rpc.MaxQuestions)
	}
	if w.asked == nil {
		w.asked = map[string]bool{}
	}
	for _, q := range questions {
		w.asked[rpc.Name(q.Key)] = true
	}
	a := w.asking(ctx)
	if err := a.fulfil(ctx, &results.InputRequired{Requests: questions}); err != nil {
		return err
	}
	_, err := w.request(ctx, rpc.TaskUpdate, requestLimit, nil, a.answers...)
	return err
}

// asking is what the server asks about the task, on the session that is held.
func (w *waiting) asking(ctx context.Context) *asking {
	return &asking{conn: w.sc, call: w.call, exclusive: w.exclusive, ctx: ctx, session: w.on, clock: w.clock}
}

// hold makes questions about the task on the session come to the caller, also between two requests about it. It does nothing for
// a task of the newer form, whose questions are in what the server says of it.
func (w *waiting) hold() {
	if w.held != nil {
		w.letGo()
		w.held, w.letGo = nil, nil
	}
	if w.task != nil && !w.task.Inline && w.on != nil && w.on.Answers {
		w.held = &rpc.Request{Task: w.task.ID, Ask: w.asking(w.life).answerQuestion}
		w.letGo = w.on.Transport.Hold(w.held)
	}
}
