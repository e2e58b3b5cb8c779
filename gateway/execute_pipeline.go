package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

const executeName = "execute_pipeline"

func (g *Gateway) executePipeline(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	unset := math.Inf(-1) // which JSON cannot say
	call := schemas.Call{Mode: schemas.ModeRun, Timeout: unset, MaxOutput: g.defaultOutput(), Wait: schemas.DefaultWait, Durable: g.o.Durable.Always}
	if hasTasks(ctx) {
		call.Wait = taskWait
	}
	var hidden []string
	if g.o.Durable.Engine == nil {
		hidden = schemas.DurableArguments
	}
	wrong := decode(req, &call, hidden...)
	if g.o.Durable.Always && call.Mode == schemas.ModeDryRun {
		call.Durable = false
	}
	if call.Timeout == unset {
		call.Timeout = g.longestOf(call).Seconds()
		if !call.Durable {
			call.Timeout = min(schemas.DefaultTimeout, call.Timeout)
		}
	}
	if wrong = append(wrong, g.checkCall(call)...); len(wrong) > 0 {
		return nil, wrong
	}
	return g.execute(ctx, req, call)
}

// execute checks and runs the pipeline of a call.
func (g *Gateway) execute(ctx context.Context, req *mcp.CallToolRequest, call schemas.Call) (*mcp.CallToolResult, error) {
	asker := g.asker(ctx, req)
	notify := newNotifier(ctx, req, false)
	defer notify.stop(ctx)
	if call.Mode == schemas.ModeRun {
		if reply, err := g.awaitFirst(ctx, req, call, notify); reply != nil || err != nil {
			return reply, err
		}
	}
	begun := time.Now() // the wait for another run does not count
	deps := g.callDeps(ctx, req, call)
	compile := func(ctx context.Context) (*stages.Pipeline, []*stages.Error) {
		return stages.Compile(ctx, json.RawMessage(call.Pipeline), deps)
	}
	pipeline, errs, late := CallTime{Timeout: seconds(call.Timeout), Begun: begun, Limits: deps.Limits}.Check(ctx, compile)
	if call.Mode == schemas.ModeRun && g.signIn(ctx, asker, errs) {
		begun = time.Now() // the person's time does not count
		pipeline, errs, late = CallTime{Timeout: seconds(call.Timeout), Begun: begun, Limits: deps.Limits}.Check(ctx, compile)
	}
	observerOf(ctx).checked(pipeline, errs, late)
	switch {
	case late != nil:
		g.o.Watch.Refused(req.Params.Name, late)
		return failure(failureText(pipelineSubject, late, call.MaxOutput)), nil
	case errs != nil:
		g.o.Watch.Refused(req.Params.Name, errs[0])
		return failure(mistakesText(pipelineSubject, pipelineSubject, errs, call.MaxOutput)), nil
	case call.Mode == schemas.ModeCheck:
		return textResult(planText(pipeline.Plan(), call.MaxOutput)), nil
	}
	row := control.Run{Request: newRequest(), Started: begun, Stages: pipeline.Len(), DryRun: call.Mode == schemas.ModeDryRun}
	begin := g.beginOf(ctx, req, row, json.RawMessage(call.Pipeline), pipeline.From())
	if call.Durable {
		return g.submit(ctx, req, pipeline, call, begin, notify)
	}
	return g.run(ctx, &execution{
		req: req, pipeline: pipeline, call: call, begin: begin, begun: begun, asker: asker,
		trace: traceOf(req.Params.Meta, req.Extra), progress: notify.follow(), kept: notify.kept,
	})
}

// An execution is one run of a compiled pipeline.
type execution struct {
	req      *mcp.CallToolRequest
	pipeline *stages.Pipeline
	call     schemas.Call
	begin    history.Begin
	begun    time.Time // when its time began
	asker    *stages.Asker
	trace    stages.Trace
	progress func(stages.Progress)             // nil: nobody wants it
	kept     func(run string)                  // gets the id of the run; may be nil
	follow   func(func() []stages.StageReport) // gets what reports on the run; nil: nobody wants it
	cautious time.Duration                     // see [stages.RunOptions]

	ran string // the run, once it has ended, if it is kept
	err error  // its
}

// signIn asks the caller's person to sign in to the servers that a plan has failed for, and reports whether somebody has.
func (g *Gateway) signIn(ctx context.Context, asker *stages.Asker, errs []*stages.Error) bool {
	return len(errs) > 0 && g.o.Upstream != nil && g.o.Upstream.SignIn(ctx, asker, stages.Join(errs))
}

