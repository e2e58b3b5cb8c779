package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Person is somebody who uses the gateway through its pages and not through an MCP client. Requests of a person have the groups,
// slots, limits and policies of those of a client with the same identity. Nobody can ask a person anything.
type Person struct {
	g     *Gateway
	extra *mcp.RequestExtra
}

// Person returns the person with an identity. Without one it is the person of this machine: the client of a gateway on standard
// input and output, if stdio says so.
func (g *Gateway) Person(token *auth.TokenInfo, stdio bool) Person {
	if token == nil && stdio {
		return Person{g, &mcp.RequestExtra{}}
	}
	header := http.Header{}
	header.Set(addressHeader, localAddress)
	return Person{g, &mcp.RequestExtra{TokenInfo: token, Header: header}}
}

// View returns a context with the servers that the person may use.
func (p Person) View(ctx context.Context) context.Context { return p.g.inView(ctx, p.extra) }

// Viewer says which saved pipelines the person may know of.
func (p Person) Viewer(ctx context.Context) pipelines.Viewer { return p.g.viewer(p.View(ctx), p.extra) }

// Call calls a tool of the gateway's own.
func (p Person) Call(ctx context.Context, name string, args any) (*mcp.CallToolResult, error) {
	written, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	params := &mcp.CallToolParamsRaw{Name: name, Arguments: written}
	result, err := p.g.guarded(p.g.callTool)(ctx, toolsCall, &mcp.CallToolRequest{Params: params, Extra: p.extra})
	if err != nil {
		return nil, err
	}
	own, ok := result.(*mcp.CallToolResult)
	if !ok {
		return nil, fmt.Errorf("the result of %s is a %T", name, result)
	}
	return own, nil
}

// Work calls f, which checks or runs saved pipelines, in a slot of the runs and with what a pipeline of the person has: servers,
// limits and saved pipelines. Nothing of it is kept.
func (p Person) Work(ctx context.Context, f func(context.Context, stages.Deps, pipelines.Viewer) error) error {
	ctx, end, err := p.g.begin(p.View(ctx), p.g.runs, p.extra)
	if err != nil {
		return err
	}
	defer end()
	deps := p.g.depsOf(p.extra)
	deps.Runs = nil
	return f(ctx, deps, p.g.viewer(ctx, p.extra))
}

// Read reads a resource of a server. The answer is that for clients.
func (p Person) Read(ctx context.Context, uri string) (json.RawMessage, error) {
	return p.relayed(ctx, resourcesRead, &mcp.ReadResourceRequest{Params: &mcp.ReadResourceParams{URI: uri}, Extra: p.extra})
}

// Prompt gets a prompt of a server by its name at the server.
func (p Person) Prompt(ctx context.Context, server, name string, args map[string]string) (json.RawMessage, error) {
	return p.relayed(ctx, "prompts/get", &mcp.GetPromptRequest{Params: &mcp.GetPromptParams{Name: promptName(server, name), Arguments: args}, Extra: p.extra})
}

func (p Person) relayed(ctx context.Context, method string, req mcp.Request) (json.RawMessage, error) {
	if p.g.o.Upstream == nil {
		return nil, stages.Errorf(stages.UnknownServer, "", "there are no MCP servers here")
	}
	ctx, end := context.WithCancel(ctx) // the memory of the answer is counted until it is written
	defer end()
	result, err := p.g.guarded(func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		return relays[method](p.g, ctx, req, func(context.Context, string, mcp.Request) (mcp.Result, error) {
			return nil, stages.Errorf(stages.InvalidArguments, "the page Runs shows outputs", "it is an output of a run")
		})
	})(ctx, method, req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}
