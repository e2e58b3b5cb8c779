package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// History returns what is known of the runs, live and finished.
func (g *Gateway) History() *history.History { return g.history }

// beginOf describes the begin of a run.
func (g *Gateway) beginOf(ctx context.Context, req *mcp.CallToolRequest, row control.Run, plan json.RawMessage, from string) history.Begin {
	row.Caller, row.Client = shownUpTo(g.callerName(req.Extra), mostKept), clientOf(req)
	row.Tool, row.Started = shownUpTo(req.Params.Name, mostKept), row.Started.UTC().Truncate(time.Microsecond)
	if row.Transport = "http"; req.Extra == nil || req.Extra.Header == nil {
		row.Transport = "stdio"
	}
	row.Client = observerOf(ctx).client(row.Client)
	b := history.Begin{Row: row, User: extraUser(req.Extra), Owner: g.runsName(req.Extra), Plan: plan, From: from}
	b.Groups, b.Within = g.groupsOf(req.Extra)
	return b
}

// beginRun notes the begin of a run, whose end the caller notes. The context ends when somebody cancels the run.
func (g *Gateway) beginRun(ctx context.Context, b history.Begin) (context.Context, *history.Run, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b.Cancel = func(cause error) error {
		cancel(cause)
		return nil
	}
	run := g.history.Begin(b)
	observerOf(ctx).begun(b.Row.Request)
	return ctx, run, func() { cancel(nil) }
}

// errPanic is the error of a run that ended by a panic.
var errPanic error = stages.Errorf(stages.Internal, "", "internal error")

// explained says in the error of a run that its operator has ended it.
func explained(ctx context.Context, err error) error {
	e, ok := errors.AsType[*stages.Error](err)
	if !ok || e.Code != stages.Cancelled || context.Cause(ctx) != history.ErrCancelled {
		return err
	}
	own := *e
	own.Msg, own.Hint = "the operator of the gateway has cancelled it; "+e.Msg, "ask before you run it again"
	return &own
}

// plan writes the call as a pipeline.
func (c *exposedCall) plan() json.RawMessage {
	return json.RawMessage("[" + stageText(c.tool.Server, c.tool.Name, c.req.Params.Arguments) + "]")
}

// report describes the call, which has returned so many bytes, as a run of one stage.
func (c *exposedCall) report(bytes int) stages.Report {
	elapsed := time.Since(c.begun)
	s := stages.StageReport{
		Place: "1", Label: stages.Label{Kind: "tool", Server: c.tool.Server, Name: c.tool.Name}, Changes: c.sent && !c.reading,
		Returned: int64(bytes), BytesOut: int64(bytes), Millis: float64(elapsed.Microseconds()) / 1000,
	}
	if c.sent {
		s.Calls = 1
	}
	return stages.Report{Elapsed: elapsed, Stages: []stages.StageReport{s}}
}

// clientOf names the program of a client, as it says.
func clientOf(req *mcp.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil {
		return ""
	}
	name := cmp.Or(info.Title, info.Name)
	return shownUpTo(texts.Plain(strings.TrimSpace(name+" "+info.Version), false), mostKept)
}

// readBytes counts the bytes of a reply that a model reads.
func readBytes(result *mcp.CallToolResult) (n int64) {
	if result == nil {
		return 0
	}
	for _, block := range result.Content {
		switch block := block.(type) {
		case *mcp.ImageContent:
			n += int64(len(block.Data))
		case *mcp.AudioContent:
			n += int64(len(block.Data))
		}
		if text := textOf(block); text != nil {
			n += int64(len(*text))
		}
	}
	return n
}

// A RunObserver observes a pipeline that no client of the gateway runs itself, before its call has a reply.
type RunObserver struct {
	Client  string                                        // the name of the program that calls; empty: the console
	Checked func(plan stages.Plan, wrong []*stages.Error) // the plan is checked; nil: not reported
	Begun   func(request string)                          // a run has begun; nil: not reported
}

type observerKey struct{}

// Observed returns a context whose calls of execute_pipeline o follows.
func Observed(ctx context.Context, o RunObserver) context.Context {
	return context.WithValue(ctx, observerKey{}, &o)
}

func observerOf(ctx context.Context) *RunObserver {
	o, _ := ctx.Value(observerKey{}).(*RunObserver)
	return o
}

// checked reports the check of a plan.
func (o *RunObserver) checked(pipeline *stages.Pipeline, wrong []*stages.Error, late *stages.Error) {
	switch {
	case o == nil || o.Checked == nil:
	case late != nil:
		o.Checked(stages.Plan{}, []*stages.Error{late})
	case wrong != nil:
		o.Checked(stages.Plan{}, wrong)
	default:
		o.Checked(pipeline.Plan(), nil)
	}
}

// client returns the name of the program that calls: a page is none.
func (o *RunObserver) client(name string) string {
	if o == nil {
		return name
	}
	return cmp.Or(o.Client, "console")
}

// begun reports that a run has begun.
func (o *RunObserver) begun(request string) {
	if o != nil && o.Begun != nil {
		o.Begun(request)
	}
}
