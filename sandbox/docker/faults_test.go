package docker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/stages"
)

// newPool returns a pool over a driver, and checks when the test ends that nothing is left on the engine.
func newPool(t testing.TB, o docker.Options) *sandbox.Pool {
	t.Helper()
	return newPoolOf(t, o, sandbox.Options{Lasting: true})
}

// cold is a pool that starts no container before there is a run for it.
var cold = sandbox.Options{Warm: -1, Lasting: true}

func newPoolOf(t testing.TB, o docker.Options, pooled sandbox.Options) *sandbox.Pool {
	t.Helper()
	needEngine(t)
	pooled.Driver = docker.New(o)
	p, err := sandbox.New(t.Context(), pooled)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		had := volumes(ours(t))
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, had)
	})
	return p
}

func open(t testing.TB, p *sandbox.Pool, caller string) stages.Session {
	t.Helper()
	s, err := p.Open(t.Context(), caller)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func filter(t testing.TB, s stages.Session, name string, args ...string) stages.Filter {
	t.Helper()
	f, err := s.Prepare([]stages.Command{{Name: name, Args: args, Timeout: time.Minute}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// works runs a command in a new session.
func works(t testing.TB, p *sandbox.Pool, caller string) {
	t.Helper()
	s := open(t, p, caller)
	defer s.Close()
	var out bytes.Buffer
	if err := filter(t, s, "tr", "a-z", "A-Z")(t.Context(), strings.NewReader("abc"), &out); err != nil || out.String() != "ABC" {
		t.Errorf("the next run: got %q, %v", out.String(), err)
	}
}

// running runs a command that waits for input, until the test ends, and returns when it has begun.
type running struct {
	in  *io.PipeWriter
	err chan error
}

func start(t testing.TB, s stages.Session, name string, args ...string) *running {
	t.Helper()
	f := filter(t, s, name, args...)
	r, w := io.Pipe()
	run := &running{w, make(chan error, 1)}
	began := make(chan struct{})
	var once sync.Once
	go func() {
		run.err <- f(t.Context(), r, writer(func(p []byte) (int, error) { once.Do(func() { close(began) }); return len(p), nil }))
	}()
	t.Cleanup(func() { w.Close() })
	if _, err := io.WriteString(w, "hello\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-began:
	case err := <-run.err:
		t.Fatalf("it ended at once: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not begin")
	}
	return run
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// lost waits for the end of a run whose worker was taken away.
func (r *running) lost(t testing.TB) {
	t.Helper()
	select {
	case err := <-r.err:
		var e *stages.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, "sandbox_lost") || e.Hint == "" {
			t.Errorf("got %v, want sandbox_lost and a hint", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// boxOf returns the one container in which a command of this name runs, and the command's process.
func boxOf(t testing.TB, name string) (id string, pid int) {
	t.Helper()
	eventually(t, name+" runs in a container", func() bool {
		for _, c := range ours(t) {
			if pid = processIn(t, c.ID, name); pid != 0 {
				id = c.ID
				return true
			}
		}
		return false
	})
	return id, pid
}

// processIn returns a process of a container by its name, as this machine numbers it, or 0.
func processIn(t testing.TB, id, name string) int {
	t.Helper()
	top, err := api.ContainerTop(t.Context(), id, []string{"-eo", "pid,comm"})
	if err != nil {
		return 0
	}
	for _, p := range top.Processes {
		if len(p) == 2 && p[1] == name {
			n, _ := strconv.Atoi(p[0])
			return n
		}
	}
	return 0
}

// TestContainerKilled is S02: the run fails at once, the next one has another container.
func TestContainerKilled(t *testing.T) {
	p := newPool(t, options())
	r := start(t, open(t, p, "a"), "sed", "-u", "p")
	id, _ := boxOf(t, "sed")
	if err := api.ContainerKill(t.Context(), id, "KILL"); err != nil {
		t.Fatal(err)
	}
	r.lost(t)
	works(t, p, "a")
}

// TestWorkerKilled: the container of a worker that was killed is not used again.
func TestWorkerKilled(t *testing.T) {
	needLocalEngine(t)
	p := newPool(t, options())
	r := start(t, open(t, p, "a"), "sed", "-u", "p")
	id, sed := boxOf(t, "sed")
	if err := syscall.Kill(parentOf(t, sed), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.lost(t)
	works(t, p, "a")
	eventually(t, "the container is gone", func() bool { return !exists(t, id) })
}

// TestWorkerKilledWhileFed: the same where the first sign of its end is that it takes no more data.
func TestWorkerKilledWhileFed(t *testing.T) {
	needLocalEngine(t)
	p := newPool(t, options())
	r := &running{err: make(chan error, 1)}
	f := filter(t, open(t, p, "a"), "tr", "a-z", "A-Z")
	var fed atomic.Int64
	go func() {
		r.err <- f(t.Context(), reader(func(p []byte) (int, error) { fed.Add(1); return lines{}.Read(p) }), io.Discard)
	}()
	id, tr := boxOf(t, "tr")
	worker := parentOf(t, tr)
	if err := syscall.Kill(worker, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	still, last := 0, int64(0)
	eventually(t, "the pipe to the worker is full", func() bool {
		if n := fed.Load(); n != last {
			still, last = 0, n
		}
		still++
		return still > 50
	})
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.lost(t)
	eventually(t, "the container is gone", func() bool { return !exists(t, id) })
	works(t, p, "a")
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// TestWorkerStopped: a worker that does not answer is given up, and its container with it.
func TestWorkerStopped(t *testing.T) {
	needLocalEngine(t)
	p := newPool(t, options())
	s := open(t, p, "a")
	r := start(t, s, "sed", "-u", "p")
	id, sed := boxOf(t, "sed")
	if err := syscall.Kill(parentOf(t, sed), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.lost(t)
	eventually(t, "the container is gone", func() bool { return !exists(t, id) })
	works(t, p, "a")
}

// needLocalEngine skips a test that looks at processes of containers where they are not processes of this machine.
func needLocalEngine(t testing.TB) {
	t.Helper()
	needEngine(t)
	if !strings.HasPrefix(api.DaemonHost(), "unix://") || os.Getuid() != 0 {
		t.Skip("it needs root and an engine on this machine, to kill processes of containers")
	}
}

func parentOf(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

func exists(t testing.TB, id string) bool {
	t.Helper()
	_, err := api.ContainerInspect(t.Context(), id)
	return err == nil
}

// boxes are the containers that exist.
func boxes(t testing.TB) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, c := range ours(t) {
		ids[c.ID] = true
	}
	return ids
}

// TestKeptForOneCaller: runs of one caller share a container, one after the other, also where the worker of one is ended;
// another caller never gets it.
func TestKeptForOneCaller(t *testing.T) {
	needLocalEngine(t)
	p := newPoolOf(t, options(), cold)
	of := func(caller string, timeout time.Duration) (id string, worker int) {
		s := open(t, p, caller)
		f, err := s.Prepare([]stages.Command{{Name: "sed", Args: []string{"-u", "p"}, Timeout: time.Minute}, {Name: "awk", Args: []string{`{print; for (;"x" == $0;);}`}, Timeout: timeout}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- f(t.Context(), r, io.Discard) }()
		id, sed := boxOf(t, "sed")
		worker = parentOf(t, sed)
		if timeout < time.Minute {
			_, _ = io.WriteString(w, "x\n")
		}
		w.Close()
		if err := <-ended; (err == nil) != (timeout == time.Minute) {
			t.Errorf("the run of %s ended with %v", caller, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return id, worker
	}
	a, first := of("a", time.Minute)
	b, _ := of("b", time.Minute)
	again, same := of("a", 100*time.Millisecond)
	if again != a || b == a || same != first {
		t.Errorf("got %s for a, %s for b, then %s for a; the workers of a are %d and %d", a, b, again, first, same)
	}
	again, other := of("a", time.Minute)
	if again != a || other == first {
		t.Errorf("after a timeout got %s, want %s; the workers of a were %d and are %d", again, a, first, other)
	}
	if !exists(t, b) {
		t.Error("the container of b is gone")
	}
}

// TestPerRun: each run has a container of its own.
func TestPerRun(t *testing.T) {
	p := newPoolOf(t, options(), sandbox.Options{Warm: 1})
	seen := map[string]bool{}
	for range 3 {
		s := open(t, p, "a")
		r := start(t, s, "sed", "-u", "p")
		id, _ := boxOf(t, "sed")
		if seen[id] {
			t.Errorf("container %s serves again", id)
		}
		seen[id] = true
		r.in.Close()
		if err := <-r.err; err != nil {
			t.Error(err)
		}
		s.Close()
		eventually(t, "the container is gone", func() bool { return !exists(t, id) })
	}
}

// TestOutOfMemory is S03: what the kernel kills for want of memory is said to have used too much, and the next run works.
func TestOutOfMemory(t *testing.T) {
	o := options()
	o.Memory = 64 << 20 // below what one command may take
	p := newPoolOf(t, o, cold)
	s := open(t, p, "a")
	before := boxes(t)
	err := filter(t, s, "awk", `BEGIN{for(;;) x = x "0123456789012345678901234567890123456789" x}`)(t.Context(), strings.NewReader(""), io.Discard)
	var e *stages.Error
	if !errors.As(err, &e) || e.Code != stages.LimitExceeded || !strings.Contains(e.Msg, "memory") {
		t.Errorf("got %v, want that memory was used up", err)
	}
	s.Close()
	eventually(t, "the container is gone", func() bool {
		for id := range boxes(t) {
			if before[id] {
				return false
			}
		}
		return true
	})
	works(t, p, "a")
}

// TestPause: an engine that freezes a container does not freeze the gateway.
func TestPause(t *testing.T) {
	p := newPool(t, options())
	s := open(t, p, "a")
	r := start(t, s, "sed", "-u", "p")
	id, _ := boxOf(t, "sed")
	if err := api.ContainerPause(t.Context(), id); err != nil {
		t.Skipf("the engine cannot pause: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.lost(t)
	eventually(t, "the container is gone", func() bool { return !exists(t, id) })
	works(t, p, "a")
}

// TestPauseBetweenRuns: containers that an engine has frozen while they waited serve nobody, and hold nobody up.
func TestPauseBetweenRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until several containers are given up")
	}
	t.Parallel() // it waits for the engine; no other parallel test has containers of workers there
	p := newPoolOf(t, options(), sandbox.Options{Warm: parttest.Times(1, 2), Lasting: true})
	sitting := open(t, p, "a")
	start(t, sitting, "sed", "-u", "p")
	first, _ := boxOf(t, "sed")
	if err := sitting.Close(); err != nil {
		t.Fatal(err)
	}
	for id := range boxes(t) {
		if err := api.ContainerPause(t.Context(), id); err != nil {
			t.Skipf("the engine cannot pause: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := p.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the frozen containers that were tried are gone", func() bool { return !exists(t, first) })
	works(t, p, "a")
}

// TestSweep: what a gateway that is gone has left is removed, what may belong to another one is not.
func TestSweep(t *testing.T) {
	needEngine(t)
	make := func(instance string) string {
		made, err := api.ContainerCreate(t.Context(), &container.Config{
			Image: probeImage, Entrypoint: []string{docker.WorkerPath}, Labels: map[string]string{"mcsh.role": "worker", "mcsh.instance": instance},
		}, nil, nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = api.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
		})
		return made.ID
	}
	young := make("another")
	d := docker.New(options())
	if _, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !exists(t, young) {
		t.Error("a container that another gateway has just made was removed")
	}
}
