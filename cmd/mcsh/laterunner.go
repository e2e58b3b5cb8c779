package main

import (
	"context"
	"io"

	"github.com/mcsh-dev/mcsh/servers/shell"
)

// A lateRunner opens a runner with the first command, and again after a failure and after Close.
type lateRunner struct {
	open   func(context.Context) (shell.Runner, error)
	turn   chan struct{} // holds one element while somebody opens or closes: a wait for it can end
	runner shell.Runner  // nil before; for the holder of the turn
}

func newLateRunner(open func(context.Context) (shell.Runner, error)) *lateRunner {
	return &lateRunner{open: open, turn: make(chan struct{}, 1)}
}

// Run implements [shell.Runner].
func (r *lateRunner) Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (int, error) {
	runner, err := r.opened(ctx)
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case err != nil:
		return -1, err
	}
	return runner.Run(ctx, argv, env, stdout, stderr)
}

func (r *lateRunner) opened(ctx context.Context) (shell.Runner, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if r.runner != nil {
		return r.runner, nil
	}
	runner, err := r.open(ctx)
	if err == nil {
		r.runner = runner
	}
	return runner, err
}

// Close implements [shell.Runner].
func (r *lateRunner) Close() error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	runner := r.runner
	if r.runner = nil; runner == nil {
		return nil
	}
	return runner.Close()
}
