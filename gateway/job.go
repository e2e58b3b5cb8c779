package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
)

// A job is a run that workers continue, as they find it in the shared store.
type job struct {
	Run       string // or the last of those that continue it
	Number    int    // among the jobs of the run, from 1
	Pipeline  []byte // that continues it for the first time
	Marks     stages.Marks
	Begin     history.Begin // of a whole run
	Begun     time.Time
	Timeout   time.Duration
	MaxOutput int
	Caller    jobCaller
	Trace     stages.Trace
	Shard     bool             // it is a part of a for_each of another run
	Choices   stages.Overrides // of a shard
}

// A jobCaller is the caller of a durable run. A worker acts in its place: with its groups, policies and limits.
type jobCaller struct {
	Owner  string // of the runs
	Stdio  bool
	Token  *auth.TokenInfo // nil: without authentication
	Header http.Header
}

// registerGroups lets gob write the groups of an identity.
var registerGroups = sync.OnceFunc(func() { gob.Register([]string{}) })

// jobHeaders are the headers of a request that say who its caller is.
var jobHeaders = []string{addressHeader, groupHeader, "X-Forwarded-For", "Forwarded"}

func (g *Gateway) callerOfJob(req *mcp.CallToolRequest) jobCaller {
	c := jobCaller{Owner: g.runsName(req.Extra)}
	if req.Extra == nil || req.Extra.Header == nil {
		c.Stdio = true
		return c
	}
	c.Token, c.Header = req.Extra.TokenInfo, http.Header{}
	for _, name := range jobHeaders {
		if values := req.Extra.Header.Values(name); len(values) > 0 {
			c.Header[name] = values
		}
	}
	return c
}

// request returns a call in the place of the caller.
func (c jobCaller) request(meta mcp.Meta) *mcp.CallToolRequest {
	extra := &mcp.RequestExtra{TokenInfo: c.Token, Header: c.Header}
	if c.Stdio {
		extra = nil
	}
	return &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: meta, Name: executeName}, Extra: extra}
}

// jobName is the name of a job of a run: a run that has failed can be submitted again. With the id of a run its outputs can be read, so
// the name does not show it.
func jobName(run string, number int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "durable %s %d", run, number))
	return hex.EncodeToString(sum[:16])
}

// Names of the objects of a job.
func jobObject(name string) string   { return DurablePrefix + name + "/job" }
func replyObject(name string) string { return DurablePrefix + name + "/reply" }

// maxJobs is how many times one run can be begun. Each time looks for all jobs before.
const maxJobs = 1000

// putJob numbers and stores a job, unless there is one of the same run that has no reply yet, and returns its name.
func (g *Gateway) putJob(ctx context.Context, j *job) (name string, err error) {
	for j.Number = 1; j.Number <= maxJobs; j.Number++ {
		name = jobName(j.Run, j.Number)
		reply, err := g.stored(ctx, replyObject(name))
		if err != nil {
			return "", err
		} else if reply != nil {
			continue
		}
		var data bytes.Buffer
		registerGroups()
		if err := gob.NewEncoder(&data).Encode(j); err != nil {
			return "", err
		}
		if err := g.hold(ctx, *j, j.Run); err != nil { // it may wait for a worker
			return "", g.unstored(err)
		}
		err = g.o.Kept.Shared().Put(ctx, jobObject(name), data.Bytes())
		if err == nil || errors.Is(err, store.ErrExists) {
			return name, nil
		}
		return "", g.unstored(err)
	}
	return "", stages.Errorf(stages.LimitExceeded, "continue the last run of those that have continued it", "the run was begun %d times", maxJobs)
}

// lastJob returns the last job of a run; an empty name: there is none.
func (g *Gateway) lastJob(ctx context.Context, run string) (name string, j job, err error) {
	for n := 1; ; n++ {
		var next job
		found, err := g.getJob(ctx, jobName(run, n), &next)
		if !found || err != nil {
			return name, j, err
		}
		name, j = jobName(run, n), next
	}
}

// getJob reads a job, and reports whether there is one.
func (g *Gateway) getJob(ctx context.Context, name string, j *job) (found bool, err error) {
	data, err := g.stored(ctx, jobObject(name))
	if data == nil || err != nil {
		return false, err
	}
	registerGroups()
	return true, gob.NewDecoder(bytes.NewReader(data)).Decode(j)
}

