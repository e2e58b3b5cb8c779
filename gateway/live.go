package gateway

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
)

// livePrefix begins the names of objects, each of which says that a durable run has no reply yet.
const livePrefix = DurablePrefix + "live/"

const (
	mostLive   = 200 // durable runs that are shown, the newest
	liveAtOnce = 8   // that are read
)

// showJob has all gateways list a durable run as live.
func (g *Gateway) showJob(ctx context.Context, name string) error {
	if err := g.o.Kept.Shared().Put(ctx, livePrefix+name, nil); err != nil && !errors.Is(err, store.ErrExists) {
		return g.unstored(err)
	}
	return nil
}

// hideJob ends the listing of a durable run as live. If that fails, the reply shows that the run is over.
func (g *Gateway) hideJob(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineWait)
	defer cancel()
	_ = g.o.Kept.Shared().Delete(ctx, livePrefix+name)
}

// endJob lists a durable run as one that has ended without a gateway that does it.
func (g *Gateway) endJob(j job, err error) { g.history.Begin(j.Begin).End(stages.Report{}, 0, err) }

// eachLive calls do with the newest durable runs that have no reply yet, some at a time. The error joins those of do.
func (g *Gateway) eachLive(ctx context.Context, most int, do func(name string) error) error {
	var marks []store.Object
	for o, err := range g.o.Kept.Shared().List(ctx, livePrefix) {
		if err != nil {
			return err
		}
		marks = append(marks, o)
	}
	slices.SortFunc(marks, func(a, b store.Object) int { return b.Modified.Compare(a.Modified) })
	marks = marks[:min(len(marks), most)]
	errs := make([]error, len(marks))
	var group errgroup.Group
	group.SetLimit(liveAtOnce)
	for i, o := range marks {
		group.Go(func() error {
			errs[i] = do(strings.TrimPrefix(o.Name, livePrefix))
			return nil
		})
	}
	_ = group.Wait() // it has none
	return errors.Join(errs...)
}

// liveJobs implements [history.Others]. A run that cannot be read is left out.
func (g *Gateway) liveJobs(ctx context.Context) (live []history.OtherRun, err error) {
	asking, cancel := context.WithTimeout(ctx, progressEvery) // an engine that does not answer hides no run
	defer cancel()
	var mu sync.Mutex
	listed := false
	err = g.eachLive(ctx, mostLive, func(name string) error {
		r, err := g.liveJob(ctx, asking, name)
		mu.Lock()
		defer mu.Unlock()
		if listed = true; r != nil {
			live = append(live, *r)
		}
		return err
	})
	if listed && ctx.Err() == nil {
		return live, nil // the errors are logged
	}
	return live, err
}

// liveJob returns a durable run as history lists it; nil: it is over. The engine is asked for its progress within asking.
func (g *Gateway) liveJob(ctx, asking context.Context, name string) (*history.OtherRun, error) {
	var j job
	found, err := g.getJob(ctx, name, &j)
	if !found || err != nil {
		return nil, err
	}
	reply, err := g.stored(ctx, replyObject(name))
	if reply != nil || err != nil { // its worker died after the reply
		return nil, err
	}
	if time.Since(j.Begun) > j.Timeout+2*replyWait { // no worker ends it any more
		if _, over, err := g.await(ctx, name, j, endedWait, nil); over && err == nil {
			return nil, nil
		}
	}
	r := &history.OtherRun{Begin: j.Begin}
	r.Cancel = func(error) error { return g.cancelJob(name, j) }
	if far := g.howFar(asking, name); far.attempts > 0 {
		p := far.progress
		r.Stages = []stages.StageReport{{
			Place: p.Stage, Label: stages.Label{Kind: "for_each"}, OK: p.Items - p.Failed, Failed: p.Failed, Items: p.Items, Total: p.Of, Calls: p.Calls,
		}}
	}
	return r, nil
}

// cancelJobs cancels the durable runs of an identity that has lost access. While the store or the engine is away it tries again, for an hour.
func (g *Gateway) cancelJobs(user string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := g.eachLive(ctx, math.MaxInt, func(name string) error {
			var j job
			found, err := g.getJob(ctx, name, &j)
			if !found || err != nil || j.Begin.User != user {
				return err
			}
			return g.cancelJob(name, j)
		})
		if err == nil {
			return
		}
		g.o.Log.Warn("durable runs of an identity that has lost access may go on; mcsh runs cancel ends them", zap.Error(err))
		if pausing.For(ctx, pause) != nil {
			return
		}
	}
}

// cancelJob cancels a durable run, and waits a moment for its end.
func (g *Gateway) cancelJob(name string, j job) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*engineWait)
	defer cancel()
	if err := g.o.Durable.Engine.Cancel(ctx, name); err != nil {
		g.o.Log.Warn("a durable run could not be cancelled", zap.Error(err))
		return &control.Error{Status: 503, Message: "the run could not be cancelled: the engine of durable runs cannot be used now", Hint: "try again later"}
	}
	_, _, err := g.await(ctx, name, j, engineWait, nil)
	return err
}
