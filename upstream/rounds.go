package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

const (
	maxRounds    = 10 // in which a server asks before it answers a call
	maxShedding  = 3  // results that ask nothing, and want the call again
	sheddingWait = 250 * time.Millisecond
)

// rounds makes a query, and makes it again with the answers as often as its result asks something (newer era).
func (a *asking) rounds(ctx context.Context, s *sessions.Session, c query) (json.RawMessage, *rpc.Failure) {
	questions, shed := 0, 0
	for round := 1; ; round++ {
		raw, failure := c.send(ctx, s, c.Call, a)
		if failure != nil {
			failure.Sent = failure.Sent || round > 1 // a server that has asked has seen the call
			return nil, failure
		}
		if c.aboutTask {
			return raw, nil
		}
		in, err := a.asked(raw)
		if err == nil && in == nil {
			return raw, nil
		}
		if err == nil {
			questions += len(in.Requests)
			err = tooOften(round, questions)
		}
		if err == nil && len(in.Requests) == 0 {
			shed++
			err = a.shed(shed)
		}
		if err == nil {
			err = a.fulfil(ctx, in)
		}
		if err != nil {
			return nil, &rpc.Failure{Err: err, Sent: true}
		}
		c.MaySend = nil // it has been sent
	}
}

// asked returns what a result asks; nil for a result that asks nothing, or something that nobody here can answer.
func (a *asking) asked(raw json.RawMessage) (*results.InputRequired, error) {
	if !a.session.Stateless() || a.call.Asker == nil && a.session.Roots == nil {
		return nil, nil
	}
	in, err := results.ReadInputRequired(raw)
	if in == nil || err != nil {
		return nil, err
	}
	for _, q := range in.Requests {
		if (q.Method != questions.MethodRoots || a.session.Roots == nil) && !questions.By(a.call.Asker).Allows(q.Method) {
			return nil, nil // the result becomes the error that says so
		}
	}
	return in, nil
}

// tooOften refuses to go on with a server that asks without end.
func tooOften(round, questions int) error {
	if round >= maxRounds || questions > rpc.MaxQuestions {
		return stages.Errorf(stages.ToolError, "use another tool, or report it to the makers of the server",
			"the tool asks for input again and again: %d questions in %d rounds", questions, round)
	}
	return nil
}

// shed waits before a call is made again that a busy server has sent back.
func (a *asking) shed(times int) error {
	if times > maxShedding {
		return stages.Errorf(stages.ToolError, "try again later", "the server is busy: it has sent the call back %d times", times)
	}
	return pausing.For(a.ctx, sheddingWait<<times)
}

// fulfil asks everything that a result asks, at the same time, and notes the answers for the next round.
func (a *asking) fulfil(ctx context.Context, in *results.InputRequired) error {
	answers := make([]json.RawMessage, len(in.Requests))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range in.Requests {
		g.Go(func() (err error) {
			answers[i], err = a.input(ctx, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var members bytes.Buffer
	for i, q := range in.Requests {
		members.WriteString(choose(i == 0, `"`, `,"`))
		members.Write(q.Key)
		members.WriteString(`":`)
		members.Write(answers[i])
	}
	a.answers = nil
	if len(in.Requests) > 0 {
		a.answers = [][]byte{[]byte(`,"inputResponses":{`), members.Bytes(), []byte(`}`)}
	}
	if in.State != nil {
		a.answers = append(a.answers, []byte(`,"requestState":`), bytes.Clone(in.State))
	}
	return nil
}

// input answers one question of a result. A person who does not answer has cancelled it; for others there is no such answer.
func (a *asking) input(ctx context.Context, q results.InputRequest) (json.RawMessage, error) {
	if q.Method == questions.MethodRoots && a.session.Roots != nil {
		return a.session.Roots, nil
	}
	answer, err := a.askCaller(ctx, q.Method, bytes.Clone(q.Params))
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case rpc.Decline(q.Method) != nil:
		return rpc.Decline(q.Method), nil
	}
	return nil, stages.Errorf(stages.ToolError, "answer what the tool asks, or use another tool", "the tool asks for input, and got no answer: %w", err)
}
