package upstream

import (
	"context"
	"encoding/json"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// nounTool is the noun of the queries of tools.
const nounTool = "tool"

// askForTask asks for a task, in the older protocol; in the newer one the server decides. The result is to be kept for as long as
// anybody may wait for it, [longestWait], in milliseconds.
const askForTask = `,"task":{"ttl":86400000}`

// empty gives back what a lease has.
func empty(lease *memory.Lease) { _ = lease.Grow(-lease.Used()) } // it does not fail

// callTool calls a tool on a session.
func callTool(ctx context.Context, s *sessions.Session, c stages.Call, a *asking, t *toollist.Tool, lease *memory.Lease) (json.RawMessage, *rpc.Failure) {
	empty(lease) // of the answer before, which asked something
	r := &rpc.Request{Method: "tools/call", Name: t.Original, BeforeSend: c.Sent, Lease: lease}
	if s.Answers {
		r.Ask = a.ask
	}
	if c.Progress != nil {
		r.Token = s.Tokens.Add(1)
		r.Progress = func(p rpc.Progress) {
			c.Progress(stages.ToolProgress{Done: p.Done, Total: p.Total, Message: hideIn(s.Transport, p.Message)})
		}
	}
	members := [][]byte{[]byte(`"name":` + texts.JSON(t.Original) + `,"arguments":`), c.Args}
	if t.AsTask && !s.Stateless() {
		members = append(members, []byte(askForTask))
	}
	r.Params = a.params(s, r.Token, members...)
	if s.Stateless() {
		r.Headers = t.HeadersOf(c.Args)
	}
	r.Headers = sessions.WithTrace(r.Headers, c.Trace)
	return s.Request(ctx, r)
}
