package durabletest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// Programs of the tests.
var temporalPath, gatewayPath string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcsh-durable")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, program := range [][2]string{{"..", "."}, {"../../dev", "./cmd/mcsh-temporal-dev"}} { // a directory of its module, and where it is
		build := exec.Command("go", "build", "-C", program[0], "-ldflags=-s -w", "-o", dir, program[1])
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
	}
	temporalPath, gatewayPath = filepath.Join(dir, "mcsh-temporal-dev"), filepath.Join(dir, "mcsh-temporal")
	return m.Run()
}

// A process is a program that has said where it listens.
type process struct {
	*exec.Cmd
	address string
	ended   chan struct{} // closed when it has

	mu   sync.Mutex
	said strings.Builder // guarded by mu
}

// start starts a program, and returns when it has written where it listens: a line has that behind before.
func start(command *exec.Cmd, before string) (*process, error) {
	p := &process{Cmd: command, ended: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.Stdout, p.Stderr = w, w
	err = p.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	address := make(chan string, 1)
	go func() {
		defer close(p.ended)
		defer r.Close()
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			p.mu.Lock()
			p.said.WriteString(line)
			p.mu.Unlock()
			if _, found, ok := strings.Cut(line, before); ok && len(address) == 0 {
				address <- strings.TrimRight(strings.Fields(found)[0], ",")
			}
			if err != nil {
				_ = p.Wait() // tests look at the status
				return
			}
		}
	}()
	select {
	case p.address = <-address:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s has ended: %s", filepath.Base(p.Path), p.log())
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("%s does not say where it listens: %s", filepath.Base(p.Path), p.log())
	}
}

// log is what the process has written.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// signal sends a signal to a process that may have ended.
func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended
	<-p.ended
}

// terminate asks the process to end, and waits until it has.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	within(t, "the end of "+filepath.Base(p.Path), p.ended)
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s ended with status %d: %s", filepath.Base(p.Path), code, p.log())
	}
}

// within takes what a channel must bring.
func within[V any](t *testing.T, what string, values <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-values:
	case <-time.After(patience):
		t.Fatalf("no %s in %s", what, patience)
	}
	return v
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) { // between looks
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}

// fine ends the test on an error.
func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
