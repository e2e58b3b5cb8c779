package gateway

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
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

// hideJob ends that. Where it fails, its reply shows that the run is over.
func (g *Gateway) hideJob(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineWait)
	defer cancel()
	_ = g.o.Kept.Shared().Delete(ctx, livePrefix+name)
}

// endJob lists a durable run as one that has ended without a gateway that does it.
func (g *Gateway) endJob(j job, err error) { g.history.Begin(j.Begin).End(stages.Report{}, 0, err) }

// liveJobs returns the newest durable runs that have no reply yet, see [history.Others].
func (g *Gateway) liveJobs(ctx context.Context, most int) ([]history.OtherRun, error) {
	var names []store.Object
	for o, err := range g.o.Kept.Shared().List(ctx, livePrefix) {
		if err != nil {
			return nil, err
		}
		names = append(names, o)
	}
	slices.SortFunc(names, func(a, b store.Object) int { return b.Modified.Compare(a.Modified) })
	names = names[:min(len(names), most)]
	asking, cancel := context.WithTimeout(ctx, progressEvery) // an engine that does not answer hides no run
	defer cancel()
	found := make([]*history.OtherRun, len(names))
	var group errgroup.Group
	group.SetLimit(liveAtOnce)
	for i, o := range names {
		group.Go(func() (err error) {
			found[i], err = g.liveJob(ctx, asking, strings.TrimPrefix(o.Name, livePrefix))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	live := []history.OtherRun{}
	for _, r := range found {
		if r != nil {
			live = append(live, *r)
		}
	}
	return live, nil
}

// liveJob returns a durable run as history lists it; nil: it is over. The engine is asked within asking.
func (g *Gateway) liveJob(ctx, asking context.Context, name string) (*history.OtherRun, error) {
	var j job
	found, err := g.getJob(ctx, name, &j)
	if !found || err != nil {
		return nil, err
	}
	reply, err := g.replyData(ctx, name)
	if reply != nil || err != nil { // its worker has died before it could say so
		return nil, err
	}
	if time.Since(j.Begun) > j.Timeout+2*replyWait { // no worker ends it any more
		_, over, err := g.await(asking, name, j, endedWait, nil)
		if over || err != nil {
			return nil, err
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

// cancelJobs cancels the durable runs of an identity that has lost access.
func (g *Gateway) cancelJobs(user string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	live, err := g.liveJobs(ctx, math.MaxInt)
	for _, r := range live {
		if r.User == user {
			err = errors.Join(err, r.Cancel(nil))
		}
	}
	if err != nil {
		g.o.Log.Warn("durable runs of an identity that has lost access may go on; mcsh runs cancel ends them", zap.Error(err))
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