// A jobReply is the reply to a job.
type jobReply struct {
	Ended     time.Time           `json:"ended"`
	Cancelled bool                `json:"cancelled,omitempty"` // the run was
	Result    *mcp.CallToolResult `json:"result"`
}

// replyOf reads the reply to a job; nil: there is none.
func (g *Gateway) replyOf(ctx context.Context, name string) (*jobReply, error) {
	data, err := g.stored(ctx, replyObject(name))
	if data == nil || err != nil {
		return nil, err
	}
	reply := new(jobReply)
	return reply, json.Unmarshal(data, reply)
}

// stored reads an object of the shared store; nil: there is none.
func (g *Gateway) stored(ctx context.Context, object string) ([]byte, error) {
	data, err := g.o.Kept.Shared().Get(ctx, object)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, g.unstored(err)
	}
	return data, nil
}

// unstored is the failure of the shared store, for callers.
func (g *Gateway) unstored(err error) error {
	g.o.Log.Warn("the shared store", zap.Error(err))
	e := stages.Errorf(stages.ServerUnavailable, "try again later", "the store that gateways share cannot be used now")
	e.Err = stages.StoreFailure(err)
	return e
}

// Work does jobs of durable runs until ctx ends. Without an engine or slots it does nothing.
func (g *Gateway) Work(ctx context.Context) error {
	d := g.o.Durable
	if d.Engine == nil || d.Slots == 0 {
		return nil
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return g.workAt(ctx, d.Engine) })
	if d.Shards != nil {
		both.Go(func() error { return g.workAt(ctx, d.Shards) })
	}
	return both.Wait()
}

// workAt does the jobs of an engine.
func (g *Gateway) workAt(ctx context.Context, engine Engine) error {
	stopping := func() bool { return ctx.Err() != nil || g.calls.closing() }
	return engine.Work(ctx, g.o.Durable.Slots, func(given context.Context, name string, beat func([]byte)) error {
		ctx, end := context.WithCancelCause(context.WithoutCancel(given))
		defer end(nil)
		defer context.AfterFunc(given, func() {
			if cause := context.Cause(given); cause == context.Canceled && !stopping() {
				end(cause)
			}
			end(ErrGone) // calls that may change something get their time to end
		})()
		ended := g.o.Watch.Job(engine == g.o.Durable.Shards)
		err := g.attempt(ctx, engine, name, beat)
		ended(errors.Is(err, errLeft), err)
		switch {
		case errors.Is(err, errLeft):
			g.o.Log.Info("a durable run is left to other attempts", zap.String("job", name))
		case err != nil:
			g.o.Log.Warn("a durable run is tried again", zap.String("job", name), zap.Error(err))
		}
		return err
	})
}

// errNoJob is why a worker leaves a job that it does not find to others. A job that was removed has no reader any more.
var errNoJob = errors.New("the run is not in the shared store of this worker; give all gateways and workers the same store")

// work continues the run of a job until it has ended, and stores its reply. After an error another worker does that.
func (g *Gateway) work(ctx context.Context, name string, a *attempt) error {
	var j job
	if found, err := g.getJob(ctx, name, &j); !found || err != nil {
		return cmp.Or(err, errNoJob)
	}
	if reply, err := g.stored(ctx, replyObject(name)); reply != nil || err != nil {
		return err // the worker before has died between the reply and its end
	}
	req := j.Caller.request(nil)
	if g.runsName(req.Extra) != j.Caller.Owner {
		return g.putFailure(ctx, name, j, stages.Errorf(stages.Denied, "give all gateways and workers the same flags",
			"the worker would run it with groups other than the gateway's"))
	}
	ctx, end, open := g.calls.begin(g.inView(ctx, req.Extra), callerOf(req.Extra))
	if !open {
		return errLeft
	}
	defer end()
	kept := g.o.Kept.Of(j.Caller.Owner)
	chain, err := takeOver(ctx, kept, j.Run)
	if err != nil {
		return err
	}
	defer g.using(ctx, kept, chain)()
	pipeline, last := j.Pipeline, chain[len(chain)-1]
	if last != j.Run {
		pipeline = resuming(last, j.Choices)
	}
	if j.Shard {
		run, data, err := g.workOnShard(ctx, req, j, pipeline, a)
		if err == nil {
			err = g.settle(ctx, kept, j, last, run)
		}
		if err != nil {
			return err
		}
		kept.Forget(run)
		kept.Forget(j.Run)
		return g.putReply(ctx, replyWait, name, data)
	}
	run, reply, err := g.workOn(ctx, req, j, pipeline, a)
	if err == nil {
		err = g.settle(ctx, kept, j, last, run)
	}
	if err != nil {
		return err
	}
	g.history.Sync(context.WithoutCancel(ctx)) // a gateway that no longer lists the run as live finds its end
	return g.putResult(ctx, replyWait, name, &reply)
}

