package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
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
// limits, kept outputs and saved pipelines.
func (p Person) Work(ctx context.Context, f func(context.Context, stages.Deps, pipelines.Viewer) error) error {
	ctx, end, err := p.g.begin(p.View(ctx), p.g.runs, p.extra)
	if err != nil {
		return err
	}
	defer end()
	return f(ctx, p.g.depsOf(p.extra), p.g.viewer(ctx, p.extra))
}

// A Trial is a saved pipeline that was compiled to be tried.
type Trial struct {
	Name     string
	Plan     json.RawMessage // its stages, with values for the parameters
	Pipeline *stages.Pipeline
	Dry      bool
}

// Run runs a pipeline within [Person.Work]. It is listed, observed and logged as a run of a client with the same identity, under the
// name that it returns.
func (p Person) Run(ctx context.Context, t Trial, out io.Writer) (request string, report stages.Report, err error) {
	request, err = newRequest(), errPanic
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: t.Name}, Extra: p.extra}
	row := control.Run{Request: request, Started: time.Now(), Stages: t.Pipeline.Len(), DryRun: t.Dry}
	ctx = Observed(ctx, RunObserver{})
	ctx, known, drop := p.g.beginRun(ctx, p.g.beginOf(ctx, req, row, t.Plan, ""))
	defer drop()
	counted := &counting{Writer: out}
	defer func() { known.End(report, counted.n, err) }()
	outlast, end := p.g.outlasting(ctx)
	defer end()
	options := stages.RunOptions{Outlast: outlast, Timeout: p.g.longest(), Begun: known.Follow, Forgets: p.g.calls.closing, DryRun: t.Dry}
	ctx, options, ended := p.g.o.Watch.Run(ctx, request, "", options)
	defer func() { ended(report, counted.n, false, err) }()
	report, err = t.Pipeline.Run(ctx, nil, counted, options)
	err = explained(ctx, err)
	p.g.logRun(p.extra, request, options.Trace, report, counted.n, err)
	return request, report, err
}

// counting counts the bytes that pass.
type counting struct {
	io.Writer
	n int64
}

func (c *counting) Write(data []byte) (int, error) {
	n, err := c.Writer.Write(data)
	c.n += int64(n)
	return n, err
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
