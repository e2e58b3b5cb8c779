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
	"github.com/mcsh-dev/mcsh/store"
)

// shards has workers run the shards of a run.
type shards struct {
	g      *Gateway
	caller jobCaller
	trace  stages.Trace
}

// Continue implements [stages.Workers].
func (s shards) Continue(ctx context.Context, run string, choices stages.Overrides) (ended stages.Ended, err error) {
	g := s.g
	for {
		last, ended, err := g.lastShard(ctx, run)
		switch {
		case err != nil:
			return stages.Ended{}, err
		case ended != nil && ended.Err == nil:
			ended.Before = true
			return *ended, nil
		}
		j := job{Run: run, Choices: choices, Begun: time.Now(), Timeout: g.o.Durable.Longest(), Caller: s.caller, Trace: s.trace, Shard: true}
		j.Pipeline = resuming(run, choices)
		if end, ok := ctx.Deadline(); ok {
			j.Timeout = time.Until(end)
		}
		if j.Timeout < shortest {
			<-ctx.Done()
			return stages.Ended{}, context.Cause(ctx)
		}
		name, err := g.putJob(ctx, &j)
		if err != nil {
			return stages.Ended{}, err
		}
		now, err := s.await(ctx, name, j.Timeout)
		if name == last && ctx.Err() == nil && err == nil && now.Err != nil && ofJob[now.Err.Code] {
			continue // it was the job of an earlier attempt, whose end has ended it
		}
		return now, err
	}
}

// shortest is the time that an engine needs for a job.
const shortest = time.Second

// ofJob are the codes of shards that have failed because their job has ended, not because of their items.
var ofJob = map[stages.Code]bool{stages.Cancelled: true, stages.Timeout: true}

// await has the job of a shard done, and waits for its reply. A job that has ended without one gets one, so that another job can
// continue the shard.
func (s shards) await(ctx context.Context, name string, limit time.Duration) (ended stages.Ended, err error) {
	g, engine := s.g, s.g.o.Durable.Shards
	if err := engine.Start(ctx, name, limit); err != nil && ctx.Err() == nil {
		g.o.Log.Warn("a shard could not be begun", zap.Error(err))
		e := stages.Errorf(stages.ServerUnavailable, "try again later", "a part of the items could not be given to workers: their engine cannot be used now")
		e.Err = stages.StoreFailure(err) // it passes
		return ended, e
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
		if _, attempts, perr := engine.Progress(ctx, name); perr != nil || attempts > 0 {
			return ended, stages.Errorf(stages.ServerUnavailable, "try again later", "a part of the items could not be run by workers")
		}
		if err := g.putFailure(ctx, name, job{Shard: true}, stages.Errorf(stages.Cancelled, "", "the job of some items ended before a worker ran them")); err != nil {
			return ended, err
		}
	}
	reply, err := g.shardReply(ctx, name)
	switch {
	case err != nil:
		return ended, err
	case reply == nil:
		return ended, g.unstored(store.ErrNotFound)
	}
	return *reply, nil
}

// lastShard returns the last job of a shard, and how that has ended; nil: it has no reply.
func (g *Gateway) lastShard(ctx context.Context, run string) (name string, ended *stages.Ended, err error) {
	name, _, err = g.lastJob(ctx, run)
	if name == "" || err != nil {
		return "", nil, err
	}
	ended, err = g.shardReply(ctx, name)
	return name, ended, err
}

// shardReply returns how a shard ended; nil: its job has no reply.
func (g *Gateway) shardReply(ctx context.Context, name string) (*stages.Ended, error) {
	data, err := g.stored(ctx, replyObject(name))
	if data == nil || err != nil {
		return nil, err
	}
	ended := new(stages.Ended)
	return ended, gob.NewDecoder(bytes.NewReader(data)).Decode(ended)
}

// cancelWait is how long a run that ends waits to cancel a shard.
const cancelWait = 5 * time.Second

// workOnShard runs the pipeline of a shard, and returns its run, if there is one, and how it ended.
func (g *Gateway) workOnShard(ctx context.Context, req *mcp.CallToolRequest, j job, pipeline []byte, a *attempt) (run string, reply []byte, err error) {
	deps := g.callDeps(ctx, req, schemas.Call{Mode: schemas.ModeRun, Durable: true})
	deps.Spread = stages.Spread{}
	ended, err := g.runShard(ctx, deps, j, pipeline, a)
	switch {
	case stages.Unkept(err):
		return "", nil, err
	case g.leaves(ctx, err):
		return "", nil, errLeft
	case err != nil:
		ended.Err = stages.AsError(err).Bare()
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
	p, errs, late := g.compileJob(ctx, deps, limit, pipeline)
	switch {
	case late != nil:
		return ended, late
	case errs != nil:
		return ended, stages.Join(errs)
	}
	outlast, end := g.outlasting(ctx)
	defer end()
	options := stages.RunOptions{Outlast: outlast, Timeout: limit, Trace: j.Trace, KeepClaim: true, Cautious: a.cautious()}
	defer a.following(&options.Begun)()
	ctx, options, observed := g.o.Watch.Run(ctx, newRequest(), "", options)
	report, err := p.Run(ctx, nil, io.Discard, options)
	observed(report, 0, false, err)
	return stages.Ended{Run: report.Run, Stages: report.Stages}, err
}
