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

// closeWait is how long the end of the process waits for a backend that is starting. One that does not heed its context
// is left to the end: workers and containers notice that.
const closeWait = 5 * time.Second

// A lateSandbox starts its backend when the first command asks for it: many pipelines have none, and the audit of a
// backend takes longer than they do. Where that fails, whoever asks after a pause has it tried again.
type lateSandbox struct {
	start func() (*opening, error)
	ended <-chan struct{}  // closed when nothing is to be started any more; nil: never
	end   func()           // ends a start that is under way; may be nil
	now   func() time.Time // time.Now if nil

	mu       sync.Mutex // guards what follows
	starting *start     // that is under way
	open     *opening
	err      error         // why it is not open
	pause    time.Duration // after the last failure
	again    time.Time     // not before
	closed   bool
}

// A start is one attempt to start the backend.
type start struct {
	done chan struct{} // closed when it is decided; what follows is set then
	open *opening
	err  error
}

var errSandboxClosed = errors.New("the sandbox is closed")

// get returns what commands run in, or why there is nothing. Whoever leaves does not end the start: others wait too.
func (l *lateSandbox) get(ctx context.Context) (*opening, error) {
	l.mu.Lock()
	s := l.starting
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, errSandboxClosed
	case l.open != nil:
		defer l.mu.Unlock()
		return l.open, nil
	case s == nil && l.err != nil && l.time().Before(l.again):
		defer l.mu.Unlock()
		return nil, l.err
	case s == nil:
		s = &start{done: make(chan struct{})}
		l.starting = s
		go l.try(s)
	}
	l.mu.Unlock()
	select {
	case <-s.done:
		return s.open, s.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the sandbox is still starting: %w", context.Cause(ctx))
	case <-l.ended:
		return nil, errSandboxClosed
	}
}

// soon is get for those who cannot leave.
func (l *lateSandbox) soon() (*opening, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startWait, fmt.Errorf("it has taken more than %v; try again later", startWait))
	defer cancel()
	return l.get(ctx)
}

// try starts the backend.
func (l *lateSandbox) try(s *start) {
	defer close(s.done)
	s.open, s.err = l.start()
	if l.keep(s) && s.open != nil {
		_ = s.open.pool.Close() // nobody is there who could be told
		s.open, s.err = nil, errSandboxClosed
	}
}

// keep remembers what has become of a start, and reports whether it came too late.
func (l *lateSandbox) keep(s *start) (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting = nil
	if l.closed {
		return true
	}
	if l.open, l.err = s.open, s.err; l.err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.again = l.time().Add(l.pause)
	}
	return false
}

func (l *lateSandbox) time() time.Time {
	if l.now == nil {
		return time.Now()
	}
	return l.now()
}

// CheckCommand implements [stages.Commands].
func (l *lateSandbox) CheckCommand(c stages.Command) (stages.Habits, error) {
	open, err := l.soon()
	if err != nil {
		return stages.Habits{}, noCommands(err)
	}
	return open.pool.CheckCommand(c)
}

// Tryouts implements [stages.Commands].
func (l *lateSandbox) Tryouts(caller string) stages.Tryouts {
	return &lateTryouts{late: l, caller: caller}
}

// Open implements [stages.Commands].
func (l *lateSandbox) Open(ctx context.Context, caller string) (stages.Session, error) {
	open, err := l.get(ctx)
	if err != nil {
		return nil, noCommands(err)
	}
	return open.pool.Open(ctx, caller)
}

// Describe says what commands run in, or why they do not.
func (l *lateSandbox) Describe() (sandbox.Report, error) { return described(l.soon()) }

// describe is Describe for those who wait until ctx is done.
func (l *lateSandbox) describe(ctx context.Context) (sandbox.Report, error) {
	return described(l.get(ctx))
}

func described(open *opening, err error) (sandbox.Report, error) {
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
	l.closed = true
	open, s := l.open, l.starting
	l.mu.Unlock()
	if l.end != nil {
		l.end()
	}
	switch {
	case open != nil:
		return open.pool.Close()
	case s == nil:
		return nil
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-s.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("closing the sandbox: its backend was starting, and has not stopped within %v", closeWait)
	}
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
