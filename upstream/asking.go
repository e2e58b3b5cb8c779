package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxAnswer bounds an answer to a question, in bytes.
const maxAnswer = 1 << 20

var (
	errDeclined = errors.New("the caller of the tool does not answer it")
	errAnswer   = errors.New("the answer is not valid")
)

// An asking is what a server asks in the middle of one call, while it is made on one session.
type asking struct {
	conn      *serverConn
	call      stages.Call
	exclusive *exclusive

	ctx     context.Context // of the call on session
	session *session
	clock   *pausing.Clock
	answers [][]byte // to the questions of the last round, as members of the parameters of the next one
}

// params are the parameters of a request of the call: with what its caller has declared, where each request says that, and
// with the answers to what the server has asked in the last round.
func (a *asking) params(s *session, token int64, members ...[]byte) json.RawMessage {
	capabilities := s.capabilities
	if s.stateless() && a.call.Asker != nil {
		capabilities = declaredBy(a.call.Asker).meta(s.roots != nil)
	}
	return s.paramsWith(capabilities, a.call.Trace, token, append(members, a.answers...)...)
}

// ask answers a question of the older era. ctx ends when the server does not want the answer any more.
func (a *asking) ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	if q.Unnamed {
		a.exclusive.take()
		a.conn.shared.unnamed.Store(true)
	}
	both, cancel := context.WithCancel(a.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	answer, err := a.answer(both, q.Method, q.Params)
	if a.ctx.Err() != nil {
		return nil, rpc.ErrEnded
	}
	return answer, err
}

// answer asks the caller, and returns the result of the method. The clock of the call stands still meanwhile.
func (a *asking) answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	params = json.RawMessage(a.conn.hide(hideIn(a.session.transport, string(params))))
	if err := checkQuestion(declaredBy(a.call.Asker), method, params); err != nil {
		return nil, err
	}
	defer a.clock.Pause()()
	result, err := a.call.Asker.Ask(ctx, stages.Question{
		Server: a.conn.server.Name, Tool: a.call.Name, Item: a.call.Item, Method: method, Params: params,
	})
	if err != nil {
		return nil, err
	}
	return checkAnswer(method, result)
}

// actions are those with which an elicitation ends.
var actions = map[string]bool{"accept": true, "decline": true, "cancel": true}

// checkAnswer returns an answer on one line, if it can be one.
func checkAnswer(method string, result json.RawMessage) (json.RawMessage, error) {
	var line bytes.Buffer
	if len(result) > maxAnswer || json.Compact(&line, result) != nil || line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, errAnswer
	}
	var said struct {
		Action string `json:"action"`
	}
	if method == rpc.Elicitation && (json.Unmarshal(line.Bytes(), &said) != nil || !actions[said.Action]) {
		return nil, errAnswer
	}
	return line.Bytes(), nil
}
