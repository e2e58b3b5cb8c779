package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// An Engine has jobs done by workers: a job by one of them at a time, and by another one when that dies. A job is only a name; its
// workers find the rest in the store that they share. Its methods may be called concurrently.
type Engine interface {
	// Start begins a job, which may take limit with all its attempts. A job that has begun goes on, and one that has ended stays so.
	Start(ctx context.Context, job string, limit time.Duration) error

	// Wait returns nil when the job is done. Other errors than that of ctx say why it will not be, or that the engine cannot be asked.
	Wait(ctx context.Context, job string) error

	// Progress returns what a worker has said last about a job under way, nil before that, and how many times the job was begun, which
	// is 0 also for a job that has ended.
	Progress(ctx context.Context, job string) (details []byte, attempts int, err error)

	// Cancel ends the context of a job that is being done.
	Cancel(ctx context.Context, job string) error

	// Work calls do for each job, at most slots at the same time, until ctx ends. Then it ends the contexts of those that are not
	// done, and waits for do. The context of a job that is cancelled ends with the cause context.Canceled; with any other cause another attempt
	// may have begun. A job whose do returns an error, or whose process dies, is tried again until its limit. Nothing of the error leaves
	// this process. beat takes what Progress returns, also in later attempts, and may be called at any time; the first call returns when
	// that is noted.
	Work(ctx context.Context, slots int, do func(ctx context.Context, job string, beat func(details []byte)) error) error
}

// Durable are the options of runs that go on when their gateway dies.
type Durable struct {
	Engine Engine // nil: there are no such runs
	Slots  int    // jobs of each engine that this gateway does at once; 0: others do them

	// Shards is an engine of its own for parts of a for_each, so that runs that wait for them do not take their slots; nil: there are
	// none. A for_each runs its items here for a second, at least 100 and at most SpreadFrom; shards run the others. Where it only reads
	// and names no concurrency, SpreadConcurrency of them run at once.
	Shards            Engine
	SpreadFrom        int // DefaultSpreadFrom if 0
	SpreadConcurrency int // DefaultSpreadConcurrency if 0

	Always bool // a call without durable asks for it

	// Limits of durable runs, where they are not those of all runs.
	Run          time.Duration // DefaultDurableRun if 0
	Items, Calls int           // DefaultDurableItems if 0
}

// Defaults of the limits of durable runs.
const (
	DefaultDurableRun   = 24 * time.Hour
	DefaultDurableItems = 10_000_000

	DefaultSpreadFrom        = 2000
	DefaultSpreadConcurrency = 64
)

// within returns the limits of a durable run.
func (d Durable) within(l stages.Limits) stages.Limits {
	l.Durable, l.Run = true, d.Longest()
	l.Items, l.Calls = cmp.Or(d.Items, DefaultDurableItems), cmp.Or(d.Calls, DefaultDurableItems)
	return l
}

// DurablePrefix begins the names of objects of durable runs.
const DurablePrefix = "durable/"

// Longest returns how long a durable run may take.
func (d Durable) Longest() time.Duration { return cmp.Or(d.Run, DefaultDurableRun) }

