package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names in Temporal's histories. A job that has begun goes on with the code of its workflow: code that orders other steps needs
// another name, beside this one, until no job of this one runs.
const (
	workflowName = "mcsh-job-1"
	activityName = "do"
)

// deadAfter is how long a worker may be silent before its job goes to another one.
const deadAfter = 10 * time.Second

// job is the workflow: one activity.
func job(ctx workflow.Context, attempts int32) error {
	limit := workflow.GetInfo(ctx).WorkflowExecutionTimeout
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit,
		HeartbeatTimeout:    deadAfter,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    time.Second,
			BackoffCoefficient: 1, // a job with many attempts has them because it takes long
			MaximumAttempts:    attempts,
		},
	}), activityName).Get(ctx, nil)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // an attempt that fails after a cancel is not tried again
	}
	return err
}

// Start starts a job, which may take as long as limit with all its attempts. It does nothing if there is a job with this name,
// which runs or has ended; Temporal forgets a job that has ended after the retention of the namespace.
func (e *Engine) Start(ctx context.Context, name string, limit time.Duration) error {
	if err := checkName(name); err != nil {
		return err
	}
	if limit < time.Second {
		return fmt.Errorf("starting job %s: the limit %s is less than a second", name, limit)
	}
	_, err := e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       name,
		TaskQueue:                e.o.Queue,
		WorkflowExecutionTimeout: limit,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflowName, int32(e.o.Attempts))
	return e.failed("starting", name, err)
}

// Cancel cancels a job: the context of its attempt ends within a second, and the job when the attempt has returned. A job that
// has ended stays as it is.
func (e *Engine) Cancel(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := e.client.CancelWorkflow(ctx, name, "")
	if isNotFound(err) { // the job has ended, or there is none
		_, err = e.client.DescribeWorkflowExecution(ctx, name, "")
	}
	return e.failed("cancelling", name, err)
}

// failed says which request for which job failed.
func (e *Engine) failed(doing, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case isNotFound(err):
		return fmt.Errorf("%s job %s: %w", doing, name, ErrUnknown)
	}
	return fmt.Errorf("%s job %s: temporal at %s: %w", doing, name, e.o.Address, err)
}

func isNotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}
