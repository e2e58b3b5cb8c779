package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// callAny calls a tool of ours, or a tool of a server by its name for clients.
func (g *Gateway) callAny(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	if g.handlers[req.(*mcp.CallToolRequest).Params.Name] == nil {
		return g.callExposed(ctx, req.(*mcp.CallToolRequest))
	}
	return g.callTool(ctx, method, req)
}

// relayCall leaves calls of tools of ours to the SDK.
func (g *Gateway) relayCall(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if g.handlers[req.(*mcp.CallToolRequest).Params.Name] != nil {
		return next(ctx, toolsCall, req)
	}
	result, err := g.callExposed(ctx, req.(*mcp.CallToolRequest))
	if own, ok := result.(*mcp.CallToolResult); ok && err == nil {
		return typedResult{CallToolResult: own, stateless: statelessSession(req)}, nil
	}
	return result, err
}

// A typedResult is a result of a call with the resultType that the SDK sets for tools of its own only.
type typedResult struct {
	*mcp.CallToolResult
	stateless bool // the client speaks the stateless protocol
}

// MarshalJSON implements [json.Marshaler].
func (r typedResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireResult(r.CallToolResult, r.stateless))
}

// callExposed calls a tool of a server. An error that an agent can act on becomes a result with isError.
func (g *Gateway) callExposed(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	name := req.Params.Name
	if _, served := g.exposed.find(upstream.ViewOf(ctx), name); !served && g.isSavedTool(ctx, req.Extra, name) {
		return g.callSaved(ctx, req)
	}
	result, err := g.tryExposed(ctx, req)
	if err == nil {
		return result, nil
	}
	if own, ok := err.(*jsonrpc.Error); ok { // made here: one of a server is within another error, with secrets that its text has not
		return nil, own
	}
	g.logInternal(stages.AsError(err))
	return failure(errorText(texts.Plain(shown(name), false), err, g.defaultOutput())), nil
}

// tryExposed makes the call, or goes on with one that has asked its client.
func (g *Gateway) tryExposed(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	fault := argumentsFault(req.Params.Arguments)
	if fault == nil {
		_, fault = upstream.Hops(req.Params.Meta)
	}
	if fault != nil {
		g.o.Watch.Refused(req.Params.Name, fault)
		return nil, fault
	}
	result, err := g.converse(ctx, req, g.runs, func(ctx, kept context.Context) (mcp.Result, error) {
		t, err := g.findExposed(ctx, req.Params.Name)
		if err != nil {
			return nil, err
		}
		call := exposedCall{g: g, req: req, tool: t, request: newRequest(), begun: time.Now(), asker: g.asker(ctx, req)}
		contents, err := call.run(ctx)
		if contents.Result == nil {
			return nil, madeError{err}
		}
		r, err := outwardResult(kept, req, contents)
		if err != nil {
			return nil, madeError{err}
		}
		r.fresh = true
		return r, nil
	})
	if _, made := err.(madeError); err != nil && !made {
		g.o.Watch.Refused(req.Params.Name, err)
	}
	return result, err
}

// A madeError is the error of a call that was made. Others are refusals.
type madeError struct{ error }

func (e madeError) Unwrap() error { return e.error }

// disabled names the servers that an operator has disabled; "": there are none.
func (g *Gateway) disabled(ctx context.Context) string {
	names := g.o.Upstream.Disabled(ctx)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; disabled by an operator: %q", shownUpTo(strings.Join(names, ", "), mostKept))
}

// findExposed returns the tool of a server that has a name for clients. A client may know a name from an earlier process, whose
// list was not kept: then the lists that are not known yet are read first.
func (g *Gateway) findExposed(ctx context.Context, name string) (upstream.ExposedTool, error) {
	v := upstream.ViewOf(ctx)
	t, ok := g.exposed.find(v, name)
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, listWait)
		defer cancel()
		g.o.Upstream.AwaitExposed(ctx, true)
		t, ok = g.exposed.find(v, name)
	}
	if !ok {
		return t, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", shownUpTo(name, mostKept)) + g.disabled(ctx)}
	}
	if flaw := t.Flaw(ctx); flaw != "" {
		return t, stages.Errorf(stages.Denied, "call it in a pipeline: "+exampleOf(t), "clients cannot have this tool by a name of its own: %s", flaw)
	}
	return t, nil
}

// exampleOf names a tool as a stage of a pipeline does.
func exampleOf(t upstream.ExposedTool) string {
	return fmt.Sprintf("server %.100q, name %.100q", t.Server, t.Name)
}

// An exposedCall is one call of a tool of a server by its name for clients.
type exposedCall struct {
	g       *Gateway
	req     *mcp.CallToolRequest
	tool    upstream.ExposedTool
	request string // its name in logs
	begun   time.Time
	asker   *stages.Asker // of the client; nil: it takes no questions
	sent    bool          // the call was sent
	reading bool
}

