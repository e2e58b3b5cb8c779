package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

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
	Pipeline  []byte // that continues it for the first time
	Marks     stages.Marks
	Begun     time.Time
	Timeout   time.Duration
	MaxOutput int
	Caller    jobCaller
	Trace     stages.Trace
	Shard     bool // it is a part of a for_each of another run
}

// A jobCaller is the caller of a durable run. A worker acts in its place: with its groups, policies and limits.
type jobCaller struct {
	Owner  string // of the runs
	Client string // program
	Stdio  bool
	Token  *auth.TokenInfo // nil: without authentication
	Header http.Header
}

func init() { gob.Register([]string{}) } // the groups of an identity

// jobHeaders are the headers of a request that say who its caller is.
var jobHeaders = []string{addressHeader, groupHeader, "X-Forwarded-For", "Forwarded"}

func (g *Gateway) callerOfJob(req *mcp.CallToolRequest) jobCaller {
	c := jobCaller{Owner: g.runsName(req.Extra), Client: clientOf(req)}
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

// putJob stores a job, unless there is one of the same run that has no reply yet, and returns its name.
func (g *Gateway) putJob(ctx context.Context, j job) (name string, err error) {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(j); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name = jobName(j.Run, n)
		reply, err := g.replyOf(ctx, name)
		if err != nil {
			return "", err
		} else if reply != nil {
			continue
		}
		err = g.o.Kept.Shared().Put(ctx, jobObject(name), data.Bytes())
		if err == nil || errors.Is(err, store.ErrExists) {
			return name, nil
		}
		return "", g.unstored(err)
	}
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
	data, err := g.o.Kept.Shared().Get(ctx, jobObject(name))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, g.unstored(err)
	}
	return true, gob.NewDecoder(bytes.NewReader(data)).Decode(j)
}

// replyOf reads the reply to a job; nil: there is none.
func (g *Gateway) replyOf(ctx context.Context, name string) (*mcp.CallToolResult, error) {
	data, err := g.o.Kept.Shared().Get(ctx, replyObject(name))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, g.unstored(err)
	}
	result := new(mcp.CallToolResult)
	return result, json.Unmarshal(data, result)
}

// unstored is the failure of the shared store, for callers.
func (g *Gateway) unstored(err error) error {
	g.o.Log.Warn("the shared store", zap.Error(err))
	e := stages.Errorf(stages.ServerUnavailable, "try again later", "the store that gateways share cannot be used now")
	e.Err = stages.StoreFailure(err)
	return e
}

func errorField(err error) zap.Field { return zap.Error(err) }

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
		stop := context.AfterFunc(given, func() {
			if cause := context.Cause(given); cause == context.Canceled && !stopping() {
				end(cause)
			}
			end(ErrGone) // calls that may change something get their time to end
		})
		defer stop()
		err := g.attempt(ctx, engine, name, beat)
		switch {
		case errors.Is(err, errLeft):
			g.o.Log.Info("a durable run is left to other attempts", zap.String("job", name))
		case err != nil:
			g.o.Log.Warn("a durable run is tried again", zap.String("job", name), zap.Error(err))
		}
		return err
	})
}

// work continues the run of a job until it has ended, and stores its reply. After an error another worker does that.
func (g *Gateway) work(ctx context.Context, name string, a *attempt) error {
	var j job
	if found, err := g.getJob(ctx, name, &j); !found || err != nil {
		return err // a job that is gone has no reader any more
	}
	if result, err := g.replyOf(ctx, name); result != nil || err != nil {
		return err // the worker before has died between the reply and its end
	}
	req := j.Caller.request(nil)
	if g.runsName(req.Extra) != j.Caller.Owner {
		return g.putFailure(ctx, name, stages.Errorf(stages.Denied, "give all gateways and workers the same flags",
			"the worker would run it with other groups than the gateway"))
	}
	ctx, end, open := g.calls.begin(g.inView(ctx, req.Extra), callerOf(req.Extra))
	if !open {
		return errLeft
	}
	defer end()
	kept := g.o.Kept.Of(j.Caller.Owner)
	defer g.using(ctx, kept, j.Run)()
	last, err := takeOver(ctx, kept, j.Run)
	if err != nil {
		return err
	}
	pipeline := j.Pipeline
	if last != j.Run {
		pipeline = resuming(last)
	}
	var run string
	var reply []byte
	if j.Shard {
		run, reply, err = g.workOnShard(ctx, req, j, pipeline, a)
	} else {
		run, reply, err = g.workOn(ctx, req, j, pipeline, a)
	}
	if err == nil {
		err = settle(ctx, kept, last, run)
	}
	if err != nil {
		return err
	}
	return g.putReply(ctx, name, reply)
}

