package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	// beatEvery is how often a worker tells the server that it does a job, and so learns that the job is cancelled.
	beatEvery = 750 * time.Millisecond
	// maxDetails is the largest size of the details of a beat.
	maxDetails = 4 << 10
	// moveAfter is how long the job of a worker that stops waits for another one: the old one still asks for jobs for a moment.
	moveAfter = 250 * time.Millisecond
)

// Failures of an attempt that are of this package. The value of a panic can hold data.
const (
	errStopped = word("stopped") // its worker ends
	errLost    = word("lost")    // the server has given it up, or does not answer any more
	errPanic   = word("panic")
)

// A Do does the job with a name. Its context ends when the job is cancelled, with the cause [context.Canceled], and when its time is
// over, the worker stops or the attempt is another worker's. beat says how far it is, as JSON of at most 4 KiB, which is public to all
// who can read Temporal and stays with the job until another attempt says something else; it may be called as often as one likes.
type Do = func(ctx context.Context, name string, beat func(details []byte)) error

// Work does jobs, at most slots at a time, until ctx ends. Then it takes no new ones, and the contexts of those that run end;
// other workers do these anew at once. It returns when all have returned. An error of do is not written down, except for its
// code: see [Coder].
func (e *Engine) Work(ctx context.Context, slots int, do Do) error {
	if slots < 1 {
		return fmt.Errorf("%d jobs at a time: give a positive number", slots)
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errStopped) })()
	worker.SetStickyWorkflowCacheSize(0) // of the process: a cancel must not wait for a dead worker that had the workflow
	w := worker.New(e.client, e.o.Queue, worker.Options{
		MaxConcurrentActivityExecutionSize:     slots,
		MaxConcurrentActivityTaskPollers:       2,
		MaxConcurrentWorkflowTaskExecutionSize: 8,
		MaxConcurrentWorkflowTaskPollers:       2,
		MaxHeartbeatThrottleInterval:           time.Millisecond, // beats are spaced here
		WorkerStopTimeout:                      math.MaxInt64,    // their contexts have ended
		OnFatalError:                           func(err error) { stop(err) },
	})
	w.RegisterWorkflowWithOptions(job, workflow.RegisterOptions{Name: workflowName})
	w.RegisterActivityWithOptions(func(ctx context.Context) error { return e.attempt(ctx, running, do) },
		activity.RegisterOptions{Name: activityName})
	if err := w.Start(); err != nil {
		return fmt.Errorf("starting to work for Temporal at %s: %w", e.o.Address, err)
	}
	<-running.Done()
	w.Stop()
	if cause := context.Cause(running); cause != errStopped {
		return fmt.Errorf("working for Temporal at %s: %w", e.o.Address, cause)
	}
	return nil
}

// attempt is the activity: it does a job once, while running lasts. It reports the end of its context whatever do returns.
func (e *Engine) attempt(ctx, running context.Context, do Do) error {
	info := activity.GetInfo(ctx)
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(ending(context.Cause(ctx))) })()
	defer context.AfterFunc(running, func() { end(errStopped) })()
	log := e.o.Log.With("job", info.WorkflowExecution.ID, "attempt", info.Attempt)
	err := beating(ctx, func(p *pulse) error {
		return recovering(func() error {
			return do(work, info.WorkflowExecution.ID, func(details []byte) {
				if err := p.set(details); err != nil {
					log.Warn("progress of a job is left out", "error", err)
				}
			})
		}, func() {
			log.Error("a job panicked", "stack", string(debug.Stack()))
		})
	})
	switch {
	case context.Cause(work) == context.Canceled:
		return temporal.NewCanceledError()
	case work.Err() != nil:
		return temporal.NewApplicationErrorWithOptions("the attempt was stopped", code(context.Cause(work)), temporal.ApplicationErrorOptions{
			NextRetryDelay: moveAfter,
			Category:       temporal.ApplicationErrorCategoryBenign, // nothing to log
		})
	case err != nil:
		return temporal.NewApplicationError("the attempt failed", code(err))
	}
	return nil
}

// ending is the cause with which the context of a job ends, where that of the activity has ended with another one.
func ending(cause error) error {
	switch {
	case temporal.IsCanceledError(cause):
		return context.Canceled
	case errors.Is(cause, context.DeadlineExceeded):
		return context.DeadlineExceeded
	}
	return errLost
}

// A pulse sends beats with details.
type pulse struct {
	ctx context.Context // of the activity, without its end

	mu      sync.Mutex
	details json.RawMessage // guarded by mu
	first   sync.Once
}

func (p *pulse) set(details []byte) error {
	if len(details) > maxDetails {
		return fmt.Errorf("details of %d bytes, more than %d", len(details), maxDetails)
	}
	if !json.Valid(details) {
		return errors.New("details that are not JSON")
	}
	p.mu.Lock()
	p.details = append(json.RawMessage(nil), details...)
	p.mu.Unlock()
	p.first.Do(p.beat) // the server has it before the worker can die of the job
	return nil
}

func (p *pulse) beat() {
	p.mu.Lock()
	details := p.details
	p.mu.Unlock()
	if details != nil {
		activity.RecordHeartbeat(p.ctx, details)
	} else {
		activity.RecordHeartbeat(p.ctx)
	}
}

// beating runs f and tells the server that it does so until it has returned, also after ctx has ended.
func beating(ctx context.Context, f func(*pulse) error) error {
	p := pulse{ctx: context.WithoutCancel(ctx)}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &p.details); err != nil {
			return err
		}
	}
	var beats sync.WaitGroup
	done := make(chan struct{})
	beats.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				p.beat() // with the last details
				return
			case <-tick.C:
				p.beat()
			}
		}
	})
	defer beats.Wait()
	defer close(done)
	return f(&p)
}

// recovering runs f, and where it panics calls seen and returns an error.
func recovering(f func() error, seen func()) (err error) {
	defer func() {
		if recover() != nil {
			seen()
			err = errPanic
		}
	}()
	return f()
}
