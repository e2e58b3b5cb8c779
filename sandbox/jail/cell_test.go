//go:build linux

package jail

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// catCell is a jail of cat, which is linked like any program of the distribution.
func catCell(t *testing.T) *Cell {
	t.Helper()
	if LandlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	c, err := NewCell(Spec{
		Path: "/usr/bin/cat", Read: []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache", "/proc"},
		Run: []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// run starts cat in its jail and returns what it said, on both outputs.
func (c *Cell) run(t *testing.T, limits Limits, args ...string) (string, State) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := c.Start(Command{
		Argv: append([]string{"cat"}, args...), Env: []string{"LC_ALL=C"}, Limits: limits,
		Files: []int{int(null.Fd()), int(w.Fd()), int(w.Fd())},
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	state, err := p.Wait()
	if err != nil {
		t.Error(err)
	}
	return string(said), state
}

// TestLaunch: a process of a cell is born with nothing of its parent but what it was given.
func TestLaunch(t *testing.T) {
	c := catCell(t)
	signal.Ignore(syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGUSR1)
	said, state := c.run(t, Limits{Data: 1 << 28}, "/proc/self/status")
	if state.Status != 0 {
		t.Fatalf("status %v: %s", state.Status, said)
	}
	for _, want := range []string{
		"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n",
		"SigBlk:\t0000000000000000\n", "SigCgt:\t0000000000000000\n", "Threads:\t1\n",
	} {
		if strings.HasPrefix(want, "CapBnd") && os.Getuid() != 0 {
			continue // what a user has not may stay in the set
		}
		if !strings.Contains(said, want) {
			t.Errorf("the status lacks %q:\n%s", want, said)
		}
	}
	if said, state = c.run(t, Limits{}, "/etc/hostname"); state.Status.ExitStatus() != 1 || !strings.Contains(said, "Permission denied") {
		t.Errorf("a file that is closed: status %v: %s", state.Status, said)
	}
}

// TestReplacedProgram: a program file that is replaced while a jail is built opens no other file.
func TestReplacedProgram(t *testing.T) {
	catCell(t)
	dir := t.TempDir()
	secret, tool := filepath.Join(dir, "secret"), filepath.Join(dir, "tool")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.EvalSymlinks("/usr/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(target string) error {
		return errors.Join(os.Symlink(target, tool+".new"), os.Rename(tool+".new", tool))
	}
	if err := swap(program); err != nil {
		t.Fatal(err)
	}
	done, swapping := make(chan struct{}), sync.WaitGroup{}
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := swap([]string{secret, program}[i%2]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer swapping.Wait()
	defer close(done)
	opened := map[string]int{}
	for turn := 0; turn < 500 || len(opened) < 2; turn++ {
		if turn == 100_000 {
			t.Fatalf("only one of two files was opened: %v", opened)
		}
		at := openReplaced(t, tool, secret)
		if at != program && at != secret {
			t.Fatalf("got a jail of %s, want one of %s or %s", at, program, secret)
		}
		opened[at]++
	}
}

// openReplaced builds a jail of tool, which leads to a program or to secret, and returns the file that it opened. The program
// cannot read secret.
func openReplaced(t *testing.T, tool, secret string) string {
	t.Helper()
	c, err := NewCell(Spec{
		Path: tool, Read: []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache"},
		Run: []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(c.exe.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	if at != secret {
		if said, _ := c.run(t, Limits{}, secret); !strings.Contains(said, "Permission denied") {
			t.Fatalf("the program has read %s, want that it may not", said)
		}
	}
	return at
}

// TestLaunchSideBySide: processes are started, heard and killed from many goroutines at a time.
func TestLaunchSideBySide(t *testing.T) {
	c := catCell(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if said, state := c.run(t, Limits{CPU: time.Second}, "/proc/self/status"); state.Status != 0 || !strings.Contains(said, "Name:") {
					t.Errorf("status %v: %s", state.Status, said)
				}
			}
		})
	}
	all.Wait()
}

// TestLaunchFails: the error names the step at which a child failed, and no process is left.
func TestLaunchFails(t *testing.T) {
	c := catCell(t)
	for _, test := range []struct {
		name string
		spec Spec
		want error
		text string
	}{
		{"no directory", Spec{Dir: "/nowhere"}, unix.ENOENT, "entering its directory"},
		{"no program", Spec{Path: "/etc/hostname"}, unix.EACCES, "executing it"},
	} {
		other := *c
		other.spec.Dir = test.spec.Dir
		if test.spec.Path != "" {
			exe, err := os.Open(test.spec.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer exe.Close()
			other.exe = exe
		}
		_, err := other.Start(Command{Argv: []string{"cat"}, Files: []int{0, 1, 2}})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %q and %v", test.name, err, test.text, test.want)
		}
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

// TestKill: a process that is killed is reaped once, and its number is not signalled afterwards.
func TestKill(t *testing.T) {
	c := catCell(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p, err := c.Start(Command{Argv: []string{"cat"}, Files: []int{int(r.Fd()), 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if state, err := p.Wait(); err != nil || !state.Status.Signaled() || state.Status.Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v, want killed", state.Status, err)
	}
	p.Kill()
}

// TestCellFails: a jail that cannot be built is none, and one without its Landlock domain starts nothing.
func TestCellFails(t *testing.T) {
	c := catCell(t)
	spec := c.spec
	spec.Read = []string{"/etc/hostname/x"} // not missing: a file has no files
	if broken, err := NewCell(spec); broken != nil || !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a jail that cannot be built: some %v, %v, want none and %v", broken != nil, err, unix.ENOTDIR)
	}
	for _, ruleset := range []int{-1, int(c.exe.Fd())} {
		other := *c
		other.ruleset = ruleset
		_, err := other.Start(Command{Argv: []string{"cat"}, Files: []int{0, 1, 2}})
		if err == nil || !strings.Contains(err.Error(), stepNames[stepLandlock]) {
			t.Errorf("ruleset %d: %v, want an error of %s", ruleset, err, stepNames[stepLandlock])
		}
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}
