package cli

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/mcsh-dev/mcsh/servers/shell"
)

// A countedRunner counts the calls of Close.
type countedRunner struct{ closed int }

func (*countedRunner) Run(context.Context, []string, []string, io.Writer, io.Writer) (int, error) {
	return 7, nil
}

func (r *countedRunner) Close() error {
	r.closed++
	return nil
}

// TestLateRunner: a call that waits for another one to connect ends when it is cancelled, and Close makes the next call connect
// again.
func TestLateRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connected := make(chan struct{})
		opens, made := 0, &countedRunner{}
		r := newLateRunner(func(context.Context) (shell.Runner, error) {
			opens++
			<-connected
			return made, nil
		})
		run := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				code, err := r.Run(ctx, nil, nil, nil, nil)
				if err == nil && code != 7 {
					err = errors.New("another runner")
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		first := run(t.Context())
		reason := errors.New("enough")
		ctx, stop := context.WithCancelCause(t.Context())
		second := run(ctx)
		stop(reason)
		synctest.Wait()
		select {
		case err := <-second:
			if !errors.Is(err, reason) {
				t.Errorf("the waiting call got %v", err)
			}
		default:
			t.Error("a cancelled call waits for the connection of another one")
		}
		close(connected)
		if err := <-first; err != nil {
			t.Error(err)
		}
		for range 2 { // the second has nothing to close
			if err := r.Close(); err != nil || made.closed != 1 {
				t.Errorf("closed %d times, %v, want once", made.closed, err)
			}
		}
		if err := <-run(t.Context()); err != nil || opens != 2 {
			t.Errorf("after Close: %v, and it was opened %d times, want twice", err, opens)
		}
	})
}