// callDeps returns what the pipeline of a call has.
func (g *Gateway) callDeps(ctx context.Context, req *mcp.CallToolRequest, call schemas.Call) stages.Deps {
	deps := g.depsOf(req.Extra)
	if d := g.o.Durable; d.Shards != nil {
		deps.Spread = stages.Spread{
			Workers: shards{g, g.callerOfJob(req), traceOf(req.Params.Meta, req.Extra)},
			From:    cmp.Or(d.SpreadFrom, DefaultSpreadFrom), Concurrency: cmp.Or(d.SpreadConcurrency, DefaultSpreadConcurrency),
		}
	}
	deps.CheckOnly = call.Mode == schemas.ModeCheck
	if call.Durable {
		deps.Limits = g.o.Durable.within(deps.Limits)
	}
	if g.o.Pipelines != nil {
		deps.Tools = g.o.Pipelines.Offer(deps, g.viewer(ctx, req.Extra))
	}
	return deps
}

// depsOf returns what a pipeline of a caller has, without the saved pipelines.
func (g *Gateway) depsOf(extra *mcp.RequestExtra) stages.Deps {
	deps := g.deps
	deps.Runs, deps.Caller = g.runsOf(extra), callerOf(extra)
	deps.Owner, deps.WorkersOf = originOfCall(extra).owner(), workersOf(extra)
	return deps
}

// longestOf returns the operator's limit for the time of a call.
func (g *Gateway) longestOf(call schemas.Call) time.Duration {
	if call.Durable {
		return g.o.Durable.Longest()
	}
	return g.longest()
}

// longest returns the operator's limit for the time of a run.
func (g *Gateway) longest() time.Duration {
	return cmp.Or(g.o.Limits.Run, schemas.DefaultTimeout*time.Second)
}

// checkCall returns the mistakes in the values of a call whose types are right.
func (g *Gateway) checkCall(call schemas.Call) wrongCall {
	var wrong wrongCall
	add := func(code stages.Code, hint, format string, args ...any) {
		wrong = append(wrong, stages.Errorf(code, hint, format, args...))
	}
	if !slices.Contains(schemas.Modes(), call.Mode) {
		add(stages.InvalidArguments, "the modes are "+strings.Join(schemas.Modes(), ", "), "unknown mode %q", shown(call.Mode))
	}
	switch {
	case call.Durable && call.Mode == schemas.ModeDryRun:
		add(stages.InvalidArguments, "leave durable out", "a dry run is not durable")
	case !(call.Wait >= 0 && call.Wait <= schemas.MaxWait): // also NaN
		add(stages.InvalidArguments, "leave it out for the default", "wait %g s is not between 0 and %d s", call.Wait, schemas.MaxWait)
	}
	longest, limit := g.longestOf(call).Seconds(), "run"
	if call.Durable {
		limit = "durable-run"
	}
	switch { // in seconds, since a time.Duration overflows
	case call.Timeout > longest:
		wrong = append(wrong, stages.OverLimit(limit, "leave timeout out, or ask for less",
			"timeout %g s is more than the operator allows: %g s", call.Timeout, longest))
	case !(call.Timeout >= schemas.MinTimeout): // also NaN
		add(stages.InvalidArguments, "leave it out for the default",
			"timeout %g s is not between %g and %g s (limit %s)", call.Timeout, schemas.MinTimeout, longest, limit)
	}
	return append(wrong, g.checkBudget(call.MaxOutput)...)
}

// checkBudget returns the mistakes in max_output.
func (g *Gateway) checkBudget(n int) wrongCall {
	if n >= 1 && n <= g.o.MaxOutput {
		return nil
	}
	return wrongCall{stages.Errorf(stages.InvalidArguments, fmt.Sprintf("leave it out for the default of %d", g.defaultOutput()),
		"max_output %d is not between 1 and %d characters", n, g.o.MaxOutput)}
}

