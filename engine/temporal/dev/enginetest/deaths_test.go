package enginetest

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/engine/temporal"
)

// TestWorkerStops: a worker that stops hands its job to another one at once, whatever its attempt returns, and takes no other.
func TestWorkerStops(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	began := make(chan struct{})
	stop := working(t, e, 3, func(ctx context.Context, _ string, _ func([]byte)) error {
		close(began)
		<-ctx.Done()
		return nil
	})
	receive(t, began, "first attempt")
	other := dial(t, temporal.Options{})
	moved := make(chan time.Time, 1)
	release := make(chan struct{})
	working(t, other, 3, func(context.Context, string, func([]byte)) error {
		moved <- time.Now()
		<-release
		return nil
	})
	stopped := time.Now()
	stop()
	t.Logf("the worker stopped in %s", time.Since(stopped))
	took := receive(t, moved, "second attempt").Sub(stopped)
	t.Logf("the job moved in %s", took)
	if took > 5*time.Second { // the death of a worker is noticed after 10 s
		t.Errorf("the job moved after %s", took)
	}
	p := until(t, e, name, func(p temporal.Progress) bool { return p.Running })
	if p.Attempt != 2 || p.LastFailure != "the attempt was stopped: stopped" {
		t.Errorf("got %+v", p)
	}
	close(release)
	if err := wait(t, e, name); err != nil {
		t.Error(err)
	}
}

// TestWorkerKilled: the job of a worker that was killed is done again when the worker has been silent for ten seconds.
func TestWorkerKilled(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, 5*time.Minute)
	dying := worker(t, shared.address, t.Name(), name)
	until(t, e, name, func(p temporal.Progress) bool { return p.Running && p.Attempt == 1 })
	if err := dying.end(syscall.SIGKILL); err == nil {
		t.Fatal("the worker ended well")
	}
	killed := time.Now()
	release := make(chan struct{})
	again := make(chan time.Time, 1)
	working(t, e, 1, func(context.Context, string, func([]byte)) error {
		again <- time.Now()
		<-release
		return nil
	})
	took := receive(t, again, "second attempt").Sub(killed)
	t.Logf("the job was begun again after %s", took)
	if took > 15*time.Second {
		t.Errorf("the job was begun again after %s", took)
	}
	p := until(t, e, name, func(p temporal.Progress) bool { return p.Running })
	if p.Attempt != 2 || p.LastFailure != "the worker does not answer any more" {
		t.Errorf("got %+v", p)
	}
	close(release)
	if err := wait(t, e, name); err != nil {
		t.Error(err)
	}
}

// TestWorkerEnds: a worker process that is asked to end does so well, and leaves the job to others.
func TestWorkerEnds(t *testing.T) {
	e := dial(t, temporal.Options{})
	name := start(t, e, time.Minute)
	if err := worker(t, shared.address, t.Name(), name).end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	working(t, e, 1, func(context.Context, string, func([]byte)) error { return nil })
	if err := wait(t, e, name); err != nil {
		t.Error(err)
	}
}

// TestServerKilled: a server that is killed and started again on its file goes on; who waits does not notice, and the attempt
// that ran in the meantime counts.
func TestServerKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.db")
	first, err := serve("--listen", "127.0.0.1:0", "--db", file)
	if err != nil {
		t.Fatal(err)
	}
	e := dial(t, temporal.Options{Address: first.address})
	name := start(t, e, 5*time.Minute)
	began := make(chan struct{}, 10)
	release := make(chan struct{})
	working(t, e, 1, func(context.Context, string, func([]byte)) error {
		began <- struct{}{}
		<-release
		return nil
	})
	receive(t, began, "attempt")
	waited := make(chan error, 1)
	go func() { waited <- e.Wait(t.Context(), name) }()
	if err := first.end(syscall.SIGKILL); err == nil {
		t.Fatal("the server ended well")
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := e.Wait(short, name); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("waiting for a server that is gone: %v", err)
	}
	second, err := serve("--listen", first.address, "--db", file)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	if err := receive(t, waited, "end of the job"); err != nil {
		t.Errorf("waiting across the restart: %v", err)
	}
	if err := second.end(syscall.SIGTERM); err != nil {
		t.Errorf("the server that was asked to end: %v", err)
	}
}
