package gateway

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Options are what a gateway is made of.
type Options struct {
	Upstream *upstream.Pool // the servers; nil refuses tool stages
	Sandbox  Sandbox        // the commands; nil refuses command stages
	Files    stages.Files   // where stages save files; nil refuses those that do
	Kept     *runs.Store    // what runs produced; nil keeps nothing
	Limits   stages.Limits

	Runs       int // runs at once, 64 if 0; as many calls of the other tools at once
	CallerRuns int // of them, those of one caller, 8 if 0; without a session there is none
	MaxOutput  int // the largest reply budget that a call may ask for, in characters; [schemas.MaxOutput] if 0

	// Grace is how long what runs may go on once nobody waits for it any more; negative: not at all, 0: [DefaultGrace].
	Grace time.Duration

	// NameOf is what people call the caller whom somebody has let in with this, for the log; nil: the log names no callers.
	NameOf func(*auth.TokenInfo) string

	// Instance is the name of this gateway, by which Upstream knows it where it meets it among its servers. Empty: it
	// is not known.
	Instance string

	Version string      // of the program, shown to clients
	Log     *zap.Logger // a line per run; nil logs nothing
	Watch   Watch       // nil: nobody watches
}

// A Sandbox is what runs commands.
type Sandbox interface {
	stages.Commands

	// Describe says what the sandbox is able to do. The error says why no command can run at present.
	Describe() (sandbox.Report, error)
}

// Gateway serves execute_pipeline and the three tools that help to write pipelines. Its methods may be called
// concurrently.
type Gateway struct {
	front
	o     Options
	deps  stages.Deps
	runs  *slots
	looks *slots // calls of the other tools: where all runs are taken, agents can still look around

	mu     sync.Mutex
	open   map[*context.CancelFunc]string // the calls that have not ended, with their callers, guarded by mu
	closed bool                           // guarded by mu
	ended  bool                           // over is closed; guarded by mu
	over   chan struct{}                  // closed when what runs is cancelled
	idle   sync.WaitGroup                 // calls that have not ended
}

//go:embed texts/instructions.md
var instructions string

// New returns a gateway. The caller keeps Upstream and Sandbox and closes them after the gateway.
func New(o Options) *Gateway {
	if o.Runs == 0 {
		o.Runs = DefaultRuns
	}
	if o.CallerRuns == 0 {
		o.CallerRuns = DefaultCallerRuns
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = schemas.MaxOutput
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Watch == nil {
		o.Watch = unwatched{}
	}
	g := &Gateway{o: o, open: map[*context.CancelFunc]string{}, over: make(chan struct{})}
	g.runs = newSlots("pipelines", o.Runs, o.CallerRuns)
	g.looks = newSlots("calls of the tools that help to write pipelines", o.Runs, o.Runs)
	g.deps = stages.Deps{Shapes: schemas.NewShapes(stages.Kinds()), Files: o.Files, Limits: o.Limits}
	if o.Upstream != nil {
		g.deps.Tools = o.Watch.Tools(o.Upstream)
	}
	if o.Sandbox != nil {
		g.deps.Commands = o.Sandbox
	}
	self := &mcp.Implementation{Name: "mcsh", Title: "mcsh: pipelines over MCP tools", Version: o.Version}
	g.front = newFront(mcp.NewServer(self, &mcp.ServerOptions{
		Instructions: strings.TrimSpace(instructions),
		Capabilities: o.capabilities(),
		Logger:       sdkLog(o.Log),
	}))
	g.self, g.grace = self, o.Grace
	for _, t := range g.tools() {
		g.handlers[t.name] = g.serve(t)
		g.server.AddTool(t.tool(), g.handlers[t.name])
	}
	if o.Kept != nil {
		g.offerOutputs()
	}
	g.server.AddReceivingMiddleware(g.guarded, g.sessions.attend)
	g.handle = g.guarded(g.callTool)
	return g
}

// capabilities are what clients are told that there is.
func (o Options) capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if o.Instance != "" {
		c.Experimental = upstream.GatewayCapability(o.Instance)
	}
	if o.Kept != nil {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	return c
}

// Server returns the MCP server, to be run on a transport.
func (g *Gateway) Server() *mcp.Server { return g.server }

// ToolNames are the tools that agents see.
func ToolNames() []string {
	var names []string
	for _, t := range new(Gateway).tools() {
		names = append(names, t.name)
	}
	return names
}

// tool is one of the tools that agents see.
type tool struct {
	name, title string
	subject     string // what its errors are about
	text        string // the description
	schema      json.RawMessage
	changes     bool // whether a call may change something
	slots       *slots
	call        func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)
}

