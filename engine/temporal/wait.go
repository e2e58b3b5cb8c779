package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
)

// Errors that say how a job ended without a result, or that there is no such job.
var (
	ErrCancelled = errors.New("the job was cancelled")
	ErrTooLong   = errors.New("the job took longer than its limit")
	ErrGivenUp   = errors.New("the job was given up, because too many attempts failed")
	ErrUnknown   = errors.New("there is no such job")
)

// askAgain is how long Wait pauses where the server does not answer.
const askAgain = 500 * time.Millisecond

// Wait waits until a job is done. It returns an [ErrCancelled], [ErrTooLong], [ErrGivenUp] or [ErrUnknown] otherwise, or that
// ctx has ended. It goes on waiting while the server does not answer.
func (e *Engine) Wait(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for {
		err := e.client.GetWorkflow(ctx, name, "").Get(ctx, nil)
		var ended *temporal.WorkflowExecutionError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &ended):
			return fmt.Errorf("job %s: %w", name, outcome(err))
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for job %s: %w", name, ctx.Err())
		case !isTransient(err):
			return e.failed("waiting for", name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for job %s: %w; temporal at %s: %s", name, ctx.Err(), e.o.Address, clip(err.Error()))
		case <-time.After(askAgain):
		}
	}
}

// outcome says how the workflow of a job ended.
func outcome(err error) error {
	var terminated *temporal.TerminatedError
	var failed *temporal.ActivityError
	switch {
	case temporal.IsCanceledError(err), errors.As(err, &terminated):
		return ErrCancelled
	case errors.As(err, &failed) && failed.RetryState() == enumspb.RETRY_STATE_TIMEOUT:
		return fmt.Errorf("%w: %s", ErrTooLong, reason(failed.Unwrap()))
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %s", ErrGivenUp, reason(failed.Unwrap()))
	case temporal.IsTimeoutError(err):
		return ErrTooLong
	}
	return fmt.Errorf("%w: %s", ErrGivenUp, clip(err.Error()))
}

// reason says why an attempt failed, from what Temporal keeps of it.
func reason(err error) string {
	var ours *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case errors.As(err, &ours):
		return ours.Message() + ": " + clip(ours.Type())
	case errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT:
		return "the worker does not answer any more"
	case errors.As(err, &late):
		return "the attempt took too long"
	case err == nil:
		return ""
	}
	return clip(err.Error())
}

// A Progress is how far a job is.
type Progress struct {
	State       string // waiting (for a worker), running, cancelling, done, failed (given up), cancelled or timedout
	Running     bool   // a worker has it
	Attempt     int    // from 1; 0 if the job has ended
	Details     []byte // what an attempt reported last, with beat
	LastFailure string // of the attempt before, if there was one
}

// states are the words for how a job ended.
var states = map[enumspb.WorkflowExecutionStatus]string{
	enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "done",
	enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   "cancelled",
	enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: "cancelled",
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timedout",
}

// Progress returns how far a job is. It fails with an [ErrUnknown] if there is none.
func (e *Engine) Progress(ctx context.Context, name string) (Progress, error) {
	if err := checkName(name); err != nil {
		return Progress{}, err
	}
	found, err := e.client.DescribeWorkflowExecution(ctx, name, "")
	if err != nil {
		return Progress{}, e.failed("looking at", name, err)
	}
	if state, ended := states[found.GetWorkflowExecutionInfo().GetStatus()]; ended {
		return Progress{State: state}, nil
	}
	pending := found.GetPendingActivities()
	if len(pending) == 0 {
		return Progress{State: "waiting", Attempt: 1}, nil
	}
	return progress(pending[0]), nil
}

func progress(a *workflowpb.PendingActivityInfo) Progress {
	p := Progress{State: "waiting", Attempt: int(a.GetAttempt())}
	switch a.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_STARTED:
		p.State, p.Running = "running", true
	case enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
		p.State, p.Running = "cancelling", true
	}
	if details := a.GetHeartbeatDetails().GetPayloads(); len(details) > 0 {
		p.Details = details[0].GetData()
	}
	if failure := a.GetLastFailure(); failure != nil {
		p.LastFailure = reason(temporal.GetDefaultFailureConverter().FailureToError(failure))
	}
	return p
}

// isTransient reports whether an error of the server or of the way to it is expected to go away.
func isTransient(err error) bool {
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled, codes.Aborted, codes.Internal, codes.Unknown:
		return true
	}
	return false
}

func isUnauthenticated(err error) bool {
	return serviceerror.ToStatus(err).Code() == codes.Unauthenticated
}

// isHandshake reports whether a connection was made and not understood: gRPC says so in words only.
func isHandshake(err error) bool {
	text := err.Error()
	return strings.Contains(text, "handshake") || strings.Contains(text, "server preface") || strings.Contains(text, "tls:")
}
