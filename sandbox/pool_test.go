package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A scripted driver has workers in this process: they say what the test wants and run no program.
type scripted struct {
	hello wire.Hello
	run   wire.Runner

	mu     sync.Mutex
	opened int
	last   io.Closer // the worker's end of what was opened last
	down   error     // why none can be opened
	frozen int       // workers yet to be opened that say hello and then hang
	served sync.WaitGroup
}

func (d *scripted) Open(context.Context) (sandbox.Worker, error) {
	gateway, worker := net.Pipe()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down != nil {
		return nil, d.down
	}
	d.opened++
	d.last = worker
	if d.frozen > 0 {
		d.frozen--
		worker = deaf{worker}
	}
	d.served.Go(func() { _ = wire.Serve(context.Background(), worker, d.hello, wire.Host{Run: d.run}) })
	return pipeEnd{gateway}, nil
}

// pipeEnd is a worker without a container.
type pipeEnd struct{ net.Conn }

func (pipeEnd) Replace() sandbox.Worker { return nil }

func (d *scripted) Probe(ctx context.Context) (sandbox.Report, error) {
	rwc, err := d.Open(ctx)
	if err != nil {
		return sandbox.Report{}, err
	}
	return sandbox.Audit(ctx, "scripted", rwc)
}

func (d *scripted) Close() error { d.served.Wait(); return nil }

// good is a worker that has jq and sort, and lacks gawk.
func good(run wire.Runner) *scripted {
	return &scripted{run: run, hello: wire.Hello{
		Profile: wire.Dynamic, Landlock: 7, Seccomp: true, NoNewPrivs: true,
		Programs: []wire.Found{{Name: "jq"}, {Name: "sort", Path: "/usr/bin/sort"}, {Name: "awk", Refusal: "gawk is not installed"}, {Name: "sed", Path: "/bin/sed"}},
	}}
}

// versions answers --version, accepts every script, and passes everything else to next.
func versions(next wire.Runner) wire.Runner {
	texts := map[string]string{"sort": "sort (GNU coreutils) 9.1\n", "shuf": "shuf (GNU coreutils) 9.1\n", "sed": "sed, 1990 vintage\n"}
	return func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		if argv := c.Commands[0].Argv; len(argv) == 2 && argv[1] == "--version" {
			_, _ = io.WriteString(s, texts[c.Commands[0].Name])
			return wire.Outcome{Usage: []wire.Usage{{}}}
		}
		if check := c.Commands[0].Check; check != nil && check.Script {
			_, _ = io.WriteString(s, "{}")
			return wire.Outcome{Usage: []wire.Usage{{}}}
		}
		return next(ctx, s, c)
	}
}

