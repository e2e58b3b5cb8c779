//go:build linux

package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/sandbox/sandboxtest"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// The binaries that TestMain builds: the real worker, and one with a program that tries to break out.
var workerFile, probeFile string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// builtVariable names the directory with both binaries where there is no Go to build them with: in a container.
const builtVariable = "MCSH_TEST_WORKERS"

func run(m *testing.M) int {
	if dir := os.Getenv(sweepDir); dir != "" {
		if os.Getenv(sweepDir+"_SORT") != "" {
			sortingGateway(dir)
		} else {
			gateway(dir)
		}
		return 1
	}
	if built := os.Getenv(builtVariable); built != "" {
		workerFile, probeFile = filepath.Join(built, "mcsh-worker"), filepath.Join(built, "probe")
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "mcsh-local-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // TestNobody starts a worker that is not root
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := parttest.Build(dir, "cmd/mcsh-worker", "sandbox/sandboxtest/probe"); err != nil {
		fmt.Fprintln(os.Stderr, "building the worker:", err)
		return 1
	}
	workerFile, probeFile = filepath.Join(dir, "mcsh-worker"), filepath.Join(dir, "probe")
	return m.Run()
}

func TestContract(t *testing.T) {
	t.Parallel() // beside TestInContainers
	run := sandboxtest.Run
	if os.Getenv(builtVariable) != "" { // of TestInContainers
		run = sandboxtest.RunAgain
	}
	run(t, func() sandbox.Driver { return local.New(local.Options{Worker: []string{probeFile, "worker"}}) })
}

func TestAdded(t *testing.T) {
	sandboxtest.RunAdded(t, probeFile, func(dir, added string) sandbox.Driver {
		return local.New(local.Options{Worker: []string{probeFile, "worker"}, Workspace: dir, Added: added})
	})
}

func TestWorkspace(t *testing.T) {
	sandboxtest.RunWorkspace(t, func(dir string) sandbox.Driver {
		return local.New(local.Options{Worker: []string{probeFile, "worker"}, Workspace: dir})
	})
}

// children returns the processes whose parent is pid, and their names.
func children(t *testing.T, pid int) map[int]string {
	t.Helper()
	found := map[int]string{}
	entries, err := os.ReadDir("/proc") // a pattern would read each folder, too
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it is no process, or has ended meanwhile
		}
		// "pid (name) state ppid ...", see proc_pid_stat(5)
		head, tail, ok := strings.Cut(string(b), ") ")
		fields := strings.Fields(tail)
		if !ok || len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(pid) {
			continue
		}
		id, name, _ := strings.Cut(head, " (")
		if n, err := strconv.Atoi(id); err == nil {
			found[n] = name
		}
	}
	return found
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func newPool(t testing.TB, scratch string) *sandbox.Pool {
	t.Helper()
	d := local.New(local.Options{Worker: []string{workerFile}, Scratch: scratch})
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// sort prepares a sort and runs it on so much that it has files, without an end. The other result is how it ended.
func sort(t *testing.T, s stages.Session) (stages.Filter, <-chan error) {
	t.Helper()
	f, err := s.Prepare([]stages.Command{{Name: "sort", Timeout: time.Minute}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	failed := make(chan error, 1)
	go func() { failed <- f(t.Context(), r, io.Discard) }()
	// More than sort keeps in memory.
	if _, err := io.Copy(w, io.LimitReader(lines{}, 100<<20)); err != nil {
		t.Fatal(err)
	}
	return f, failed
}

// TestEndings kills a worker, or closes its session, while a command runs that keeps files: nothing may be left.
func TestEndings(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(worker int, s stages.Session) error
	}{
		{"worker killed", func(worker int, _ stages.Session) error { return syscall.Kill(worker, syscall.SIGKILL) }},
		{"worker stopped, session closed", func(worker int, s stages.Session) error {
			if err := syscall.Kill(worker, syscall.SIGSTOP); err != nil {
				return err
			}
			return s.Close()
		}},
		{"session closed", func(_ int, s stages.Session) error { return s.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			scratch := t.TempDir()
			p := newPool(t, scratch)
			s, err := p.Open(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, failed := sort(t, s)
			worker, command := 0, 0
			eventually(t, "sort runs", func() bool {
				for pid := range children(t, os.Getpid()) {
					for child, name := range children(t, pid) {
						if name == "sort" {
							worker, command = pid, child
						}
					}
				}
				return command != 0
			})
			if err := test.end(worker, s); err != nil {
				t.Fatal(err)
			}
			err = <-failed
			var e *stages.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, "sandbox_lost") {
				t.Errorf("got %v, want sandbox_lost", err)
			}
			eventually(t, "sort is dead", func() bool { return gone(command) })
			eventually(t, "the worker is dead", func() bool { return gone(worker) })
			eventually(t, "the scratch directory is empty", func() bool {
				left, err := os.ReadDir(scratch)
				return err == nil && len(left) == 0
			})
		})
	}
}

// TestCommandKilled: a command that somebody kills is not said to have used too much memory, and the next one works.
func TestCommandKilled(t *testing.T) {
	s, err := newPool(t, t.TempDir()).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Prepare([]stages.Command{{Name: "cut", Args: []string{"-c1"}, Timeout: time.Minute}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	failed := make(chan error, 1)
	go func() { failed <- f(t.Context(), r, io.Discard) }()
	eventually(t, "cut runs and is killed", func() bool {
		for pid := range children(t, os.Getpid()) {
			for child, name := range children(t, pid) {
				if name == "cut" {
					return syscall.Kill(child, syscall.SIGKILL) == nil
				}
			}
		}
		return false
	})
	var e *stages.Error
	if err := <-failed; !errors.As(err, &e) || e.Code != stages.CommandFailed || !strings.Contains(e.Msg, "killed") || e.Hint == "" {
		t.Errorf("got %v, want that cut was killed", err)
	}
	w.Close()
	var out strings.Builder
	if err := f(t.Context(), strings.NewReader("abc\n"), &out); err != nil || out.String() != "a\n" {
		t.Errorf("after it got %q, %v", out.String(), err)
	}
}

// lines is endless text.
type lines struct{}

var manyLines = strings.Repeat("some line of text to sort\n", 2000)

func (lines) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], manyLines)
	}
	return n, nil
}

