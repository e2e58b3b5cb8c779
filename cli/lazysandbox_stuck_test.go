package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// stuckSandbox is one whose backend is starting, and does not heed its context until release is closed.
func stuckSandbox(t *testing.T) (l *lazySandbox, release chan struct{}, end context.CancelFunc) {
	t.Helper()
	release = make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	l = &lazySandbox{ended: ctx.Done(), end: end, start: func() (*activeBackend, error) {
		<-release
		return nil, errors.New("the engine is down")
	}}
	return l, release, end
}

// A backend that never finishes its start blocks neither callers nor the end of the process.
func TestLazySandboxStuck(t *testing.T) {
	jq := stages.Command{Name: "jq"}
	for name, c := range map[string]struct {
		do   func(l *lazySandbox, end context.CancelFunc) error
		want string
		took time.Duration
	}{
		"a caller who leaves": {func(l *lazySandbox, _ context.CancelFunc) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := l.Plan("", "", "").Open(ctx)
			return err
		}, "the sandbox is still starting", time.Second},
		"a check": {func(l *lazySandbox, _ context.CancelFunc) error { return checkIn(l, jq) }, "it has taken more than 30s", startWait},
		"a check when the process gets a signal": {func(l *lazySandbox, end context.CancelFunc) error {
			time.AfterFunc(time.Second, end)
			return checkIn(l, jq)
		}, "the sandbox is closed", time.Second},
		"what was used": {func(l *lazySandbox, _ context.CancelFunc) error {
			active, err := l.state()
			return fmt.Errorf("active %v, %v", active, err)
		}, "active <nil>, <nil>", 0},
		"the end of the process": {func(l *lazySandbox, _ context.CancelFunc) error { return l.Close() }, "its backend was starting", closeWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, release, end := stuckSandbox(t)
				defer close(release)
				go func() { _, _ = l.Describe() }() // it begins the start
				synctest.Wait()
				begun := time.Now()
				err := c.do(l, end)
				if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), c.want) || took != c.took {
					t.Errorf("got %v after %v, want %q after %v", err, took, c.want, c.took)
				}
				end()
			})
		})
	}
}

// Callers share one start of the backend, and one that gives up does not end it for the others.
func TestLazySandboxShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release, end := stuckSandbox(t)
		defer end()
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { errs <- checkIn(l, stages.Command{Name: "jq"}) }()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Plan("", "", "").Open(ctx); err == nil {
			t.Error("who has left got a session")
		}
		close(release)
		for range cap(errs) {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "the engine is down") {
				t.Errorf("got %v", err)
			}
		}
	})
}

func checkIn(l *lazySandbox, c stages.Command) error {
	_, err := l.Plan("", "", "").Check(context.Background(), c)
	return err
}