// tools is the table of what the gateway offers.
func (g *Gateway) tools() []tool {
	execute := schemas.ExecutePipeline(stages.Kinds(), schemas.Options{Brief: true})
	return []tool{
		{"execute_pipeline", "Run a pipeline", pipelineSubject, executeText, execute, true, g.runs, g.executePipeline},
		{"list_all_tools", "List the tools of all servers", "list_all_tools", listText, listSchema, false, g.looks, g.listAllTools},
		{"get_tool_details", "Show tools in full", "get_tool_details", detailsText, detailsSchema, false, g.looks, g.getToolDetails},
		{"list_available_shell_commands", "List the commands", "list_available_shell_commands", commandsText, commandsSchema, false, g.looks, g.listCommands},
	}
}

func (t tool) tool() *mcp.Tool {
	world := t.changes
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: strings.TrimSpace(t.text), InputSchema: t.schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.changes, OpenWorldHint: &world},
	}
}

// serve calls a tool. What an agent can act on is a result with isError, not an error of the protocol.
func (g *Gateway) serve(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if fault := argumentsFault(req.Params.Arguments); fault != nil {
			g.o.Watch.Refused(t.name, stages.Errorf(stages.InvalidArguments, "", "%w", fault))
			return nil, fault
		}
		if _, err := upstream.Hops(req.Params.Meta); err != nil {
			g.o.Watch.Refused(t.name, err)
			return failure(errorText(t.subject, err, g.defaultOutput())), nil
		}
		ctx, end, err := g.begin(ctx, t.slots, callerOf(req))
		if err != nil {
			g.o.Watch.Refused(t.name, err)
			return failure(errorText(t.subject, err, g.defaultOutput())), nil
		}
		defer end()
		result, err := t.call(ctx, req)
		if err != nil {
			g.logInternal(asError(err))
			g.o.Watch.Refused(t.name, err)
			return failure(errorText(t.subject, err, g.defaultOutput())), nil
		}
		return result, nil
	}
}

// defaultOutput is the reply budget of a call that does not ask for one, in characters.
func (g *Gateway) defaultOutput() int { return min(schemas.DefaultOutput, g.o.MaxOutput) }

// guarded recovers from panics, which would end the process, and refuses what is not declared: the SDK would answer
// with empty lists.
func (g *Gateway) guarded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				g.o.Log.Error("panic in a request", zap.String("method", method), zap.String("type", fmt.Sprintf("%T", p)), zap.Stack("stack"))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		for _, prefix := range []string{"prompts/", "resources/", "completion/"} {
			if strings.HasPrefix(method, prefix) && !(g.o.Kept != nil && slices.Contains(outputMethods, method)) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %s", method)}
			}
		}
		return next(ctx, method, req)
	}
}

// begin registers a call and returns its context, which ends with ctx or with the gateway. It never waits: it refuses
// when there are too many calls of that kind or the gateway is closing.
func (g *Gateway) begin(ctx context.Context, s *slots, caller string) (context.Context, func(), error) {
	release, err := s.take(caller)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		cancel()
		release()
		return nil, nil, stages.Errorf(stages.Cancelled, "call again when it is back", "the gateway is shutting down")
	}
	g.idle.Add(1)
	g.open[&cancel] = caller
	return ctx, func() {
		cancel()
		g.mu.Lock()
		delete(g.open, &cancel)
		g.mu.Unlock()
		release()
		g.idle.Done()
	}, nil
}

// Close refuses new calls, lets those that run finish until ctx is done, cancels the rest and closes all sessions. It
// may be called more than once. The error counts calls that have not ended although they were cancelled.
func (g *Gateway) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	idle := make(chan struct{})
	go func() { g.idle.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		g.cancelAll()
		stuck := time.NewTimer(stuckWait)
		defer stuck.Stop()
		select {
		case <-idle:
		case <-stuck.C:
			return g.stuck()
		}
	}
	var wg sync.WaitGroup
	for s := range g.server.Sessions() {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
	return nil
}

// closing reports whether the gateway is being closed: what it keeps goes with it.
func (g *Gateway) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func (g *Gateway) cancelAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.ended = true
		close(g.over)
	}
	for cancel := range g.open {
		(*cancel)()
	}
}

func (g *Gateway) stuck() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Errorf("%d calls have not ended %v after they were cancelled", len(g.open), stuckWait)
}