// gone says whether a process has ended; a zombie has.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// TestWorkerSeesNothing looks at what a worker is given.
func TestWorkerSeesNothing(t *testing.T) {
	t.Setenv("MCSH_TEST_SECRET", "x")
	d := local.New(local.Options{Worker: []string{workerFile}})
	defer d.Close()
	rwc, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rwc.Close()
	client, err := wire.Dial(t.Context(), rwc)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for pid, name := range children(t, os.Getpid()) {
		if !strings.HasPrefix(name, "mcsh-worker") {
			continue
		}
		proc := fmt.Sprintf("/proc/%d/", pid)
		if env, err := os.ReadFile(proc + "environ"); err != nil || string(env) != fmt.Sprintf("GOMAXPROCS=%d\x00GODEBUG=containermaxprocs=0,updatemaxprocs=0\x00", runtime.GOMAXPROCS(0)) {
			t.Errorf("environment: got %q, %v, want the number of processors only", env, err)
		}
		if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != "/" {
			t.Errorf("working directory: got %q, %v, want /", cwd, err)
		}
		status, err := os.ReadFile(proc + "status")
		if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1") || !strings.Contains(string(status), "Seccomp:\t2") {
			t.Errorf("status: %v, want NoNewPrivs 1 and Seccomp 2 in:\n%s", err, status)
		}
		return
	}
	t.Error("no worker runs")
}

func TestRefusals(t *testing.T) {
	for name, o := range map[string]local.Options{
		"no worker":    {},
		"relative":     {Worker: []string{"mcsh-worker"}},
		"no such file": {Worker: []string{"/nonexistent/mcsh-worker"}},
		"not a worker": {Worker: []string{"/bin/true"}},
		"bad argument": {Worker: []string{workerFile, "nonsense"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := sandbox.New(t.Context(), sandbox.Options{Driver: local.New(o)}); err == nil {
				t.Error("no error")
			} else {
				t.Log(err)
			}
		})
	}
}

// TestSurveyBusy: who opens a worker while another looks for programs on this machine waits no longer than its own context.
func TestSurveyBusy(t *testing.T) {
	dir := t.TempDir()
	slow, looks := filepath.Join(dir, "slow"), filepath.Join(dir, "looks")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\n: >"+looks+"\nexec /bin/sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := local.New(local.Options{Worker: []string{slow}, Scratch: dir})
	ctx, cancel := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() { _, _ = d.Open(ctx) })
	defer first.Wait()
	defer cancel()
	for _, err := os.Stat(looks); err != nil; _, err = os.Stat(looks) {
		time.Sleep(time.Millisecond)
	}
	short, done := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer done()
	began := time.Now()
	if _, err := d.Open(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 30*time.Second {
		t.Errorf("after %v: %v, want that its time is up", time.Since(began), err)
	}
}

