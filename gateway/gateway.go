package gateway

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Options configure a gateway.
type Options struct {
	Upstream *upstream.Pool // nil refuses tool stages
	Sandbox  Sandbox        // nil refuses command stages
	Files    stages.Files   // nil refuses stages that save files
	Kept     *runs.Store    // nil keeps no runs
	Limits   stages.Limits

	Runs        int // runs at once, and calls of the other tools at once; 64 if 0
	CallerRuns  int // of one caller; 8 if 0
	AddressRuns int // of one address without authentication; three quarters of Runs if 0; no bound for this machine
	MaxOutput   int // the largest max_output of a call, in characters; [schemas.MaxOutput] if 0

	// Pipelines are the saved pipelines, which need Upstream; nil: there are none. PipelineTools selects those that clients also
	// call by names of their own: see [CheckPipelineTools].
	Pipelines     *pipelines.Set
	PipelineTools string

	// Names makes the names of the tools of Upstream that clients call beside ours.
	Names NameRule

	HTTP   HTTPOptions
	Memory *memory.Share // of all runs together; nil: no bound

	// Grace is how long a call with effects may go on after its client has gone; 0: [DefaultGrace], negative: none.
	Grace time.Duration

	// Group is the only group that is served; empty: all servers, and every group by its path.
	Group string

	// GroupsOf returns the groups of a caller, sorted, and whether the caller may use only their servers. Nil: all callers
	// may use all servers.
	GroupsOf func(*auth.TokenInfo) (groups []string, limited bool)

	// AskTimeout is how long one call may wait for its client's answers to questions of servers, all together;
	// 0: [DefaultAskTimeout], negative: nobody is asked.
	AskTimeout time.Duration
	Sampling   bool // servers may ask the models of clients

	AllowSave bool // agents save pipelines in Pipelines, with Upstream

	// NameOf returns the name of a caller for the log; nil: the log names no callers.
	NameOf func(*auth.TokenInfo) string

	// Instance identifies this gateway, so that Upstream refuses it as one of its own servers; empty: it does not.
	Instance string

	Durable Durable // needs Kept with a shared store

	Version string      // of the program
	Log     *zap.Logger // nil logs nothing
	Watch   Watch       // nil: none
}

// A Sandbox runs commands.
type Sandbox interface {
	stages.Commands

	// Describe reports the abilities of the sandbox. Its error is the reason that no command can run.
	Describe() (sandbox.Report, error)
}

// Gateway serves execute_pipeline and the three tools that help to write pipelines. Its methods may be called
// concurrently.
type Gateway struct {
	front
	o       Options
	deps    stages.Deps
	own     []tool
	runs    *slots
	history *history.History
	dialogs dialogs
	exposed *exposed // nil: no servers
	lookups *slots   // calls of the other tools, which work while all runs are taken

	subscriptions *subscriptions
	notices       *notices // nil without Upstream
}

//go:embed texts/instructions.md
var instructions string

// New returns a gateway. The caller keeps Upstream and Sandbox and closes them after the gateway.
func New(o Options) *Gateway {
	o.Runs = cmp.Or(o.Runs, DefaultRuns)
	o.CallerRuns = cmp.Or(o.CallerRuns, DefaultCallerRuns)
	o.AddressRuns = cmp.Or(o.AddressRuns, max(1, o.Runs-o.Runs/4))
	o.MaxOutput = cmp.Or(o.MaxOutput, schemas.MaxOutput)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.AskTimeout = cmp.Or(o.AskTimeout, DefaultAskTimeout)
	o.Watch = cmp.Or[Watch](o.Watch, Unwatched{})
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	g := &Gateway{o: o, dialogs: dialogs{seal: newSealer(), parked: map[string]*dialog{}}}
	var live history.Others
	if o.Durable.Engine != nil {
		live = g.liveJobs
	}
	g.history = history.New(o.Kept, live)
	g.runs = newSlots("pipelines and calls of tools", o.Runs, o.CallerRuns, o.AddressRuns)
	g.lookups = newSlots("calls of the tools that help to write pipelines", o.Runs, o.Runs, o.AddressRuns)
	g.deps = stages.Deps{Schemas: schemas.Stages(), Files: o.Files, Limits: o.Limits, Memory: o.Memory}
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
	}), o.HTTP)
	g.self, g.grace = self, o.Grace
	g.own = slices.DeleteFunc(g.tools(), func(t tool) bool { return t.name == saveName && !o.savesPipelines() })
	for _, t := range g.own {
		g.handlers[t.name] = g.serve(t)
		g.server.AddTool(t.tool(), g.handlers[t.name])
	}
	if o.Kept != nil {
		g.offerOutputs()
	}
	if o.Durable.Engine != nil {
		g.offerTasks()
	}
	g.server.AddReceivingMiddleware(g.guarded, g.sessions.track, g.relay)
	g.handle, g.front.hasGroup = g.guarded(g.callTool), g.hasGroup
	g.subscriptions = newSubscriptions(o.Upstream, o.HTTP.SessionBytes)
	g.server.AddSendingMiddleware(sendNotices)
	g.listens = func(ctx context.Context, c *Call, send func([]byte) error) (mcp.Result, error) {
		return g.guardedListen(c, send)(ctx, rpc.Listen, &mcp.SubscriptionsListenRequest{Session: c.server, Extra: c.extra})
	}
	if o.Upstream != nil {
		g.relayServers()
	}
	return g
}