// settle returns when the run with which an attempt has continued another one is where others find it. It fails if another attempt
// continues that: then its reply is the one that counts.
func (g *Gateway) settle(ctx context.Context, kept *runs.Caller, j job, last, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWait) // a run that was cancelled has a reply, too
	defer cancel()
	holder, _, err := kept.Claim(ctx, last, "")
	switch {
	case err == nil && holder != run:
		return errLeft
	case err == nil && run != "":
		if err = kept.Publish(ctx, run); err == nil {
			err = g.hold(ctx, j, run) // a shard, for the run that it is a part of
		}
	}
	if errors.Is(err, runs.ErrTaken) {
		return errLeft
	}
	if err != nil {
		return stages.StoreFailure(err)
	}
	return nil
}

// hold keeps a run of a job in the shared store, where the job may take longer than runs are kept.
func (g *Gateway) hold(ctx context.Context, j job, run string) error {
	if j.Timeout < g.o.Kept.TTL() {
		return nil
	}
	return g.o.Kept.Hold(ctx, run)
}

// using keeps runs in the stores until its return value is called.
func (g *Gateway) using(ctx context.Context, kept *runs.Caller, chain []string) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for pausing.For(ctx, g.o.Kept.TTL()/4) == nil {
			for _, run := range chain {
				_ = kept.Use(ctx, run) // the next use may succeed
			}
		}
	}()
	return cancel
}

// takeOver returns a run and those that continue it one after another, none of which is under way any more: those who went on with
// them are dead. The next attempt finds the last one only while all are kept.
func takeOver(ctx context.Context, kept *runs.Caller, run string) (chain []string, err error) {
	if _, err := kept.Fetch(ctx, run); err != nil {
		return nil, stages.StoreFailure(err)
	}
	for {
		chain = append(chain, run)
		holder, _, err := kept.Claim(ctx, run, "")
		switch {
		case err != nil:
			return nil, stages.StoreFailure(err)
		case holder == "":
			return chain, nil
		case holder == run:
			return nil, errBusy
		}
		if _, err := kept.TakeOver(ctx, holder); err != nil {
			return nil, stages.StoreFailure(err)
		}
		run = holder
	}
}

// workOn runs the pipeline of a job, and returns its run, if there is one, and its reply.
func (g *Gateway) workOn(ctx context.Context, req *mcp.CallToolRequest, j job, pipeline []byte, a *attempt) (run string, reply jobReply, err error) {
	call := schemas.Call{Pipeline: pipeline, Mode: schemas.ModeRun, Durable: true, MaxOutput: j.MaxOutput}
	left := j.Timeout - time.Since(j.Begun)
	p, errs, late := g.compileJob(ctx, g.callDeps(ctx, req, call), left, pipeline)
	if errs == nil && late == nil {
		if err := p.Agree(j.Marks); err != nil {
			errs = []*stages.Error{stages.AsError(err)}
		}
	}
	from := stages.BeginsWith(pipeline).Run
	var ended *stages.Error // the run, which was not gone on with
	switch {
	case context.Cause(ctx) == ErrGone:
		return "", reply, errLeft
	case errs != nil && ctx.Err() != nil:
		ended, reply.Cancelled = stages.Errorf(stages.Cancelled, "", "the run was cancelled while it was checked"), true
	case late != nil:
		ended = late
	case errs != nil && stages.Unkept(stages.Join(errs)):
		return "", reply, stages.Join(errs)
	case errs != nil && from != j.Run: // an earlier attempt has called tools
		ended = stages.AsError(stages.Join(errs))
	case errs != nil:
		g.endJob(j, errs[0])
		reply.Result = failure(mistakesText(pipelineSubject, pipelineSubject, errs, j.MaxOutput))
		return "", reply, nil
	}
	if ended != nil {
		ended.Run, ended.Resume = from, true
		g.endJob(j, ended)
		reply.Result = failure(failureText(pipelineSubject, ended, j.MaxOutput))
		return "", reply, nil
	}
	call.Timeout = left.Seconds()
	e := &execution{req: req, pipeline: p, call: call, begin: j.Begin, begun: time.Now(), trace: j.Trace, cautious: a.cautious()}
	defer a.following(&e.follow)()
	reply.Result, err = g.run(ctx, e)
	switch {
	case stages.Unkept(e.err):
		return "", reply, e.err
	case g.leaves(ctx, e.err):
		return "", reply, errLeft
	}
	reply.Cancelled = e.err != nil && stages.AsError(e.err).Code == stages.Cancelled
	return e.ran, reply, err
}