func newPool(t *testing.T, d *scripted, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	o.Driver = d
	p, err := sandbox.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestAuditRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*wire.Hello)
		want string
	}{
		{"no filters", func(h *wire.Hello) { h.Seccomp = false }, "seccomp"},
		{"no no_new_privs", func(h *wire.Hello) { h.NoNewPrivs = false }, "no_new_privs"},
		{"a lie", func(h *wire.Hello) { h.Landlock = 0 }, "without Landlock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := good(versions(nil))
			test.edit(&d.hello)
			if _, err := sandbox.New(t.Context(), sandbox.Options{Driver: d}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestAvailability(t *testing.T) {
	p := newPool(t, good(versions(nil)), sandbox.Options{})
	want := []sandbox.Availability{
		{Name: "jq"},
		{Name: "sort", Version: "sort (GNU coreutils) 9.1", Package: "coreutils"},
		{Name: "awk", Package: "gawk", Refusal: "gawk is not installed"},
		{Name: "sed", Version: "sed, 1990 vintage", Package: "sed", Refusal: "this sed is another implementation (sed, 1990 vintage)"},
	}
	if diff := cmp.Diff(want, p.Report().Programs); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	for _, test := range []struct{ name, arg, msg, hint string }{
		{"awk", "{print}", "gawk is not installed", "package gawk"},
		{"sed", "s/a/b/", "another implementation", "package sed"},
		{"awk", "-f", "gawk is not installed", "package gawk"},
		{"grep", "x", "not among the commands", "jq, sort"},
	} {
		var e *stages.Error
		_, err := p.Plan("somebody", "", "").Check(t.Context(), stages.Command{Name: test.name, Args: []string{test.arg}})
		if !errors.As(err, &e) || e.Code != stages.DisallowedCommand || !strings.Contains(e.Msg, test.msg) || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%s: got %+v, want %s with %q and %q", test.name, err, stages.DisallowedCommand, test.msg, test.hint)
		}
	}
}

// filter returns a jq filter of a worker whose chains do what run does.
func filter(t *testing.T, run wire.Runner) stages.Filter {
	t.Helper()
	p := newPool(t, good(versions(run)), sandbox.Options{Warm: -1})
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Prepare([]stages.Command{{Name: "jq", Args: []string{"."}}, {Name: "sort"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestExplain(t *testing.T) {
	long := strings.Repeat("line of complaint\n", 1000)
	for _, test := range []struct {
		failure wire.Failure
		code    stages.Code
		msg     string
	}{
		{wire.Failure{Command: 1, Reason: wire.Exit, Status: 2, Stderr: "oops\n"}, stages.CommandFailed, "sort exited with status 2: oops"},
		{wire.Failure{Reason: wire.Exit, Status: 5}, stages.CommandFailed, "jq exited with status 5"},
		{wire.Failure{Reason: wire.Signal, Signal: "aborted"}, stages.CommandFailed, "jq was ended by a signal (aborted)"},
		{wire.Failure{Reason: wire.Refused, Detail: "no room"}, stages.CommandFailed, "jq could not be started: no room"},
		{wire.Failure{Reason: wire.Unreadable, Detail: "the file may not be read"}, stages.CommandFailed, "jq: the file may not be read"},
		{wire.Failure{Reason: wire.NoWorkspace, Detail: "the workspace may not be read"}, stages.CommandFailed, "jq: the workspace may not be read"},
		{wire.Failure{Reason: wire.MemoryLimit, Limit: 512 << 20, Stderr: "goroutine 1"}, stages.LimitExceeded, "jq used more than 512 MiB of memory, the limit of one command"},
		{wire.Failure{Command: 1, Reason: wire.DiskLimit, Limit: 1 << 30}, stages.LimitExceeded, "sort needed more than 1 GiB on disk, the limit of one command, or the disk is full"},
		{wire.Failure{Reason: wire.MemoryLimit, Limit: 1 << 30, Worker: true}, stages.LimitExceeded, "the commands of this run together used more than 1 GiB of memory, the limit of one run; jq used most of it"},
		{wire.Failure{Command: 1, Reason: wire.DiskLimit, Limit: 1 << 30, Worker: true}, stages.LimitExceeded, "the commands of this run together needed more than 1 GiB on disk, the limit of one run; sort needed most of it"},
		{wire.Failure{Command: 1, Reason: wire.FileLimit, Limit: 4096, Worker: true}, stages.LimitExceeded, "the commands of this run together made more than 4096 files on disk, the limit of one run; sort made most of them"},
		{wire.Failure{Command: 1, Reason: wire.ProcessLimit, Limit: 512, Worker: true}, stages.LimitExceeded, "sort was not started: 512 commands of this run are at work, the limit of one run"},
		{wire.Failure{Reason: wire.CPULimit}, stages.LimitExceeded, "jq used more processor time than its \"timeout\" of 30s"},
		{wire.Failure{Reason: wire.Timeout}, stages.Timeout, "jq was still busy after 30s, its \"timeout\" (limit command; waiting for input or for the reader does not count), and was ended"},
		{wire.Failure{Command: 7, Reason: wire.Exit}, stages.Internal, "the sandbox worker that ran this stage is gone (sandbox_lost): it reports \"exit\" of command 7"},
		{wire.Failure{Reason: "boredom"}, stages.Internal, "the sandbox worker that ran this stage is gone (sandbox_lost): it reports \"boredom\" of command 0"},
		{wire.Failure{Reason: wire.Exit, Status: 1, Stderr: long}, stages.CommandFailed, "jq exited with status 1: line of"},
	} {
		f := filter(t, func(context.Context, *wire.Stream, wire.Chain) wire.Outcome {
			test.failure.Sample = []byte("sample")
			return wire.Outcome{Failure: &test.failure}
		})
		err := f(t.Context(), strings.NewReader(""), io.Discard)
		var e *stages.Error
		if !errors.As(err, &e) {
			t.Fatalf("%+v: got %v", test.failure, err)
		}
		if got := e.Msg; e.Code != test.code || got != test.msg && (test.failure.Stderr != long || !strings.HasPrefix(got, test.msg) || len(got) > 2200) {
			t.Errorf("got %s: %q\nwant %s: %q", e.Code, got, test.code, test.msg)
		}
	}
}

// TestLyingWorker has a worker that reports more commands than it was given.
func TestLyingWorker(t *testing.T) {
	p := newPool(t, good(versions(func(context.Context, *wire.Stream, wire.Chain) wire.Outcome {
		return wire.Outcome{Usage: make([]wire.Usage, 3)}
	})), sandbox.Options{Warm: -1})
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	chain := []stages.Command{{Name: "jq", Args: []string{"."}}, {Name: "sort"}}
	f, err := s.Prepare(chain, func(i int, _ stages.Usage) { t.Errorf("it got what command %d used", i) })
	if err != nil {
		t.Fatal(err)
	}
	var e *stages.Error
	if err := f(t.Context(), strings.NewReader(""), io.Discard); !errors.As(err, &e) || e.Code != stages.Internal || !strings.Contains(e.Msg, "sandbox_lost") {
		t.Errorf("got %v, want that the worker is lost", err)
	}
}

// TestWordyWorker: what a worker says of a failure is quoted, but not at any length.
func TestWordyWorker(t *testing.T) {
	wordy := strings.Repeat("word ", 100_000)
	for _, failure := range []wire.Failure{
		{Reason: wire.Refused, Detail: wordy},
		{Reason: wire.Signal, Signal: wordy, Stderr: wordy},
		{Reason: wire.Reason(wordy)},
	} {
		f := filter(t, func(context.Context, *wire.Stream, wire.Chain) wire.Outcome { return wire.Outcome{Failure: &failure} })
		var e *stages.Error
		if err := f(t.Context(), strings.NewReader(""), io.Discard); !errors.As(err, &e) || !strings.Contains(e.Msg, "word word") || len(e.Msg) > 5000 {
			t.Errorf("%.20s: got an error of %d bytes, want the beginning of what it said", failure.Reason, len(err.Error()))
		}
	}
}

// TestStuckAudit: a worker that does not answer when it is audited keeps nobody waiting for ever.
func TestStuckAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := good(func(ctx context.Context, _ *wire.Stream, _ wire.Chain) wire.Outcome {
			<-ctx.Done()
			return wire.Outcome{}
		})
		if _, err := sandbox.New(t.Context(), sandbox.Options{Driver: d}); err == nil || !strings.Contains(err.Error(), "has not answered") {
			t.Errorf("got %v, want that it has not answered", err)
		}
	})
}

// TestLargestChain: what a check allows can be prepared, as often as a pipeline may have it.
func TestLargestChain(t *testing.T) {
	p := newPool(t, good(versions(nil)), sandbox.Options{Warm: -1})
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	largest := stages.Command{Name: "jq"}
	for n := parttest.Times(12_536, 64<<10); n > 0; n -= 1000 { // control characters take six bytes each
		largest.Args = []string{`"` + strings.Repeat("\x01", n) + `"`}
		if _, err = p.Plan("somebody", "", "").Check(t.Context(), largest); err == nil {
			break
		}
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.DisallowedArgument {
			t.Fatalf("got %v, want %s", err, stages.DisallowedArgument)
		}
	}
	if n := len(largest.Args[0]); n < 10_000 || n > wire.MaxCommand/6 {
		t.Errorf("the largest argument has %d characters", n)
	}
	chain := make([]stages.Command, wire.MaxCommands)
	for i := range chain {
		chain[i] = largest
	}
	if _, err := s.Prepare(chain, nil); err != nil {
		t.Errorf("preparing the largest chain: %v", err)
	}
	var e *stages.Error
	if _, err := s.Prepare(append(chain, largest), nil); !errors.As(err, &e) || e.Code != stages.LimitExceeded {
		t.Errorf("got %v, want %s", err, stages.LimitExceeded)
	}
}

func TestEmptyChain(t *testing.T) {
	s, err := newPool(t, good(versions(nil)), sandbox.Options{Warm: -1}).Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prepare(nil, nil); err == nil {
		t.Error("a chain of no commands was prepared")
	}
}

// TestDeadWorker has a worker that neither answers nor dies.
func TestDeadWorker(t *testing.T) {
	release := make(chan struct{})
	f := filter(t, func(_ context.Context, s *wire.Stream, _ wire.Chain) wire.Outcome {
		_, _ = s.Write([]byte("x"))
		<-release
		return wire.Outcome{}
	})
	t.Cleanup(func() { close(release) }) // before the pool closes
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	err := f(ctx, strings.NewReader(""), writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
	var e *stages.Error
	if !errors.As(err, &e) || e.Code != stages.Cancelled {
		t.Errorf("got %v, want %s", err, stages.Cancelled)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("it took %s to give the worker up", d)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestEchoThroughPool(t *testing.T) {
	f := filter(t, func(_ context.Context, s *wire.Stream, _ wire.Chain) wire.Outcome {
		_, _ = io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{s})
		return wire.Outcome{}
	})
	data := bytes.Repeat([]byte("0123456789"), 1<<19)
	var out bytes.Buffer
	if err := f(t.Context(), bytes.NewReader(data), &out); err != nil || !bytes.Equal(out.Bytes(), data) {
		t.Errorf("got %d bytes, %v, want %d", out.Len(), err, len(data))
	}
}

// TestWarm looks at how many workers are started for what.
func TestWarm(t *testing.T) {
	d := good(versions(nil))
	p := newPool(t, d, sandbox.Options{Warm: 2})
	opened := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.opened
	}
	wait := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); opened() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d workers were started, want %d", opened(), n)
			}
		}
	}
	wait(3) // one for the probe, two that wait
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wait(4) // one in its place
}

