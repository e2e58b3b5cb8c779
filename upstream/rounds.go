package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxRounds    = 10      // in which a server asks before it answers a call
	maxAtOnce    = 16      // questions of one result
	maxState     = 1 << 20 // bytes of the state that goes back to the server
	maxInputKey  = 256     // bytes of the name of a question, as it is written
	maxShedding  = 3       // results that ask nothing, and want the call again
	sheddingWait = 250 * time.Millisecond
)

// rounds makes a query, and makes it again with the answers as often as its result asks something (newer era).
func (a *asking) rounds(ctx context.Context, s *session, c query) (json.RawMessage, *rpc.Failure) {
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
			questions += len(in.requests)
			err = in.tooOften(round, questions)
		}
		if err == nil && len(in.requests) == 0 {
			shed++
			err = a.shed(shed)
		}
		if err == nil {
			err = a.fulfil(ctx, in)
		}
		if err != nil {
			return nil, &rpc.Failure{Err: err, Sent: true}
		}
		c.Sent = nil // it has been sent
	}
}

// inputRequired is a result that asks something.
type inputRequired struct {
	requests []inputRequest
	state    json.RawMessage // a JSON string, or nil
}

// An inputRequest is one question in a result.
type inputRequest struct {
	key    []byte // as it is written, without quotes
	method string
	params json.RawMessage
}

// asked returns what a result asks; nil for a result that asks nothing, or something that nobody here can answer.
func (a *asking) asked(raw json.RawMessage) (*inputRequired, error) {
	if !a.session.stateless() || a.call.Asker == nil && a.session.roots == nil {
		return nil, nil
	}
	in, err := readInputRequired(raw)
	if in == nil || err != nil {
		return nil, err
	}
	for _, q := range in.requests {
		if !canAnswer(a.session.roots != nil, declaredBy(a.call.Asker), q.method) {
			return nil, nil // the result becomes the error that says so
		}
	}
	return in, nil
}

// canAnswer reports whether questions with a method may be answered.
func canAnswer(roots bool, d declared, method string) bool {
	return method == methodRoots && roots || method == rpc.Elicitation && (d.Form || d.URL) || method == rpc.Sampling && d.Sampling
}

// readInputRequired reads a result that asks something; nil: it asks nothing, or is not valid, which shows elsewhere.
func readInputRequired(raw json.RawMessage) (*inputRequired, error) {
	if !bytes.Contains(raw, []byte("input_required")) && !bytes.Contains(raw, []byte(`"inputRequests"`)) {
		return nil, nil
	}
	r, err := decodeResult(raw)
	if err != nil || r.ResultType != "input_required" && isNull(r.InputRequests) {
		return nil, nil
	}
	in := &inputRequired{}
	if !isNull(r.RequestState) {
		if in.state = r.RequestState; in.state[0] != '"' || len(in.state) > maxState {
			return nil, wrongInput("its requestState is no text of at most %d bytes", maxState)
		}
	}
	in.requests, err = readInputRequests(r.InputRequests)
	return in, err
}

// readInputRequests reads the questions of a result or of a task.
func readInputRequests(raw json.RawMessage) (list []inputRequest, err error) {
	if isNull(raw) {
		return nil, nil
	}
	seen := map[string]bool{}
	if !json.Valid(raw) || !rpc.Members(raw, func(key, value []byte) {
		q, wrong := readInputRequest(key, value)
		switch name := rpc.Name(key); {
		case err != nil:
		case len(list) == maxAtOnce:
			err = wrongInput("it asks more than %d things at once", maxAtOnce)
		case wrong != nil:
			err = wrong
		case seen[name]:
			err = wrongInput("two questions have the same name")
		default:
			seen[name] = true
			list = append(list, q)
		}
	}) {
		return nil, wrongInput("its inputRequests are not a valid object")
	}
	return list, err
}

func readInputRequest(key, value []byte) (q inputRequest, err error) {
	q.key = key
	var method []byte
	object := rpc.Members(value, func(name, value []byte) {
		switch string(name) {
		case "method":
			method = value
		case "params":
			q.params = value
		}
	})
	q.method = rpc.Text(method)
	if !object || q.method == "" || len(key) > maxInputKey || len(q.params) > rpc.MaxQuestion {
		return q, wrongInput("a question has no method, or more than %d bytes", rpc.MaxQuestion)
	}
	return q, nil
}

// wrongInput is the error of a tool whose questions are not asked.
func wrongInput(format string, args ...any) error {
	return stages.Errorf(stages.ToolError, "report it to the makers of the server", "the tool asks for input in a wrong way: %w", fmt.Errorf(format, args...))
}

// tooOften refuses to go on with a server that asks without end.
func (in *inputRequired) tooOften(round, questions int) error {
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
	return pauseFor(a.ctx, sheddingWait<<times)
}

// fulfil asks everything that a result asks, at the same time, and notes the answers for the next round.
func (a *asking) fulfil(ctx context.Context, in *inputRequired) error {
	answers := make([]json.RawMessage, len(in.requests))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range in.requests {
		g.Go(func() (err error) {
			answers[i], err = a.input(ctx, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var members bytes.Buffer
	for i, q := range in.requests {
		members.WriteString(choose(i == 0, `"`, `,"`))
		members.Write(q.key)
		members.WriteString(`":`)
		members.Write(answers[i])
	}
	a.answers = nil
	if len(in.requests) > 0 {
		a.answers = [][]byte{[]byte(`,"inputResponses":{`), members.Bytes(), []byte(`}`)}
	}
	if in.state != nil {
		a.answers = append(a.answers, []byte(`,"requestState":`), bytes.Clone(in.state))
	}
	return nil
}

// input answers one question of a result. A person who does not answer has cancelled it; for others there is no such answer.
func (a *asking) input(ctx context.Context, q inputRequest) (json.RawMessage, error) {
	if q.method == methodRoots && a.session.roots != nil {
		return a.session.roots, nil
	}
	answer, err := a.answer(ctx, q.method, bytes.Clone(q.params))
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case rpc.Decline(q.method) != nil:
		return rpc.Decline(q.method), nil
	}
	return nil, stages.Errorf(stages.ToolError, "answer what the tool asks, or use another tool", "the tool asks for input, and got no answer: %w", err)
}