// submit has workers run a pipeline, and waits for its reply for some time.
func (g *Gateway) submit(ctx context.Context, req *mcp.CallToolRequest, p *stages.Pipeline, call schemas.Call, begin history.Begin, notify *notifier) (*mcp.CallToolResult, error) {
	run, err := p.Submit(ctx)
	if err != nil {
		return nil, err
	}
	j := job{
		Run: run, Pipeline: json.RawMessage(call.Pipeline), Marks: p.Marks(), Begin: begin, Begun: begin.Row.Started, Timeout: seconds(call.Timeout), MaxOutput: call.MaxOutput,
		Caller: g.callerOfJob(req), Trace: traceOf(req.Params.Meta, req.Extra),
	}
	if p.From() != run { // it was stored just now
		j.Pipeline = resuming(run, stages.Overrides{})
	}
	name, err := g.putJob(ctx, &j)
	if err == nil {
		err = g.showJob(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if err := g.o.Durable.Engine.Start(ctx, name, j.Timeout+replyWait); err != nil {
		g.o.Log.Warn("a durable run could not be begun", zap.Error(err))
		g.hideJob(ctx, name)
		return nil, stages.Errorf(stages.ServerUnavailable, "try again later, or run the pipeline without durable",
			"the run could not be begun: the engine of durable runs cannot be used now")
	}
	observerOf(ctx).begun(begin.Row.Request)
	notify.kept(run)
	reply, over, err := g.await(ctx, name, j, seconds(call.Wait), notify)
	switch {
	case err != nil:
		return nil, err
	case over:
		return reply.Result, nil
	}
	return g.underWay(ctx, name, j)
}

// resuming is the pipeline that continues a run with choices.
func resuming(run string, choices stages.Overrides) json.RawMessage {
	return json.RawMessage("[" + choices.ResumeStage(run) + "]")
}

// awaitFirst waits for the durable run that a pipeline begins with, if there is one of the caller, and returns its reply, or how far it
// is, where that is the reply to the call.
func (g *Gateway) awaitFirst(ctx context.Context, req *mcp.CallToolRequest, call schemas.Call, notify *notifier) (*mcp.CallToolResult, error) {
	if g.o.Durable.Engine == nil {
		return nil, nil
	}
	first := stages.BeginsWith(call.Pipeline)
	if first.Run == "" {
		return nil, nil
	}
	name, j, err := g.lastJob(ctx, first.Run)
	if name == "" || err != nil || j.Shard || j.Caller.Owner != g.runsName(req.Extra) {
		return nil, err
	}
	if first.Resume {
		call.Wait = 1 // a job without a reply may be over
	}
	reply, over, err := g.await(ctx, name, j, seconds(call.Wait), notify)
	switch {
	case err != nil:
		return nil, err
	case over && first.Alone:
		return reply.Result, nil
	case over:
		return nil, nil
	case first.Resume:
		return nil, stages.Errorf(stages.InvalidPipeline, waits(j.Run), "run %s is still running", j.Run)
	case first.Alone:
		return g.underWay(ctx, name, j)
	}
	return g.jobStatus(ctx, name, j), nil // its reply is not that to this call
}

// await waits for the reply to a durable run for some time, and reports whether the run is over.
func (g *Gateway) await(ctx context.Context, name string, j job, most time.Duration, notify *notifier) (reply *jobReply, over bool, err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = stages.Errorf(stages.Cancelled, waits(j.Run), "the call was cancelled; run %s goes on", j.Run)
		}
	}()
	if reply, err := g.replyOf(ctx, name); reply != nil || err != nil {
		return reply, true, err
	}
	waiting, end := context.WithTimeout(ctx, most)
	defer end()
	if notify != nil {
		go g.followJob(waiting, name, notify)
	}
	ended := g.o.Durable.Engine.Wait(waiting, name)
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case waiting.Err() != nil:
		return nil, false, nil
	}
	reply, err = g.replyOf(ctx, name)
	switch {
	case err != nil:
		return nil, false, err
	case reply != nil:
		return reply, true, nil
	}
	gone := stages.Errorf(stages.Cancelled, "continue it: "+stages.ResumeStage(j.Run), "run %s has ended without a reply: %w",
		j.Run, cmp.Or(ended, errors.New("its reply is no longer kept")))
	if far := g.howFar(ctx, name); ended == nil || far.err != nil || far.attempts > 0 {
		return nil, true, gone
	}
	g.endJob(j, gone)
	reply = &jobReply{Cancelled: true, Result: failure(failureText(pipelineSubject, gone, j.MaxOutput))}
	return reply, true, g.putResult(ctx, engineWait, name, reply) // another job can continue the run
}

// waits says how an agent gets the reply to a durable run.
func waits(run string) string {
	return fmt.Sprintf(`[{"type":"from","run":%q}] waits for its reply`, run)
}

// followJob passes the progress of a durable run on until ctx ends.
func (g *Gateway) followJob(ctx context.Context, name string, notify *notifier) {
	follow := notify.follow()
	if follow == nil {
		return
	}
	for tick := time.NewTicker(progressEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		if p, _, err := g.jobProgress(ctx, name); err == nil {
			follow(stages.Progress{Items: p.Items, Calls: p.Calls})
		}
	}
}

