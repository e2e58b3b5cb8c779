package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mcsh-dev/mcsh/engine/temporal"
)

// TestOnce: a job that is started again is done once, whether it runs or has ended.
func TestOnce(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	again := func() {
		t.Helper()
		if err := e.Start(t.Context(), name, time.Hour); err != nil {
			t.Errorf("starting again: %v", err)
		}
	}
	again()
	if p, err := e.Progress(t.Context(), name); err != nil || p.State != "waiting" || p.Running {
		t.Errorf("without a worker: %+v, %v", p, err)
	}
	var times atomic.Int32
	working(t, e, 2, func(context.Context, string, func([]byte)) error {
		times.Add(1)
		return nil
	})
	if err := wait(t, e, name); err != nil {
		t.Fatal(err)
	}
	again()
	if err := wait(t, e, name); err != nil {
		t.Fatal(err)
	}
	if p, err := e.Progress(t.Context(), name); err != nil || p.State != "done" || p.Running {
		t.Errorf("at the end: %+v, %v", p, err)
	}
	if n := times.Load(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

// TestProgress: the progress of a job is seen while it runs, except progress that is too large or no JSON.
func TestProgress(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	release := make(chan struct{})
	working(t, e, 1, func(_ context.Context, _ string, beat func([]byte)) error {
		beat([]byte(`{"items":3}`))
		beat([]byte(`"` + strings.Repeat("x", 4<<10) + `"`))
		beat([]byte("no JSON"))
		<-release
		return nil
	})
	p := until(t, e, name, func(p temporal.Progress) bool { return len(p.Details) > 0 })
	if string(p.Details) != `{"items":3}` || !p.Running || p.State != "running" || p.Attempt != 1 || p.LastFailure != "" {
		t.Errorf("got %+v with details %s", p, p.Details)
	}
	close(release)
	if err := wait(t, e, name); err != nil {
		t.Error(err)
	}
}

// coded is an error with a safe word.
type coded struct{}

func (coded) Error() string   { return "upstream said hunter2" }
func (coded) JobCode() string { return "no-store" }

// TestProgressStays: what an attempt has said last stays until the next one says something else. Where the first word of an attempt has
// returned, the server has it.
func TestProgressStays(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	var attempt atomic.Int32
	release := make(chan struct{})
	working(t, e, 1, func(_ context.Context, _ string, beat func([]byte)) error {
		if attempt.Add(1) == 1 {
			beat([]byte(`{"items":1}`))
			if p, err := e.Progress(t.Context(), name); err != nil || string(p.Details) != `{"items":1}` {
				t.Errorf("after the first word: %s, %v", p.Details, err)
			}
			beat([]byte(`{"items":2}`))
			return errors.New("it fails")
		}
		<-release
		return nil
	})
	p := until(t, e, name, func(p temporal.Progress) bool { return p.Running && p.Attempt == 2 })
	if string(p.Details) != `{"items":2}` {
		t.Errorf("in the second attempt: %s", p.Details)
	}
	time.Sleep(time.Second) // the second attempt beats
	if p, err := e.Progress(t.Context(), name); err != nil || string(p.Details) != `{"items":2}` {
		t.Errorf("later: %s, %v", p.Details, err)
	}
	close(release)
	if err := wait(t, e, name); err != nil {
		t.Error(err)
	}
}

// TestFailures: errors and panics are tried again; of them a type or a word is written down, and nothing that they say.
func TestFailures(t *testing.T) {
	const secret = "hunter2"
	var log safeBuffer
	e := dial(t, temporal.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	name := start(t, e, time.Minute)
	var attempt atomic.Int32
	failing := make(chan struct{})
	working(t, e, 1, func(context.Context, string, func([]byte)) error {
		switch attempt.Add(1) {
		case 1:
			return fmt.Errorf("item %s: %w", secret, errors.New(secret))
		case 2:
			panic(secret)
		case 3:
			return fmt.Errorf("%s: %w", secret, coded{})
		}
		<-failing
		return nil
	})
	for _, want := range []struct {
		attempt int
		failure string
	}{
		{2, "the attempt failed: *errors.errorString"},
		{3, "the attempt failed: panic"},
		{4, "the attempt failed: no-store"},
	} {
		p := until(t, e, name, func(p temporal.Progress) bool { return p.Attempt == want.attempt })
		if p.LastFailure != want.failure {
			t.Errorf("attempt %d: the failure before is %q, want %q", want.attempt, p.LastFailure, want.failure)
		}
	}
	close(failing)
	if err := wait(t, e, name); err != nil {
		t.Fatal(err)
	}
	text := history(t, name)
	if !strings.Contains(text, name) {
		t.Errorf("the history does not have the name %s:\n%s", name, text)
	}
	for where, text := range map[string]string{"history": text, "log": log.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("the %s has what an error says:\n%s", where, text)
		}
	}
	if !strings.Contains(log.String(), "panicked") {
		t.Errorf("the log does not have the panic:\n%s", log.String())
	}
}

// history reads all that Temporal keeps of a job.
func history(t *testing.T, name string) string {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: shared.address, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b strings.Builder
	for events := c.GetWorkflowHistory(t.Context(), name, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(protojson.Format(event))
	}
	return b.String()
}

// TestGivenUp: a job whose attempts all fail is given up, with the reason of the last; its history holds names only.
func TestGivenUp(t *testing.T) {
	e := dial(t, temporal.Options{Attempts: 2})
	name := start(t, e, time.Minute)
	var times atomic.Int32
	working(t, e, 1, func(context.Context, string, func([]byte)) error {
		times.Add(1)
		return errors.New("hunter2")
	})
	err := wait(t, e, name)
	if !errors.Is(err, temporal.ErrGivenUp) || !strings.Contains(err.Error(), "*errors.errorString") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if p, err := e.Progress(t.Context(), name); err != nil || p.State != "failed" {
		t.Errorf("got %+v, %v", p, err)
	}
	if n := times.Load(); n != 2 {
		t.Errorf("tried %d times", n)
	}
	if text := history(t, name); strings.Contains(text, "hunter2") {
		t.Errorf("the history has what the error says:\n%s", text)
	}
}

// TestTooLong: the limit ends a job, with the context of its attempt, and a job for which there is no worker.
func TestTooLong(t *testing.T) {
	e := dial(t, temporal.Options{})
	alone := start(t, dial(t, temporal.Options{Queue: "nobody"}), 2*time.Second)
	name := start(t, e, 2*time.Second)
	ended := make(chan struct{})
	working(t, e, 1, func(ctx context.Context, _ string, _ func([]byte)) error {
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	for _, name := range []string{name, alone} {
		if err := wait(t, e, name); !errors.Is(err, temporal.ErrTooLong) {
			t.Errorf("got %v", err)
		}
		if p, err := e.Progress(t.Context(), name); err != nil || p.State != "timedout" {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	receive(t, ended, "end of the context")
}

// TestCancel: the context of an attempt ends within a second; the job when the attempt has returned, whatever it returns.
func TestCancel(t *testing.T) {
	for want, returned := range map[string]error{"nil": nil, "an error": errors.New("late")} {
		t.Run(want, func(t *testing.T) {
			e := dial(t, temporal.Options{})
			name := start(t, e, time.Minute)
			began, ended, release := make(chan struct{}), make(chan time.Time, 1), make(chan struct{})
			working(t, e, 1, func(ctx context.Context, _ string, _ func([]byte)) error {
				close(began)
				<-ctx.Done()
				ended <- time.Now()
				if cause := context.Cause(ctx); cause != context.Canceled {
					t.Errorf("the context ended with %v", cause)
				}
				<-release
				return returned
			})
			receive(t, began, "attempt")
			cancelled := time.Now()
			if err := e.Cancel(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			took := receive(t, ended, "end of the context").Sub(cancelled)
			if took > 2*time.Second { // 1 s is promised, on a machine with time for it
				t.Errorf("the context ended after %s", took)
			}
			t.Logf("the context ended after %s", took)
			if p, err := e.Progress(t.Context(), name); err != nil || p.State != "cancelling" {
				t.Errorf("while the attempt ends: %+v, %v", p, err)
			}
			close(release)
			if err := wait(t, e, name); !errors.Is(err, temporal.ErrCancelled) {
				t.Errorf("got %v", err)
			}
			if p, err := e.Progress(t.Context(), name); err != nil || p.State != "cancelled" {
				t.Errorf("got %+v, %v", p, err)
			}
			if err := e.Cancel(t.Context(), name); err != nil {
				t.Errorf("cancelling what was cancelled: %v", err)
			}
		})
	}
}

// TestCancelWaiting: a job that is cancelled before a worker has it, or between two attempts, is not done any more.
func TestCancelWaiting(t *testing.T) {
	e := dial(t, temporal.Options{})
	waiting := start(t, e, time.Minute)
	if err := e.Cancel(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	working(t, e, 1, func(_ context.Context, name string, _ func([]byte)) error {
		if name == waiting {
			t.Errorf("job %s is done", name)
		}
		return errors.New("again")
	})
	if err := wait(t, e, waiting); !errors.Is(err, temporal.ErrCancelled) {
		t.Errorf("got %v", err)
	}
	failing := start(t, e, time.Minute)
	until(t, e, failing, func(p temporal.Progress) bool { return p.Attempt > 1 })
	if err := e.Cancel(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, e, failing); !errors.Is(err, temporal.ErrCancelled) {
		t.Errorf("got %v", err)
	}
}

// TestSlots: a worker does as many jobs at a time as it has slots.
func TestSlots(t *testing.T) {
	e := dial(t, temporal.Options{})
	var names []string
	for range 5 {
		names = append(names, start(t, e, time.Minute))
	}
	var running, most atomic.Int32
	both := make(chan struct{}, 10)
	release := make(chan struct{})
	working(t, e, 2, func(context.Context, string, func([]byte)) error {
		for n := running.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		defer running.Add(-1)
		both <- struct{}{}
		<-release
		return nil
	})
	receive(t, both, "first job")
	receive(t, both, "second job")
	close(release)
	for _, name := range names {
		if err := wait(t, e, name); err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n != 2 {
		t.Errorf("%d jobs ran at a time", n)
	}
}

// TestRefused: names that are none, and numbers without a sense.
func TestRefused(t *testing.T) {
	e := dial(t, temporal.Options{})
	for _, name := range []string{"", "Job", "a/b", "a b", "ä", "a\n", strings.Repeat("a", 65)} {
		_, looking := e.Progress(t.Context(), name)
		for what, err := range map[string]error{
			"Start": e.Start(t.Context(), name, time.Minute), "Wait": e.Wait(t.Context(), name), "Progress": looking, "Cancel": e.Cancel(t.Context(), name),
		} {
			if err == nil || !strings.Contains(err.Error(), "is no name of a job") {
				t.Errorf("%s %q: got %v", what, name, err)
			}
		}
	}
	name := newName()
	_, looking := e.Progress(t.Context(), name)
	for what, err := range map[string]error{"Wait": e.Wait(t.Context(), name), "Progress": looking, "Cancel": e.Cancel(t.Context(), name)} {
		if !errors.Is(err, temporal.ErrUnknown) {
			t.Errorf("%s of no job: got %v", what, err)
		}
	}
	if err := e.Start(t.Context(), name, time.Millisecond); err == nil {
		t.Error("a limit of a millisecond is taken")
	}
	if err := e.Work(t.Context(), 0, nil); err == nil {
		t.Error("a worker without slots works")
	}
	if _, err := temporal.Dial(t.Context(), temporal.Options{Address: shared.address, Attempts: -1}); err == nil {
		t.Error("-1 attempts are taken")
	}
}

// TestWaitEnds: waiting ends with its context, and the job goes on.
func TestWaitEnds(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := e.Wait(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if p, err := e.Progress(t.Context(), name); err != nil || p.State != "waiting" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// quiet is a log of the SDK that nobody reads.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// A safeBuffer is written by several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