// settle returns when the run with which an attempt has continued another one is where others find it. It fails if another attempt
// continues that: then its reply is the one that counts.
func settle(ctx context.Context, kept *runs.Caller, last, run string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWait) // a run that was cancelled has a reply, too
	defer cancel()
	holder, _, err := kept.Claim(ctx, last, "")
	switch {
	case err == nil && holder != run:
		return errLeft
	case err == nil && run != "":
		err = kept.Publish(ctx, run)
	}
	if errors.Is(err, runs.ErrTaken) {
		return errLeft
	}
	if err != nil {
		return stages.StoreFailure(err)
	}
	return nil
}

// using keeps a run in the stores until its return value is called.
func (g *Gateway) using(ctx context.Context, kept *runs.Caller, run string) (over func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for pausing.For(ctx, g.o.Kept.TTL()/4) == nil {
			_ = kept.Use(ctx, run) // the next use may succeed
		}
	}()
	return cancel
}

// takeOver returns the last of the runs that continue a run, none of which is under way any more: those who went on with them are dead.
func takeOver(ctx context.Context, kept *runs.Caller, run string) (last string, err error) {
	if _, err := kept.Fetch(ctx, run); err != nil {
		return "", stages.StoreFailure(err)
	}
	for {
		holder, _, err := kept.Claim(ctx, run, "")
		switch {
		case err != nil:
			return "", stages.StoreFailure(err)
		case holder == "":
			return run, nil
		case holder == run:
			return "", errBusy
		}
		if _, err := kept.TakeOver(ctx, holder); err != nil {
			return "", stages.StoreFailure(err)
		}
		run = holder
	}
}

// workOn runs the pipeline of a job, and returns its run, if there is one, and its reply.
func (g *Gateway) workOn(ctx context.Context, req *mcp.CallToolRequest, j job, pipeline []byte, a *attempt) (run string, reply []byte, err error) {
	ctx = Observed(ctx, RunObserver{Client: j.Caller.Client})
	call := schemas.Call{Pipeline: pipeline, Mode: schemas.ModeRun, Durable: true, MaxOutput: j.MaxOutput}
	left := j.Timeout - time.Since(j.Begun)
	deps := g.callDeps(ctx, req, call)
	p, errs, late := CallTime{Timeout: left, Begun: time.Now(), Limits: deps.Limits}.Check(ctx, func(ctx context.Context) (*stages.Pipeline, []*stages.Error) {
		return stages.Compile(ctx, pipeline, deps)
	})
	switch {
	case context.Cause(ctx) == ErrGone:
		return "", nil, errLeft
	case late != nil:
		errs = []*stages.Error{late}
	case errs == nil:
		if err := p.Agree(j.Marks); err != nil {
			errs = []*stages.Error{asError(err)}
		}
	}
	if errs != nil {
		if stages.Unkept(stages.Join(errs)) {
			return "", nil, stages.Join(errs)
		}
		reply, err = replyWith(failure(mistakesText(pipelineSubject, pipelineSubject, errs, j.MaxOutput)))
		return "", reply, err
	}
	call.Timeout = left.Seconds()
	e := &execution{req: req, pipeline: p, call: call, begun: time.Now(), trace: j.Trace}
	defer a.following(&e.follow)()
	result, err := g.run(ctx, e)
	switch {
	case e.err != nil && (context.Cause(ctx) == ErrGone || g.calls.closing()):
		return "", nil, errLeft
	case stages.Unkept(e.err):
		return "", nil, e.err
	case err != nil:
		return "", nil, err
	}
	reply, err = replyWith(result)
	return e.ran, reply, err
}

// replyWith writes the result of a call as the reply to a job.
func replyWith(result *mcp.CallToolResult) ([]byte, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	if len(data) > store.MaxObject {
		text := fmt.Sprintf("The reply has %s, more than the %s that are kept of it. The run is kept: begin with from, and reduce its output.",
			texts.Bytes(int64(len(data))), texts.Bytes(store.MaxObject))
		return json.Marshal(failure(text))
	}
	return data, nil
}

// putFailure stores an error as the reply to a job.
func (g *Gateway) putFailure(ctx context.Context, name string, e *stages.Error) error {
	reply, err := replyWith(failure(failureText(pipelineSubject, e, g.defaultOutput())))
	if err != nil {
		return err
	}
	return g.putReply(ctx, name, reply)
}

// putReply stores the reply to a job. A run that was cancelled has a reply, too.
func (g *Gateway) putReply(ctx context.Context, name string, data []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWait)
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