// run makes the call within the time of a run, and observes it. The result of a tool that failed comes with its error.
func (c *exposedCall) run(ctx context.Context) (contents upstream.Contents, err error) {
	g := c.g
	row := control.Run{Request: c.request, Started: c.begun, Stages: 1}
	ctx, known, drop := g.beginRun(ctx, g.beginOf(ctx, c.req, row, c.plan(), ""))
	defer drop()
	defer func() { known.End(c.report(len(contents.Result)), int64(len(contents.Result)), err) }()
	err = errPanic
	clock := CallTime{Timeout: g.longest(), Begun: c.begun, Limits: g.o.Limits, Clock: c.asker.Clock()}
	bound, stop := clock.Bound(ctx)
	defer stop()
	bound, trace, ended := g.o.Watch.Call(bound, c.request, sessionOf(c.req), c.req.Params.Name, traceOf(c.req.Params.Meta, c.req.Extra))
	asker, over := known.Asking(c.asker).InCall(clock.Clock)
	defer over()
	c.asker = asker
	result, err := c.call(bound, trace)
	err = explained(bound, c.explain(bound, clock, err))
	ended(err)
	c.log(trace, len(result.Data), err)
	verbatim := upstream.ViewOf(ctx).Only() != ""
	return upstream.Contents{Server: c.tool.Server, Result: result.Data, Memory: result.Memory, Verbatim: verbatim}, err
}

// call checks the arguments and calls the tool. A call with effects that was sent goes on for the grace after its client has
// gone.
func (c *exposedCall) call(ctx context.Context, trace stages.Trace) (stages.Result, error) {
	tools := c.g.deps.Tools
	info, err := tools.Tool(ctx, c.tool.Server, c.tool.Name)
	if err != nil && c.g.o.Upstream.SignIn(ctx, c.asker, err) {
		info, err = tools.Tool(ctx, c.tool.Server, c.tool.Name)
	}
	if err != nil {
		return stages.Result{}, err
	}
	c.reading = info.ReadOnly
	args := c.req.Params.Arguments
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if wrong, _ := info.Refuse(ctx, args); wrong != nil {
		return stages.Result{}, wrong
	}
	notify := newNotifier(ctx, c.req, true)
	defer notify.stop(ctx)
	call := stages.Call{
		Server: info.Server, Name: info.Name, Args: args, Reading: c.reading, Trace: trace, Whole: true, Asker: c.asker,
		MaySend: func() bool { return ctx.Err() == nil }, Unsent: func() { c.sent = false },
	}
	if follow := notify.follow(); follow != nil {
		call.Progress = func(p stages.ToolProgress) { follow(stages.Progress{Place: "1", Tool: p}) }
	}
	if !c.reading {
		outlast, end := c.g.outlasting(ctx)
		defer end()
		hold, release := stages.HoldEffect(ctx, outlast, &call)
		defer release()
		unsend := call.Unsent
		ctx, call.Unsent = hold, func() { c.sent = false; unsend() }
	}
	may := call.MaySend
	call.MaySend = func() bool {
		c.sent = may()
		return c.sent
	}
	return tools.CallTool(ctx, call)
}

// explain gives the failure of a call a code. Of an effect that took too long it says what became of it.
func (c *exposedCall) explain(bound context.Context, clock CallTime, err error) error {
	const sent, find = "it was sent and may have taken effect", "find out what was changed (with a tool that reads) before another call"
	e, ok := errors.AsType[*stages.Error](err)
	changes := c.sent && !c.reading
	switch {
	case err == nil:
		return nil
	case ok && e.Code == stages.Timeout && !e.Answered && changes:
		own := *e
		own.Msg += "; " + sent
		own.Hint = find
		return &own
	case ok:
		return err
	case context.Cause(bound) == errSpent:
		late := stages.Errorf(stages.Timeout, "check which server or stage is slow", "the call took longer than a run may: %s (limit run); %s", clock.Timeout, waitOf(err.Error()))
		late.Limit = "run"
		if changes {
			late.Msg, late.Hint = late.Msg+"; "+sent, find
		}
		return late
	case errors.Is(err, context.Canceled):
		return stages.Errorf(stages.Cancelled, "", "%w", err)
	}
	return err
}

// log logs one line for the call, without arguments and data: they may be secret.
func (c *exposedCall) log(trace stages.Trace, bytes int, err error) {
	code := "OK"
	if err != nil {
		code = string(stages.AsError(err).Code)
	}
	fields := []zap.Field{
		zap.String("request", c.request),
		c.g.logCaller(c.req.Extra),
		zap.String("tool", shownUpTo(c.tool.Server+"/"+c.tool.Name, mostKept)),
		zap.Duration("elapsed", time.Since(c.begun)),
		zap.Int("bytes", bytes),
		zap.String("code", code),
	}
	if id := trace.ID(); id != "" {
		fields = append(fields, zap.String("trace", id))
	}
	c.g.o.Log.Info("call", fields...)
}
