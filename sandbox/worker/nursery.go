//go:build linux

package worker

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

// A nursery starts processes and reaps every process that ends: its own, and those that became children of the
// container's first process because their parent has died.
type nursery struct {
	requests chan birth
	ended    chan os.Signal

	mu       sync.Mutex
	children map[int]*child
}

// A child is a process of a nursery. Its status is to be read after done.
type child struct {
	pid    int
	done   chan struct{}
	status syscall.WaitStatus
}

type birth struct {
	workers *Launcher
	scratch string
	in, out *os.File
	born    chan<- born
}

type born struct {
	child *child
	err   error
}

func newNursery() *nursery {
	n := &nursery{requests: make(chan birth), ended: make(chan os.Signal, 1), children: map[int]*child{}}
	signal.Notify(n.ended, syscall.SIGCHLD)
	go n.run()
	go func() {
		for range n.ended {
			n.reap()
		}
	}()
	return n
}

// run starts processes from one thread, which lives as long as this one does: they may ask to die with the thread that
// has started them.
func (n *nursery) run() {
	runtime.LockOSThread()
	for b := range n.requests {
		c, err := n.fork(b)
		b.born <- born{c, err}
	}
}

// start starts a worker with the directory scratch.
func (n *nursery) start(workers *Launcher, scratch string, in, out *os.File) (*child, error) {
	answer := make(chan born, 1)
	n.requests <- birth{workers, scratch, in, out, answer}
	b := <-answer
	return b.child, b.err
}

// fork holds the lock, so that nobody is reaped before it is known.
func (n *nursery) fork(b birth) (*child, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := b.workers.Start(b.scratch, [3]int{int(b.in.Fd()), int(b.out.Fd()), int(os.Stderr.Fd())})
	if err != nil {
		return nil, err
	}
	c := &child{pid: p.Pid(), done: make(chan struct{})}
	n.children[c.pid] = c
	return c, nil
}

// reap takes leave of all processes that have ended.
func (n *nursery) reap() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if c := n.children[pid]; c != nil {
			delete(n.children, pid)
			c.status = status
			close(c.done)
		}
	}
}

// kill kills a child that has not been reaped: until then its number belongs to it.
func (n *nursery) kill(c *child) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.children[c.pid] == c {
		_ = syscall.Kill(c.pid, syscall.SIGKILL) // it may have ended meanwhile
	}
}

func (n *nursery) killAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pid := range n.children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // likewise
	}
}
