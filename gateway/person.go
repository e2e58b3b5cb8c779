package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Person calls tools on a page of this gateway, and not through MCP.
type Person struct {
	Token *auth.TokenInfo // nil: nobody authenticates
	Self  string          // stands for the identity in the history of runs where nobody authenticates
	Stdio bool            // the gateway serves standard input and output: the person is the caller there

	Checked func(plan stages.Plan, wrong []*stages.Error) // hears of the check of a plan, in place of its text; may be nil
	Begun   func(request string)                          // hears of the begin of a run; may be nil
}

type personKey struct{}

// CallAs calls a tool, also one of a server by a name of its own, as a client of that person would: within the same limits, views
// and policies. The call ends with ctx, or with the gateway.
func (g *Gateway) CallAs(ctx context.Context, p Person, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool, Arguments: args}}
	if !p.Stdio {
		req.Extra = &mcp.RequestExtra{TokenInfo: p.Token, Header: http.Header{addressHeader: {localAddress}}}
	}
	result, err := g.handle(context.WithValue(ctx, personKey{}, &p), toolsCall, req)
	own, _ := result.(*mcp.CallToolResult)
	return own, err
}

// personIn returns the person of a call; nil: it is a client's.
func personIn(ctx context.Context) *Person {
	p, _ := ctx.Value(personKey{}).(*Person)
	return p
}

// checked tells a person of the check of a plan.
func (p *Person) checked(pipeline *stages.Pipeline, wrong []*stages.Error, late *stages.Error) {
	switch {
	case p == nil || p.Checked == nil:
	case late != nil:
		p.Checked(stages.Plan{}, []*stages.Error{late})
	case wrong != nil:
		p.Checked(stages.Plan{}, wrong)
	default:
		p.Checked(pipeline.Plan(), nil)
	}
}

// begins returns the identity and the client to note for a run.
func (p *Person) begins(user, client string) (string, string) {
	if p == nil {
		return user, client
	}
	return cmp.Or(user, p.Self), "console"
}

// begun tells a person of the begin of a run.
func (p *Person) begun(request string) {
	if p != nil && p.Begun != nil {
		p.Begun(request)
	}
}