// relayServers answers requests about what servers offer.
func (g *Gateway) relayServers() {
	g.notices = &notices{g: g, listeners: map[*mcp.ServerSession][]*listener{}}
	g.server.AddReceivingMiddleware(g.notices.receive)
	g.server.AddSendingMiddleware(g.notices.send)
	g.o.Upstream.OnOffers(g.offersChanged)
	g.exposed = newExposed(g.o.Upstream, g.o.Names, g.o.Log)
	g.exposes = true
	g.handle = g.guarded(g.callAny)
	if g.o.Pipelines != nil {
		g.o.Upstream.FollowTools(g.o.Pipelines.Calls)
		g.o.Upstream.Beside(func(ctx context.Context) []string { return g.o.Pipelines.Servers(ctx, viewerOf(ctx, "")) })
	}
	g.o.Upstream.OnTools(g.toolsChanged)
	g.reads = g.guarded(func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		return g.readResource(ctx, req, nil)
	})
}

func (o Options) savesPipelines() bool { return o.AllowSave && o.Pipelines != nil && o.Upstream != nil }

// capabilities returns the capabilities for clients.
func (o Options) capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: o.Upstream != nil}}
	if o.Instance != "" {
		c.Experimental = upstream.GatewayCapability(o.Instance)
	}
	if o.Kept != nil || o.Upstream != nil {
		c.Resources = &mcp.ResourceCapabilities{ListChanged: o.Upstream != nil, Subscribe: o.Upstream != nil}
	}
	if o.Durable.Engine != nil {
		c.AddExtension(rpc.TasksExtension, nil)
	}
	if o.Upstream != nil {
		c.Prompts, c.Completions = &mcp.PromptCapabilities{ListChanged: true}, &mcp.CompletionCapabilities{}
	}
	return c
}

// EndUser cancels the calls and durable runs of an identity that has lost access, also those that wait for its answers, and closes its
// sessions. Its kept runs stay as long as those of others: the same identity may return.
func (g *Gateway) EndUser(user string) {
	g.front.EndUser(user)
	if g.o.Durable.Engine != nil {
		go g.cancelJobs(user)
	}
	g.history.EndUser(user)
	g.dialogs.end(func(caller string) bool { return caller == callerUser+user })
}

// Close refuses new calls, waits for calls in flight until ctx is done, cancels the others and closes all sessions. Results that
// no client has fetched are lost. It may be called more than once. The error counts calls that do not end after their
// cancellation.
func (g *Gateway) Close(ctx context.Context) error {
	defer g.history.Sync(context.WithoutCancel(ctx))
	defer g.dialogs.end(func(string) bool { return true })
	return g.front.Close(ctx)
}

// Server returns the MCP server, for a transport.
func (g *Gateway) Server() *mcp.Server { return g.server }

// ToolNames returns the names of the gateway's own tools.
func ToolNames() []string {
	var names []string
	for _, t := range new(Gateway).tools() {
		names = append(names, t.name)
	}
	return names
}

// tool is one of the gateway's own tools.
type tool struct {
	name, title string
	subject     string // of its errors
	text        string // the description
	schema      json.RawMessage
	changes     bool // a call may have effects
	slots       *slots
	call        mcp.ToolHandler
}

