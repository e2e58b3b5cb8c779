package gateway

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Options are what a gateway is made of.
type Options struct {
	Upstream *upstream.Pool // the servers; nil refuses tool stages
	Sandbox  *sandbox.Pool  // the commands; nil refuses command stages
	Limits   stages.Limits

	Runs      int // runs at once, 64 if 0
	MaxOutput int // the largest reply budget that a call may ask for, in characters; 1,000,000 if 0

	Version string      // of the program, shown to clients
	Log     *zap.Logger // a line per run; nil logs nothing
}

// Gateway serves execute_pipeline and the three tools that help to write pipelines. Its methods may be called
// concurrently.
type Gateway struct {
	o      Options
	deps   stages.Deps
	server *mcp.Server
	slots  chan struct{} // one per run at once

	mu     sync.Mutex
	runs   map[*context.CancelFunc]struct{} // guarded by mu
	closed bool                             // guarded by mu
	idle   sync.WaitGroup                   // runs that have not ended
}

const (
	defaultRuns      = 64
	defaultMaxOutput = 1_000_000
)

//go:embed texts/instructions.md
var instructions string

// New returns a gateway. The caller keeps Upstream and Sandbox and closes them after the gateway.
func New(o Options) *Gateway {
	if o.Runs == 0 {
		o.Runs = defaultRuns
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = defaultMaxOutput
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	g := &Gateway{o: o, slots: make(chan struct{}, o.Runs), runs: map[*context.CancelFunc]struct{}{}}
	g.deps = stages.Deps{Shapes: schemas.NewShapes(stages.Kinds()), Limits: o.Limits}
	if o.Upstream != nil {
		g.deps.Tools = o.Upstream
	}
	if o.Sandbox != nil {
		g.deps.Commands = o.Sandbox
	}
	g.server = mcp.NewServer(
		&mcp.Implementation{Name: "mcsh", Title: "mcsh: pipelines over MCP tools", Version: o.Version},
		&mcp.ServerOptions{
			Instructions: strings.TrimSpace(instructions),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		})
	for _, t := range g.tools() {
		g.server.AddTool(t.tool(), t.serve)
	}
	g.server.AddReceivingMiddleware(g.guarded)
	return g
}

// Server returns the MCP server, to be run on a transport.
func (g *Gateway) Server() *mcp.Server { return g.server }

// tool is one of the tools that agents see.
type tool struct {
	name, title string
	text        string // the description
	schema      json.RawMessage
	changes     bool // whether a call may change something
	call        func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)
}

// tools is the table of what the gateway offers.
func (g *Gateway) tools() []tool {
	return []tool{
		{"execute_pipeline", "Run a pipeline", executeText, schemas.ExecutePipeline(stages.Kinds(), schemas.Options{Brief: true}), true, g.executePipeline},
		{"list_all_tools", "List the tools of all servers", listText, listSchema, false, g.listAllTools},
		{"get_tool_details", "Show tools in full", detailsText, detailsSchema, false, g.getToolDetails},
		{"list_available_shell_commands", "List the commands", commandsText, commandsSchema, false, g.listCommands},
	}
}

func (t tool) tool() *mcp.Tool {
	world := t.changes
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: strings.TrimSpace(t.text), InputSchema: t.schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.changes, OpenWorldHint: &world},
	}
}

// serve calls the tool. What an agent can act on is a result with isError, not an error of the protocol.
func (t tool) serve(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result, err := t.call(ctx, req)
	if err != nil {
		return failure(errorText(err)), nil
	}
	return result, nil
}

// guarded recovers from panics, which would end the process, and refuses what is not declared: the SDK would answer
// with empty lists.
func (g *Gateway) guarded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				g.o.Log.Error("panic in a request", zap.String("method", method), zap.Any("panic", p), zap.Stack("stack"))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		for _, prefix := range []string{"prompts/", "resources/", "completion/"} {
			if strings.HasPrefix(method, prefix) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %s", method)}
			}
		}
		return next(ctx, method, req)
	}
}

// begin registers a run and returns its context, which ends with ctx or with the gateway. It refuses when there are
// too many runs or the gateway is closing.
func (g *Gateway) begin(ctx context.Context) (context.Context, func(), error) {
	select {
	case g.slots <- struct{}{}:
	default:
		return nil, nil, stages.Errorf(stages.LimitExceeded, "try again when one of them has ended",
			"%d pipelines are running already (limit runs)", g.o.Runs)
	}
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		cancel()
		<-g.slots
		return nil, nil, stages.Errorf(stages.Cancelled, "call again when it is back", "the gateway is shutting down")
	}
	g.idle.Add(1)
	g.runs[&cancel] = struct{}{}
	return ctx, func() {
		cancel()
		g.mu.Lock()
		delete(g.runs, &cancel)
		g.mu.Unlock()
		<-g.slots
		g.idle.Done()
	}, nil
}

// Close refuses new runs, lets those that run finish until ctx is done, cancels the rest and closes all sessions. It
// may be called more than once.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	idle := make(chan struct{})
	go func() { g.idle.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		g.mu.Lock()
		for cancel := range g.runs {
			(*cancel)()
		}
		g.mu.Unlock()
		<-idle
	}
	var wg sync.WaitGroup
	for s := range g.server.Sessions() {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
	return nil
}
