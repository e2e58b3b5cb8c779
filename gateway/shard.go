package gateway

import (
	"bytes"
	"context"
	"encoding/gob"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// shards has workers run the shards of a run.
type shards struct {
	g      *Gateway
	caller jobCaller
	trace  stages.Trace
}

// Continue implements [stages.Workers].
func (s shards) Continue(ctx context.Context, run string) (ended stages.Ended, err error) {
	g, limit := s.g, s.g.o.Durable.Longest()
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	if ended, known, err := g.endedShard(ctx, run); known || err != nil {
		return ended, err
	}
	engine := g.o.Durable.Shards
	name, err := g.putJob(ctx, &job{Run: run, Pipeline: resuming(run), Begun: time.Now(), Timeout: limit, Caller: s.caller, Trace: s.trace, Shard: true})
	if err != nil {
		return ended, err
	}
	if err := engine.Start(ctx, name, limit); err != nil && ctx.Err() == nil {
		return ended, stages.StoreFailure(err) // it passes
	}
	err = engine.Wait(ctx, name)
	if ctx.Err() != nil {
		giveUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer cancel()
		_ = engine.Cancel(giveUp, name) // it ends by its limit
		return stages.Ended{}, context.Cause(ctx)
	}
	if err != nil {
		g.o.Log.Warn("a shard has failed", zap.Error(err))
		return stages.Ended{}, stages.Errorf(stages.ServerUnavailable, "try again later", "a part of the items could not be run by workers")
	}
	data, err := g.o.Kept.Shared().Get(ctx, replyObject(name))
	if err != nil {
		return stages.Ended{}, g.unstored(err)
	}
	return ended, gob.NewDecoder(bytes.NewReader(data)).Decode(&ended)
}

// endedShard returns how a shard has ended that has succeeded already, for an earlier attempt at the run that it is a part of.
func (g *Gateway) endedShard(ctx context.Context, run string) (ended stages.Ended, known bool, err error) {
	name, _, err := g.lastJob(ctx, run)
	if name == "" || err != nil {
		return ended, false, err
	}
	data, err := g.replyData(ctx, name)
	if data == nil || err != nil {
		return ended, false, err
	}
	err = gob.NewDecoder(bytes.NewReader(data)).Decode(&ended)
	return ended, err == nil && ended.Err == nil, err
}

// cancelWait is how long a run that ends waits to cancel a shard.
const cancelWait = 5 * time.Second

// workOnShard runs the pipeline of a shard, and returns its run, if there is one, and how it ended.
func (g *Gateway) workOnShard(ctx context.Context, req *mcp.CallToolRequest, j job, pipeline []byte, a *attempt) (run string, reply []byte, err error) {
	deps := g.callDeps(ctx, req, schemas.Call{Mode: schemas.ModeRun, Durable: true})
	deps.Spread = stages.Spread{}
	ended, err := g.runShard(ctx, deps, j, pipeline, a)
	switch {
	case err != nil && (context.Cause(ctx) == ErrGone || g.calls.closing()):
		return "", nil, errLeft
	case stages.Unkept(err):
		return "", nil, err
	case err != nil:
		ended.Err = asError(err).Bare()
	}
	reply, err = encodeEnded(ended)
	return ended.Run, reply, err
}

// encodeEnded writes the reply to a shard.
func encodeEnded(ended stages.Ended) ([]byte, error) {
	var data bytes.Buffer
	err := gob.NewEncoder(&data).Encode(ended)
	return data.Bytes(), err
}

func (g *Gateway) runShard(ctx context.Context, deps stages.Deps, j job, pipeline []byte, a *attempt) (ended stages.Ended, err error) {
	limit := j.Timeout - time.Since(j.Begun)
	p, errs, late := CallTime{Timeout: limit, Begun: time.Now(), Limits: deps.Limits}.Check(ctx, func(ctx context.Context) (*stages.Pipeline, []*stages.Error) {
		return stages.Compile(ctx, pipeline, deps)
	})
	switch {
	case late != nil:
		return ended, late
	case errs != nil:
		return ended, stages.Join(errs)
	}
	outlast, end := g.outlasting(ctx)
	defer end()
	options := stages.RunOptions{Outlast: outlast, Timeout: limit, Trace: j.Trace, KeepClaim: true}
	defer a.following(&options.Begun)()
	ctx, options, observed := g.o.Watch.Run(ctx, newRequest(), "", options)
	report, err := p.Run(ctx, nil, io.Discard, options)
	observed(report, 0, false, err)
	return stages.Ended{Run: report.Run, Stages: report.Stages}, err
}
