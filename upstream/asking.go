package upstream

import (
	"context"
	"encoding/json"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// An asking is what a server asks in the middle of one call, while it is made on one session.
type asking struct {
	conn      *serverConn
	call      stages.Call
	exclusive *exclusive

	ctx     context.Context // of the call on session
	session *sessions.Session
	clock   *pausing.Clock
	answers [][]byte // to the questions of the last round, as members of the parameters of the next one
}

// params are the parameters of a request of the call: with what its caller has declared, where each request says that, and
// with the answers to what the server has asked in the last round.
func (a *asking) params(s *sessions.Session, token int64, members ...[]byte) json.RawMessage {
	capabilities := s.Capabilities
	if s.Stateless() && a.call.Asker != nil {
		capabilities = questions.By(a.call.Asker).Meta(s.Roots != nil)
	}
	return s.ParamsWith(capabilities, a.call.Trace, token, append(members, a.answers...)...)
}

// answerQuestion answers a question of the older era. ctx ends when the server does not want the answer any more.
func (a *asking) answerQuestion(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	if q.Unnamed {
		a.exclusive.take()
		a.conn.shared.unnamed.Store(true)
	}
	both, cancel := context.WithCancel(a.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	answer, err := a.askCaller(both, q.Method, q.Params)
	if a.ctx.Err() != nil {
		return nil, rpc.ErrEnded
	}
	return answer, err
}

// askCaller asks the caller, and returns the result of the method. The clock of the call is paused meanwhile.
func (a *asking) askCaller(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	params = json.RawMessage(a.conn.hide(hideIn(a.session.Transport, string(params))))
	if err := questions.Check(questions.By(a.call.Asker), method, params); err != nil {
		return nil, err
	}
	defer a.clock.Pause()()
	result, err := a.call.Asker.Ask(ctx, stages.Question{
		Server: a.conn.server.Name, Tool: a.call.Name, Item: a.call.Item, Method: method, Params: params,
	})
	if err != nil {
		return nil, err
	}
	return questions.CheckAnswer(method, result)
}
