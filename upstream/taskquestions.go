package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// answer answers what the task asks for, all at the same time. In the older form the server makes requests of its own, while
// we ask for the result.
func (w *waiting) answer(ctx context.Context) (json.RawMessage, error) {
	if !w.task.inline {
		return w.fetch(ctx, inputLimit)
	}
	list, err := readInputRequests(w.task.requests, w.answered)
	switch {
	case err != nil:
		return nil, abandon("%s asks for input in a wrong way: %w", w.label(), err)
	case len(w.answered)+len(list) > rpc.MaxQuestions:
		return nil, abandon("%s asks for more than %d inputs", w.label(), rpc.MaxQuestions)
	case len(list) > 0:
		if err := w.respond(ctx, list); err != nil {
			return nil, err
		}
	}
	return w.sleep(ctx)
}

// respond gets the answers to questions and sends them.
func (w *waiting) respond(ctx context.Context, list []inputRequest) error {
	answers, err := w.asking(ctx).inputs(ctx, list)
	if e, ok := errors.AsType[*stages.Error](err); ok { // without an answer the task cannot go on
		abandoned := abandon("%s: %w", w.label(), e)
		abandoned.Hint = e.Hint
		return abandoned
	}
	if err != nil {
		return err
	}
	for _, q := range list {
		w.answered[rpc.Name(q.key)] = true
	}
	_, err = w.request(ctx, "tasks/update", requestLimit, nil, []byte(`,"inputResponses":`), answers)
	return err
}

// asking is what the server asks about the task, on the session that is held.
func (w *waiting) asking(ctx context.Context) *asking {
	return &asking{conn: w.sc, call: w.call, exclusive: w.exclusive, ctx: ctx, session: w.on, clock: w.clock}
}

// hold makes questions about the task on the session come to the caller, also between two requests about it. It does nothing for a
// task of the newer form, whose questions are in what the server says of it.
func (w *waiting) hold() {
	w.letGo(taskEnds[w.task.status])
	w.held, w.letGo = nil, func(bool) {}
	if w.on != nil && w.on.mayAsk && !w.task.inline {
		w.held = &rpc.Request{Task: w.task.id, Ask: w.asking(w.life).ask}
		w.letGo = w.on.transport.Hold(w.held)
	}
}
