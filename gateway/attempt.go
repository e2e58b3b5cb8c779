package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
)

// maxFruitless is how many attempts at a job in a row may fail, or die, without getting further than those before.
const maxFruitless = 5

// Attempts are cautious, see [stages.RunOptions], when so many in a row have ended like that.
const (
	cautiousFrom = 3
	cautiousFor  = 30 * time.Second
)

// An attempt at a job counts those before, so that an item that ends its worker does not end one worker after another forever. The
// engine keeps the counts with the progress of the job.
type attempt struct {
	send  func([]byte)
	begun time.Time

	mu    sync.Mutex
	state attemptState // guarded by mu
}

// An attemptState is what the engine keeps of a job under way.
type attemptState struct {
	runProgress
	Best      int64 `json:"best,omitempty"`      // the most that an attempt has done, see [done]
	Fruitless int   `json:"fruitless,omitempty"` // attempts that have begun since then
}

// errLeft is why an attempt ends that has not failed: another one goes on.
var errLeft = errors.New("the run is left to another attempt")

// errBusy is why an attempt waits.
var errBusy = errors.New("an earlier attempt is still under way in this process")

// attempt does a job once. It waits while the shared store cannot be used.
func (g *Gateway) attempt(ctx context.Context, engine Engine, name string, beat func([]byte)) error {
	details, _, err := engine.Progress(ctx, name)
	if err != nil {
		return err
	}
	a := &attempt{send: beat, begun: time.Now()}
	if details != nil {
		if err := json.Unmarshal(details, &a.state); err != nil {
			return err
		}
	}
	before := a.state.Fruitless
	if before >= maxFruitless {
		return g.giveUp(ctx, name, nil)
	}
	a.note(func(s *attemptState) { s.Fruitless++ })
	for pause := time.Second; ; pause = min(2*pause, maxStorePause) {
		err = g.work(ctx, name, a)
		if !passing(err) {
			break
		}
		g.o.Log.Warn("a durable run waits", zap.Error(err))
		if pausing.For(ctx, pause) != nil {
			err = errLeft
			break
		}
	}
	switch {
	case errors.Is(err, errLeft):
		a.note(func(s *attemptState) { s.Fruitless = min(s.Fruitless, before) })
	case err != nil && a.fruitless() >= maxFruitless:
		return g.giveUp(ctx, name, err)
	}
	return err
}

const maxStorePause = 10 * time.Second

// passing reports whether an attempt can go on later where it has failed.
func passing(err error) bool {
	return errors.Is(err, errBusy) || stages.Unkept(err) && !errors.Is(err, runs.ErrVersion) && !errors.Is(err, store.ErrDamaged)
}

// giveUp stores the reply to a job whose attempts get no further, of which the last one has failed with err; nil: its worker has died.
func (g *Gateway) giveUp(ctx context.Context, name string, err error) error {
	var j job
	if found, err := g.getJob(ctx, name, &j); !found || err != nil {
		return err // a job that is gone has no reader any more
	}
	if errors.Is(err, runs.ErrVersion) {
		return g.putFailure(ctx, name, j, stages.Errorf(stages.Internal, "give all gateways and workers the same version of mcsh, and run the pipeline again",
			"the run was given up: its worker cannot read it, because another version of mcsh has written it"))
	}
	how := "failed"
	if err == nil {
		how = "ended with their worker"
	}
	e := stages.Errorf(stages.Internal, "have the operator look for the cause in the logs of the workers",
		"the run was given up: %d attempts in a row have %s before they had done more than those before", maxFruitless, how)
	if chain, err := takeOver(ctx, g.o.Kept.Of(j.Caller.Owner), j.Run); err == nil {
		e.Run, e.Resume = chain[len(chain)-1], true
	}
	return g.putFailure(ctx, name, j, e)
}

// note changes the state, and has the engine keep it.
func (a *attempt) note(change func(*attemptState)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.state)
	a.send([]byte(texts.JSON(a.state)))
}

func (a *attempt) fruitless() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Fruitless
}

// cautious returns how long the attempt is to be cautious.
func (a *attempt) cautious() time.Duration {
	if a.fruitless() < cautiousFrom {
		return 0
	}
	return cautiousFor
}

// following sets what gets the reports on a run, and has the engine keep its progress until over is called.
func (a *attempt) following(follow *func(func() []stages.StageReport)) (over func()) {
	ctx, cancel := context.WithCancel(context.Background())
	*follow = func(list func() []stages.StageReport) {
		go func() {
			for pausing.For(ctx, progressEvery/2) == nil {
				now := list()
				a.note(func(s *attemptState) {
					s.runProgress = progressOf(now, time.Since(a.begun))
					if n := done(now); n > s.Best {
						s.Best, s.Fruitless = n, 0
					}
				})
			}
		}()
	}
	return cancel
}

// done returns a number for how far a run is: the last stage that has something to show, and of a for_each its items. It grows from
// one attempt to the next, since that has the items of the one before.
func done(list []stages.StageReport) (n int64) {
	for _, s := range list {
		items := ended(s)
		if items == 0 && s.Millis > 0 {
			items = 1
		}
		if items > 0 {
			at, _ := strconv.ParseInt(string(s.Place), 10, 16) // the number of a stage of the plan
			n = max(n, at<<40+items)
		}
	}
	return n
}

// ended returns how many items of a for_each have ended, in earlier attempts too.
func ended(s stages.StageReport) int64 { return s.OK + s.Failed + s.Resumed }