// progressEvery is the time between two reports of a worker on a run.
const progressEvery = 2 * time.Second

// jobStatus is the reply to a call whose run is still under way.
func (g *Gateway) jobStatus(ctx context.Context, name string, j job) *mcp.CallToolResult {
	far := g.howFar(ctx, name)
	status := struct {
		Run      string       `json:"run"`
		Status   string       `json:"status"`
		Elapsed  string       `json:"elapsed"`
		Progress *runProgress `json:"progress,omitempty"`
		Attempt  int          `json:"attempt,omitempty"`
		Next     string       `json:"next"`
	}{
		Run: j.Run, Status: far.status(), Elapsed: time.Since(j.Begun).Round(time.Second).String(),
		Next: "It goes on by itself. " + waits(j.Run) + ".",
	}
	if far.attempts > 0 {
		status.Progress = &far.progress
	}
	if far.attempts > 1 {
		status.Attempt = far.attempts
	}
	result := textResult(texts.JSON(status))
	result.Meta = mcp.Meta{"mcsh/report": map[string]any{"run": j.Run, "status": status.Status}}
	return result
}

// A howFar is what the engine says of a job under way.
type howFar struct {
	progress runProgress
	attempts int // 0: no worker has it
	err      error
}

func (g *Gateway) howFar(ctx context.Context, name string) (h howFar) {
	ctx, cancel := context.WithTimeout(ctx, progressEvery)
	defer cancel()
	h.progress, h.attempts, h.err = g.jobProgress(ctx, name)
	if h.err != nil {
		h.attempts = 0
	}
	return h
}

func (h howFar) status() string {
	switch {
	case h.err != nil:
		return "working, as far as is known: the engine of durable runs cannot be asked now"
	case h.attempts == 0:
		return "waiting for a worker"
	}
	return "working"
}

// message says in a line how far the run is.
func (h howFar) message() string {
	p := h.progress
	switch {
	case h.attempts == 0:
		return h.status()
	case p.Items == 0:
		return texts.Count(p.Calls, "tool call")
	}
	text := texts.Count(p.Items, "item")
	if p.Of > 0 {
		text = fmt.Sprintf("%d of %s", p.Items, texts.Count(p.Of, "item"))
	}
	if p.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Left != "" {
		text += ", " + p.Left + " left"
	}
	return text
}

// runProgress says how far a durable run is, for the caller.
type runProgress struct {
	Stage  stages.Place `json:"stage,omitempty"` // the for_each that runs
	Items  int64        `json:"items"`           // of it that have ended
	Of     int64        `json:"of,omitempty"`    // as far as that is known
	Failed int64        `json:"failed,omitempty"`
	Calls  int64        `json:"calls"` // of tools, in all stages

	Rate float64 `json:"items_per_second,omitempty"`
	Left string  `json:"time_left,omitempty"`
}

// progressOf sums up reports on stages of a run that began some time ago.
func progressOf(list []stages.StageReport, elapsed time.Duration) (p runProgress) {
	p.Calls = stages.Report{Stages: list}.AllCalls()
	var own int64 // items that have ended since
	for _, s := range list {
		if s.Items > 0 && (s.Millis == 0 || p.Items == 0) {
			p.Stage, p.Items, p.Failed, p.Of = s.Place, ended(s), s.Failed, s.Total
			own = p.Items - s.Resumed
		}
	}
	if own > 0 && elapsed > 0 {
		rate := float64(own) / elapsed.Seconds()
		p.Rate = float64(int64(rate*10)) / 10
		if p.Of > p.Items {
			p.Left = time.Duration(float64(p.Of-p.Items) / rate * float64(time.Second)).Round(time.Second).String()
		}
	}
	return p
}

func (g *Gateway) jobProgress(ctx context.Context, name string) (p runProgress, attempts int, err error) {
	details, attempts, err := g.o.Durable.Engine.Progress(ctx, name)
	if err == nil && details != nil {
		err = json.Unmarshal(details, &p)
	}
	return p, attempts, err
}