// compileJob checks a pipeline in the time that is left for its run, of which late says that it is over.
func (g *Gateway) compileJob(ctx context.Context, deps stages.Deps, left time.Duration, pipeline []byte) (p *stages.Pipeline, errs []*stages.Error, late *stages.Error) {
	if left > 0 {
		p, errs, late = CallTime{Timeout: left, Begun: time.Now(), Limits: deps.Limits}.Check(ctx, func(ctx context.Context) (*stages.Pipeline, []*stages.Error) {
			return stages.Compile(ctx, pipeline, deps)
		})
	}
	if left <= 0 || late != nil {
		return nil, nil, stages.Errorf(stages.Timeout, "continue the run with a larger timeout", "the run took longer than its timeout")
	}
	for _, e := range errs {
		if lacking[e.Code] {
			g.o.Log.Warn("this worker lacks a server or tool of a run that a gateway has taken; give all of them the same configuration")
			e.Hint = "have the operator give all gateways and workers the same configuration"
		}
	}
	return p, errs, late
}

// lacking are the codes of mistakes that the gateway of a run would have found.
var lacking = map[stages.Code]bool{stages.UnknownServer: true, stages.UnknownTool: true}

// leaves reports whether an attempt that has failed with err is not the last one at its run.
func (g *Gateway) leaves(ctx context.Context, err error) bool {
	return err != nil && (context.Cause(ctx) == ErrGone || g.calls.closing() || stages.Unkept(err))
}

// putFailure stores an error as the reply to a job whose pipeline has not run to its end.
func (g *Gateway) putFailure(ctx context.Context, name string, j job, e *stages.Error) error {
	if j.Shard {
		data, err := encodeEnded(stages.Ended{Err: e.Bare()})
		if err != nil {
			return err
		}
		return g.putReply(ctx, replyWait, name, data)
	}
	g.endJob(j, e)
	return g.putResult(ctx, replyWait, name, &jobReply{Result: failure(failureText(pipelineSubject, e, j.MaxOutput))})
}

// putResult stores the result of a call as the reply to a job, as putReply does.
func (g *Gateway) putResult(ctx context.Context, patience time.Duration, name string, reply *jobReply) error {
	reply.Ended = time.Now()
	data, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	if len(data) > store.MaxObject {
		text := fmt.Sprintf("The reply has %s, more than the %s that are kept of it. The run is kept: begin with from, and reduce its output.",
			texts.Bytes(int64(len(data))), texts.Bytes(store.MaxObject))
		reply.Result = failure(text)
		if data, err = json.Marshal(reply); err != nil {
			return err
		}
	}
	err = g.putReply(ctx, patience, name, data)
	if err == nil {
		g.hideJob(ctx, name)
	}
	return err
}

// putReply stores the reply to a job, and tries that for some time. A run that was cancelled has a reply, too.
func (g *Gateway) putReply(ctx context.Context, patience time.Duration, name string, data []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		err = g.o.Kept.Shared().Put(ctx, replyObject(name), data)
		if err == nil || errors.Is(err, store.ErrExists) {
			return nil
		}
		if pausing.For(ctx, time.Second) != nil {
			return stages.StoreFailure(err)
		}
	}
}

// replyWait is how long a worker tries to store a reply.
const replyWait = time.Minute