// TestNobody has a gateway without any privilege: the test starts itself anew as nobody.
func TestNobody(t *testing.T) {
	const setpriv = "/usr/bin/setpriv"
	if os.Getuid() == 0 {
		if _, err := os.Stat(setpriv); err != nil {
			t.Skip("it needs setpriv of util-linux")
		}
		asNobody(t, setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
		return
	}
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: local.New(local.Options{Worker: []string{workerFile}})})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if uid := p.Report().UID; uid != os.Getuid() {
		t.Errorf("the worker's uid is %d", uid)
	}
	s, err := p.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []stages.Command{{Name: "grep", Args: []string{"a"}}, {Name: "jq", Args: []string{"-R", "-r", "."}}} {
		f, err := s.Prepare([]stages.Command{c}, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		var out bytes.Buffer
		if err := f(t.Context(), strings.NewReader("abc\n"), &out); err != nil || out.String() != "abc\n" {
			t.Errorf("%s: got %q, %v", c.Name, out.String(), err)
		}
	}
}

// asNobody runs the present test once more, as a user who can read the binaries of all tests and nothing of root's.
func asNobody(t *testing.T, argv ...string) {
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(workerFile)
	file := filepath.Join(dir, "tests")
	if err := os.WriteFile(file, own, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], append(argv[1:], file, "-test.run", "^"+t.Name()+"$", "-test.v")...)
	cmd.Env, cmd.Dir = []string{builtVariable + "=" + dir}, "/"
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// TestWithoutLandlock (S18) has a kernel that lacks it: jq is served, and nothing that opens files.
func TestWithoutLandlock(t *testing.T) {
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: local.New(local.Options{Worker: []string{probeFile, "without-landlock"}})})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if r := p.Report(); r.Profile != "pure" || r.Landlock != 0 || len(r.Gaps) == 0 {
		t.Errorf("got profile %q, Landlock %d, gaps %q, want pure, 0 and a gap", r.Profile, r.Landlock, r.Gaps)
	}
	_, err = p.Plan("", "", "").Check(t.Context(), stages.Command{Name: "grep", Args: []string{"x"}})
	if err == nil || !strings.Contains(err.Error(), "Landlock") {
		t.Errorf("grep: got %v, want a refusal that names Landlock", err)
	}
	s, err := p.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Prepare([]stages.Command{{Name: "jq", Args: []string{"-c", "."}}, {Name: "jq", Args: []string{"-c", ".a"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f(t.Context(), strings.NewReader(`{"a":[1]}`), &out); err != nil || out.String() != "[1]\n" {
		t.Errorf("jq: got %q, %v", out.String(), err)
	}
}

// TestManyRuns gives one worker many chains, as for_each does: nothing may add up in it.
func TestManyRuns(t *testing.T) {
	s, err := newPool(t, "").Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	worker := 0
	for pid, name := range children(t, os.Getpid()) {
		if strings.HasPrefix(name, "mcsh-worker") {
			worker = pid
		}
	}
	chains := [][]stages.Command{
		{{Name: "tr", Args: []string{"a", "b"}}, {Name: "sort"}},
		{{Name: "jq", Args: []string{"-n", "repeat(1)"}}, {Name: "head", Args: []string{"-n1"}}},
		{{Name: "awk", Args: []string{"{exit 3}"}}, {Name: "sort"}},
		{{Name: "sleep", Args: []string{"0.001"}}},
	}
	round := func(n int) {
		var group errgroup.Group
		group.SetLimit(8)
		for i := range n {
			f, err := s.Prepare(chains[i%len(chains)], nil)
			if err != nil {
				t.Fatal(err)
			}
			group.Go(func() error {
				var out bytes.Buffer
				err := f(t.Context(), strings.NewReader("a\n"), &out)
				if failed := err != nil; failed != (i%len(chains) == 2) {
					return fmt.Errorf("chain %d: %q, %v", i%len(chains), out.String(), err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	files := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", worker))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	round(16)
	before := files()
	round(200)
	eventually(t, "no descriptor more than before", func() bool { return files() <= before })
	eventually(t, "no child is left", func() bool { return len(children(t, worker)) == 0 })
}

// TestNoLeaks opens and closes pools: goroutines and descriptors must not add up.
func TestNoLeaks(t *testing.T) {
	cycle := func() {
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: local.New(local.Options{Worker: []string{workerFile}})})
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Prepare([]stages.Command{{Name: "tr", Args: []string{"a", "b"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := f(t.Context(), strings.NewReader("a"), &out); err != nil || out.String() != "b" {
			t.Fatalf("got %q, %v", out.String(), err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (goroutines, files int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(entries)
	}
	cycle()
	goroutines, files := count()
	for range 5 {
		cycle()
	}
	eventually(t, "no goroutine and no descriptor more than before", func() bool {
		g, f := count()
		return g <= goroutines && f <= files
	})
}