// run runs a compiled pipeline and returns the reply.
func (g *Gateway) run(ctx context.Context, e *execution) (result *mcp.CallToolResult, _ error) {
	req, p, call := e.req, e.pipeline, e.call
	out := newReply(call.MaxOutput, func(r io.Reader, o preview.Options) (preview.Result, error) {
		o.Check = p.RunsJQ(ctx)
		return preview.Preview(ctx, r, o)
	})
	defer out.close()
	saved := savedIn(ctx)
	out.alone = saved != nil
	request := e.begin.Row.Request
	out.request = request
	ctx, known, drop := g.beginRun(ctx, e.begin)
	defer drop()
	report, err := stages.Report{}, errPanic // until the run ends
	defer func() {
		if e.ran, e.err = report.Run, err; call.Durable && g.leaves(ctx, err) {
			known.Leave()
			return
		}
		known.End(report, readBytes(result), err)
	}()
	outlast, end := g.outlasting(ctx)
	defer end()
	ctx, options, ended := g.o.Watch.Run(ctx, request, sessionOf(req), stages.RunOptions{
		Outlast:  outlast,
		Timeout:  seconds(call.Timeout),
		Spent:    time.Since(e.begun),
		Progress: e.progress,
		Kept:     e.kept,
		Begun: func(list func() []stages.StageReport) {
			known.Follow(list)
			if e.follow != nil {
				e.follow(list)
			}
		},
		Forgets: g.calls.closing,
		Trace:   e.trace,
		Asker:   known.Asking(e.asker),
		DryRun:  call.Mode == schemas.ModeDryRun,

		KeepClaim: call.Durable,
		Cautious:  e.cautious,
	})
	report, err = p.Run(ctx, nil, out, options)
	err = explained(ctx, err)
	defer func() { ended(report, out.bytes, out.shape != nil, err) }()
	g.logRun(req.Extra, request, options.Trace, report, out.characters, err)
	if err == nil {
		if result, err = out.result(report, func() fullOutput { return keptOutput(ctx, g.runsOf(req.Extra), report.Run) }); err != nil {
			g.logInternal(stages.AsError(err))
		} else {
			err = saved.structure(ctx, out, result)
		}
	}
	if err != nil {
		result = failure(errorText(pipelineSubject, err, call.MaxOutput))
	}
	result.Meta = mcp.Meta{"mcsh/report": replyReport{
		Millis:  float64(report.Elapsed.Microseconds()) / 1000,
		Request: request,
		Run:     report.Run, Stages: report.Stages, Characters: out.characters, Replaced: out.replaced,
	}}
	if out.notes != nil {
		result.Meta["mcsh/note"] = strings.Join(out.notes, "\n")
	}
	return result, nil
}

// replyReport is the mcsh/report in _meta, which clients do not show to the model.
type replyReport struct {
	Request    string               `json:"request"` // its name in logs and traces
	Run        string               `json:"run,omitempty"`
	Millis     float64              `json:"ms"`
	Stages     []stages.StageReport `json:"stages"`
	Characters int64                `json:"characters"`               // of the whole output
	Replaced   int64                `json:"replaced_bytes,omitempty"` // invalid UTF-8, in bytes
}

// logRun logs one line per run, without arguments and data: they may be secret.
func (g *Gateway) logRun(extra *mcp.RequestExtra, request string, trace stages.Trace, report stages.Report, characters int64, err error) {
	fields := []zap.Field{
		zap.String("request", request),
		g.logCaller(extra),
		zap.Int("stages", len(report.Stages)),
		zap.Int64("calls", report.AllCalls()),
		zap.Strings("tools", calledTools(report.Stages)),
		zap.Duration("elapsed", report.Elapsed),
		zap.Int64("characters", characters),
	}
	if id := trace.ID(); id != "" {
		fields = append(fields, zap.String("trace", id))
	}
	if err == nil {
		fields = append(fields, zap.String("code", "OK"))
	} else {
		e := stages.AsError(err)
		fields = append(fields, zap.String("code", string(e.Code)), zap.String("stage", string(e.Place)))
		g.logInternal(e)
	}
	g.o.Log.Info("pipeline", fields...)
}

// loggedTools bounds the tools that the line of a run names.
const loggedTools = 20

// calledTools returns the called tools as server/tool, each once.
func calledTools(list []stages.StageReport) []string {
	names := []string{}
	for _, s := range list {
		found := calledTools(s.Stages)
		if s.Label.Server != "" && s.Calls > 0 && len(s.Stages) == 0 {
			found = []string{s.Label.Called()}
		}
		for _, name := range found {
			if len(names) < loggedTools && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// logInternal logs the place, type and stack of an INTERNAL error, without its text, which can quote data.
func (g *Gateway) logInternal(e *stages.Error) {
	if e.Code != stages.Internal {
		return
	}
	fields := []zap.Field{zap.String("stage", string(e.Place)), zap.String("type", fmt.Sprintf("%T", e.Err))}
	if stack := stackOf(e.Err); stack != "" {
		fields = append(fields, zap.String("stack", stack))
	}
	g.o.Log.Error("internal error", fields...)
}

// stackOf returns the stack in the text of an error made from a panic: "panic: VALUE", then the stack. VALUE may have several
// lines; the stack begins at the last line that names a goroutine.
func stackOf(err error) string {
	if err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
		return ""
	}
	text := err.Error()
	at := strings.LastIndex(text, "\ngoroutine ")
	if at < 0 {
		return ""
	}
	return text[at+1:]
}

// traceOf returns the trace of a request, from its _meta or else from the headers.
func traceOf(meta map[string]any, extra *mcp.RequestExtra) stages.Trace {
	find := func(name string) string {
		text, _ := meta[name].(string)
		if text == "" && extra != nil {
			text = extra.Header.Get(name)
		}
		if len(text) > maxTrace {
			return ""
		}
		return text
	}
	hops, _ := upstream.Hops(meta) // the caller has refused bad ones
	return stages.Trace{Parent: find("traceparent"), State: find("tracestate"), Baggage: find("baggage"), Hops: hops}
}

// maxTrace bounds each member of a trace, in bytes: the limit of baggage, the longest.
const maxTrace = 8192
