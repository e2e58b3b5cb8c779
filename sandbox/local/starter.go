//go:build linux

package local

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

// A starter starts processes from one thread. The parent-death signal comes when the thread that has started the
// process ends, not when its process does (prctl(2), PR_SET_PDEATHSIG): threads of the Go runtime come and go.
type starter struct {
	requests chan request
	quit     chan struct{}
	ended    chan struct{}
	once     sync.Once
}

type request struct {
	workers *worker.Launcher
	scratch string
	files   [3]int
	answer  chan<- answer
}

type answer struct {
	process *jail.Process
	err     error
}

func newStarter() *starter {
	s := &starter{requests: make(chan request), quit: make(chan struct{}), ended: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	defer close(s.ended)
	runtime.LockOSThread() // and never unlocked: the thread ends with this function
	yield()
	for {
		select {
		case r := <-s.requests:
			p, err := r.workers.Start(r.scratch, r.files)
			r.answer <- answer{p, err}
		case <-s.quit:
			return
		}
	}
}

// yields is by how much workers and their commands are nicer than the gateway, which must answer whatever they do.
const yields = 5

// yield makes this thread nicer, and so what it starts. A user may always do that.
func yield() {
	const none = 20 // what getpriority(2) returns for a nice value of 0; it counts down
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(none-now+yields, 19))
	}
}

func (s *starter) start(workers *worker.Launcher, scratch string, files [3]int) (*jail.Process, error) {
	c := make(chan answer, 1)
	select {
	case s.requests <- request{workers, scratch, files, c}:
		a := <-c
		return a.process, a.err
	case <-s.ended:
		return nil, errClosed
	}
}

// close ends the thread, and with it every process that is left.
func (s *starter) close() {
	s.once.Do(func() { close(s.quit) })
	<-s.ended
}
