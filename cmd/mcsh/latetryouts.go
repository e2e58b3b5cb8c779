package main

import (
	"context"
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

// A lateTryouts begins when a command that was checked is to be tried: the backend has started then.
type lateTryouts struct {
	late   *lateSandbox
	caller string

	mu    sync.Mutex
	begun stages.Tryouts
}

// TryOut implements [stages.Tryouts].
func (t *lateTryouts) TryOut(ctx context.Context, c stages.Command) error {
	open, err := t.late.get(ctx)
	if err != nil {
		return noCommands(err)
	}
	t.mu.Lock()
	if t.begun == nil {
		t.begun = open.pool.Tryouts(t.caller)
	}
	begun := t.begun
	t.mu.Unlock()
	return begun.TryOut(ctx, c)
}

// Close implements [stages.Tryouts].
func (t *lateTryouts) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == nil {
		return nil
	}
	return t.begun.Close()
}
