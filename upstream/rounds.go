package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxRounds    = 10      // in which a server asks before it answers a call
	maxState     = 1 << 20 // bytes of the state that goes back to the server
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
			return nil, toolFault("the tool asks for input in a wrong way: its requestState is no text of at most %d bytes", maxState)
		}
	}
	if in.requests, err = readInputRequests(r.InputRequests, nil); err != nil {
		return nil, toolFault("the tool asks for input in a wrong way: %w", err)
	}
	return in, nil
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

// fulfil asks everything that a result asks, and notes the answers for the next round.
func (a *asking) fulfil(ctx context.Context, in *inputRequired) error {
	answers, err := a.inputs(ctx, in.requests)
	if err != nil {
		return err
	}
	a.answers = nil
	if len(in.requests) > 0 {
		a.answers = [][]byte{[]byte(`,"inputResponses":`), answers}
	}
	if in.state != nil {
		a.answers = append(a.answers, []byte(`,"requestState":`), bytes.Clone(in.state))
	}
	return nil
}