// deaf is a connection whose reader gets nothing of what comes.
type deaf struct{ net.Conn }

func (d deaf) Read([]byte) (int, error) {
	if _, err := io.Copy(io.Discard, d.Conn); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// TestFrozen: workers that hang after their hello are given up, and the next one serves.
func TestFrozen(t *testing.T) {
	for _, test := range []struct {
		frozen int
		serves bool
	}{{3, true}, {4, false}} {
		synctest.Test(t, func(t *testing.T) {
			d := good(versions(nil))
			p := newPool(t, d, sandbox.Options{Warm: -1})
			d.mu.Lock()
			d.frozen = test.frozen
			d.mu.Unlock()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s, err := p.Open(ctx, "somebody")
			if (err == nil) != test.serves || err != nil && !strings.Contains(err.Error(), "does not answer") {
				t.Errorf("%d are frozen: got %v", test.frozen, err)
			}
			if err == nil {
				_ = s.Close()
			}
			p.Close()
		})
	}
}

// TestInputNotKept: the error of an input that the worker did not keep.
func TestInputNotKept(t *testing.T) {
	for reason, want := range map[wire.Reason]struct {
		code stages.Code
		msg  string
	}{
		wire.DiskLimit: {stages.LimitExceeded, "the named inputs of the run, here @users, need more than 1 GiB on disk"},
		wire.Refused:   {stages.Internal, "the input @users could not be kept: refused no room"},
	} {
		d := good(versions(nil))
		run := d.run
		d.run = func(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
			in := c.Keep
			if in == nil {
				return run(ctx, s, c)
			}
			if in.Name != "users" || in.Set != 7 || in.Disk != sandbox.Disk {
				t.Errorf("got the input %+v", in)
			}
			_ = s.StopReading()
			return wire.Outcome{Failure: &wire.Failure{Reason: reason, Detail: "no room"}}
		}
		s, err := newPool(t, d, sandbox.Options{Warm: -1}).Open(t.Context(), "somebody")
		if err != nil {
			t.Fatal(err)
		}
		err = s.Keep(t.Context(), 7, "users", strings.NewReader("x"))
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != want.code || !strings.Contains(e.Msg, want.msg) || e.Hint == "" {
			t.Errorf("%s: got %v, want %s: %s, and a hint", reason, err, want.code, want.msg)
		}
	}
}

// A pool says how busy it is while runs hold workers and wait for them.
func TestLoad(t *testing.T) {
	p := newPool(t, good(versions(nil)), sandbox.Options{Max: 1, Warm: -1})
	first, err := p.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan stages.Session, 1)
	go func() {
		s, err := p.Open(t.Context(), "b")
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	wantLoad(t, p, sandbox.Load{InUse: 1, Queued: 1, Max: 1})
	first.Close()
	second := <-opened
	wantLoad(t, p, sandbox.Load{InUse: 1, Max: 1})
	second.Close()
	wantLoad(t, p, sandbox.Load{Max: 1})
}

// wantLoad waits until a pool is that busy.
func wantLoad(t *testing.T, p *sandbox.Pool, want sandbox.Load) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := p.Load()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the load is %+v, want %+v", got, want)
		}
	}
}