// The schemas of execute_pipeline are the same for every gateway of a process.
var (
	executeSchema = sync.OnceValue(func() json.RawMessage { return schemas.ExecutePipeline(stages.Kinds(), schemas.Options{Brief: true}) })
	durableSchema = sync.OnceValue(func() json.RawMessage {
		return schemas.ExecutePipeline(stages.Kinds(), schemas.Options{Brief: true, Durable: true})
	})
)

// tools returns the table of the gateway's own tools.
func (g *Gateway) tools() []tool {
	schema, text := executeSchema, executeText
	if g.o.Durable.Engine != nil {
		schema, text = durableSchema, executeText+durableText
	}
	return []tool{
		{executeName, "Run a pipeline", pipelineSubject, text, schema(), true, g.runs, g.executePipeline},
		{"list_all_tools", "List the tools of all servers", "list_all_tools", listText, listSchema, false, g.lookups, g.listAllTools},
		{"get_tool_details", "Show tools in full", "get_tool_details", detailsText, detailsSchema, false, g.lookups, g.getToolDetails},
		{"list_available_shell_commands", "List the commands", "list_available_shell_commands", commandsText, commandsSchema, false, g.lookups, g.listCommands},
		{saveName, "Save a pipeline as a tool", saveName, saveText, saveSchema, true, g.lookups, g.savePipeline},
	}
}

func (t tool) tool() *mcp.Tool {
	world := t.changes
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: strings.TrimSpace(t.text), InputSchema: t.schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.changes, OpenWorldHint: &world},
	}
}

// serve calls a tool. An error that an agent can act on becomes a result with isError, not an error of the protocol.
func (g *Gateway) serve(t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if fault := argumentsFault(req.Params.Arguments); fault != nil {
			g.o.Watch.Refused(t.name, stages.Errorf(stages.InvalidArguments, "", "%w", fault))
			return nil, fault
		}
		result, err := g.call(ctx, t, req)
		if started, ok := errors.AsType[startedTask](err); ok {
			return nil, started
		}
		if err != nil {
			g.logInternal(stages.AsError(err))
			g.o.Watch.Refused(t.name, err)
			return failure(errorText(t.subject, err, g.defaultOutput())), nil
		}
		return result, nil
	}
}

func (g *Gateway) call(ctx context.Context, t tool, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if _, err := upstream.Hops(req.Params.Meta); err != nil {
		return nil, err
	}
	result, err := g.converse(ctx, req, t.slots, func(ctx, _ context.Context) (mcp.Result, error) {
		result, err := t.call(ctx, req)
		return result, err
	})
	own, _ := result.(*mcp.CallToolResult)
	return own, err
}

// defaultOutput returns the reply budget of a call without max_output, in characters.
func (g *Gateway) defaultOutput() int { return min(schemas.DefaultOutput, g.o.MaxOutput) }

// guarded recovers from panics, shows a request only the servers that it may use, tells them what its client can answer, and
// refuses methods of undeclared capabilities, which the SDK would answer with empty lists.
func (g *Gateway) guarded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				g.o.Log.Error("panic in a request", zap.String("method", method), zap.String("type", fmt.Sprintf("%T", p)), zap.Stack("stack"))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
			}
		}()
		for _, prefix := range []string{"prompts/", "resources/", "completion/"} {
			if strings.HasPrefix(method, prefix) && !g.offers(method) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %s", method)}
			}
		}
		res, err = next(g.forClient(g.inView(ctx, req.GetExtra()), req), method, req)
		if started, ok := errors.AsType[startedTask](err); ok {
			return started.task, nil
		}
		return res, err
	}
}

// offers reports whether the gateway has what a method is about.
func (g *Gateway) offers(method string) bool {
	return g.o.Kept != nil && slices.Contains(outputMethods, method) || g.o.Upstream != nil && relays[method] != nil
}

// begin registers a call and returns its context, which ends with ctx or with the gateway. It never waits: it refuses a call
// without a free slot or while the gateway closes.
func (g *Gateway) begin(ctx context.Context, s *slots, extra *mcp.RequestExtra) (context.Context, func(), error) {
	release, err := s.take(originOfCall(extra))
	if err != nil {
		return nil, nil, err
	}
	ctx, end, open := g.calls.begin(ctx, callerOf(extra))
	if !open {
		release()
		return nil, nil, stages.Errorf(stages.Cancelled, "call again when it is back", "the gateway is shutting down")
	}
	return ctx, func() { release(); end() }, nil
}
