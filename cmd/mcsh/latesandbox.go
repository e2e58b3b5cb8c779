package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// How long a backend that has failed is left alone: longer each time.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// A lateSandbox starts its backend when the first command asks for it: many pipelines have none, and the audit of a
// backend takes longer than they do. Where that fails, whoever asks after a pause has it tried again.
type lateSandbox struct {
	start func() (*opening, error)
	now   func() time.Time // time.Now if nil

	mu     sync.Mutex // held while the backend starts; guards what follows
	open   *opening
	err    error         // why it is not open
	pause  time.Duration // after the last failure
	again  time.Time     // not before
	closed bool
}

var errSandboxClosed = errors.New("the sandbox is closed")

// get returns what commands run in, or why there is nothing.
func (l *lateSandbox) get() (*opening, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errSandboxClosed
	case l.open != nil:
		return l.open, nil
	case l.err != nil && l.time().Before(l.again):
		return nil, l.err
	}
	if l.open, l.err = l.start(); l.err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.again = l.time().Add(l.pause)
		return nil, l.err
	}
	return l.open, nil
}

func (l *lateSandbox) time() time.Time {
	if l.now == nil {
		return time.Now()
	}
	return l.now()
}

// CheckCommand implements [stages.Commands].
func (l *lateSandbox) CheckCommand(c stages.Command) error {
	open, err := l.get()
	if err != nil {
		return noCommands(err)
	}
	return open.pool.CheckCommand(c)
}

// StopsEarly implements [stages.Commands].
func (l *lateSandbox) StopsEarly(c stages.Command) bool {
	open, err := l.get()
	return err == nil && open.pool.StopsEarly(c)
}

// Replayable implements [stages.Commands].
func (l *lateSandbox) Replayable(c stages.Command) bool {
	open, err := l.get()
	return err == nil && open.pool.Replayable(c)
}

// Tryouts implements [stages.Commands].
func (l *lateSandbox) Tryouts(caller string) stages.Tryouts {
	return &lateTryouts{late: l, caller: caller}
}

// Open implements [stages.Commands].
func (l *lateSandbox) Open(ctx context.Context, caller string) (stages.Session, error) {
	open, err := l.get()
	if err != nil {
		return nil, noCommands(err)
	}
	return open.pool.Open(ctx, caller)
}

// Describe says what commands run in, or why they do not.
func (l *lateSandbox) Describe() (sandbox.Report, error) {
	open, err := l.get()
	if err != nil {
		return sandbox.Report{}, err
	}
	return open.report(), nil
}

// used says what commands have run in; false if there was none.
func (l *lateSandbox) used() (sandbox.Report, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return sandbox.Report{}, false
	}
	return l.open.report(), true
}

func noCommands(err error) error {
	return stages.Errorf(stages.DisallowedCommand, "whoever runs this server learns more from mcsh doctor; tool and preview stages work without",
		"no command can run here: %w", err)
}

// Close ends the workers if there are any.
func (l *lateSandbox) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.open == nil {
		return nil
	}
	return l.open.pool.Close()
}

// sandboxLine says in one line what commands run in.
func sandboxLine(r sandbox.Report) string {
	return fmt.Sprintf("%s, profile %s, Landlock ABI %d, seccomp %s", r.Backend, r.Profile, r.Landlock, yesNo(r.Seccomp))
}

// usedText says in what commands have run, and why not in something stronger.
func usedText(r sandbox.Report) string {
	text := "commands ran in " + sandboxLine(r) + "\n"
	for _, note := range r.Notes {
		text += "note: " + note + "\n"
	}
	return text
}
