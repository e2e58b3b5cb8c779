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
	// moveAfter is when a job goes to another worker where one stops: it still asks for jobs for a moment.
	moveAfter = 250 * time.Millisecond
)

// Failures of an attempt that are of this package. The value of a panic can hold data.
const (
	errStopped = word("stopped") // its worker ends
	errPanic   = word("panic")
)

// A Do does the job with a name. Its context ends when the job is cancelled, its time is over or the worker stops. beat says how
// far it is, as JSON of at most 4 KiB, which is public to all who can read Temporal; it may be called as often as one likes.
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
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
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
	case temporal.IsCanceledError(context.Cause(work)):
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

// A pulse holds the details of the next beat.
type pulse struct {
	mu      sync.Mutex
	details json.RawMessage // guarded by mu
}

func (p *pulse) set(details []byte) error {
	if len(details) > maxDetails {
		return fmt.Errorf("details of %d bytes, more than %d", len(details), maxDetails)
	}
	if !json.Valid(details) {
		return errors.New("details that are not JSON")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.details = append(json.RawMessage(nil), details...)
	return nil
}

func (p *pulse) get() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.details
}

// beating runs f and tells the server that it does so until it has returned, also after ctx has ended.
func beating(ctx context.Context, f func(*pulse) error) error {
	var p pulse
	var beats sync.WaitGroup
	done := make(chan struct{})
	beats.Go(func() {
		ctx := context.WithoutCancel(ctx)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if details := p.get(); details != nil {
				activity.RecordHeartbeat(ctx, details)
			} else {
				activity.RecordHeartbeat(ctx)
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
