package enginetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/engine/temporal"
)

// What the tests share: the program, and a server in memory.
var (
	program string
	shared  *process
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// workFor in the environment makes this binary a worker at that address and queue, and nothing else.
const workFor = "MCSH_TEST_WORK_FOR"

func TestMain(m *testing.M) {
	if where := os.Getenv(workFor); where != "" {
		os.Exit(work(where))
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcsh-temporal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "mcsh-temporal-dev")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "github.com/mcsh-dev/mcsh/engine/temporal/dev/cmd/mcsh-temporal-dev")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	shared, err = serve("--listen", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer shared.end(syscall.SIGKILL)
	return m.Run()
}

// work is a worker whose jobs last until it is killed. It writes the names of those that it begins.
func work(where string) int {
	address, queue, _ := strings.Cut(where, " ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e, err := temporal.Dial(ctx, temporal.Options{Address: address, Queue: queue})
	if err == nil {
		defer e.Close()
		err = e.Work(ctx, 1, func(ctx context.Context, name string, _ func([]byte)) error {
			fmt.Println(name)
			<-ctx.Done()
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A process is a child that has written the line that was waited for.
type process struct {
	command *exec.Cmd
	address string // of a server
	done    chan error
}

var listens = regexp.MustCompile(`^Temporal listens on (\S+), namespace \S+$`)

// serve starts a server, and returns when it says that it can be used.
func serve(args ...string) (*process, error) {
	p := &process{command: exec.Command(program, args...), done: make(chan error, 1)}
	line, err := p.start(listens)
	if err != nil {
		return nil, err
	}
	p.address = listens.FindStringSubmatch(line)[1]
	return p, nil
}

// start runs the command until it writes a line like the pattern.
func (p *process) start(pattern *regexp.Regexp) (string, error) {
	var said strings.Builder
	p.command.Stderr = &said // read when the process has ended
	out, err := p.command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := p.command.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if pattern.MatchString(lines.Text()) {
			go func() {
				_, _ = io.Copy(io.Discard, out)
				p.done <- p.command.Wait()
			}()
			return lines.Text(), nil
		}
	}
	return "", errors.Join(p.command.Wait(), fmt.Errorf("it said: %s", said.String()))
}

// end sends a signal and waits.
func (p *process) end(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil {
		return err
	}
	err := <-p.done
	p.done <- err
	return err
}

// worker starts a worker process, which has begun the job when this returns.
func worker(t *testing.T, address, queue, job string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0]), done: make(chan error, 1)}
	p.command.Env = append(os.Environ(), workFor+"="+address+" "+queue)
	if _, err := p.start(regexp.MustCompile("^" + job + "$")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// dial connects to the shared server, with a queue of the test.
func dial(t *testing.T, o temporal.Options) *temporal.Engine {
	t.Helper()
	if o.Address == "" {
		o.Address = shared.address
	}
	if o.Queue == "" {
		o.Queue = t.Name()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	e, err := temporal.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// start starts a job with a name that is used once.
func start(t *testing.T, e *temporal.Engine, limit time.Duration) string {
	t.Helper()
	name := newName()
	if err := e.Start(t.Context(), name, limit); err != nil {
		t.Fatal(err)
	}
	return name
}

var count atomic.Int64

func newName() string { return fmt.Sprintf("job-%d-%d", os.Getpid(), count.Add(1)) }

// working has a worker do jobs until the test ends or stop is called, which returns when Work has.
func working(t *testing.T, e *temporal.Engine, slots int, do temporal.Do) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Work(ctx, slots, do) }()
	stop = func() {
		cancel()
		err := <-done
		done <- err
		if err != nil {
			t.Errorf("Work: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// wait waits for a job with the patience of a test.
func wait(t *testing.T, e *temporal.Engine, name string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return e.Wait(ctx, name)
}

// receive takes what a channel must bring.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s in %s", what, patience)
		panic("unreachable")
	}
}

// until waits for a state of the progress of a job, and returns it.
func until(t *testing.T, e *temporal.Engine, name string, is func(temporal.Progress) bool) temporal.Progress {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		p, err := e.Progress(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if is(p) {
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("job %s is still %+v", name, p)
		}
		time.Sleep(10 * time.Millisecond) // until the next question
	}
}
