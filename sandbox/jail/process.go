//go:build linux

package jail

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is a child that has been started here. It has to be waited for.
type Process struct {
	pid int

	mu     sync.Mutex
	reaped bool // the number may be somebody else's by now
}

// A State is how a process has ended and what it has used.
type State struct {
	Status syscall.WaitStatus
	CPU    time.Duration
	MaxRSS int64 // bytes
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.pid }

// Wait waits for the end of the process. It is to be called once.
func (p *Process) Wait() (State, error) {
	for {
		// It stays a zombie, whose number nobody gets, until the lock is held.
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return State{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	return reap(p.pid)
}

// Kill kills the process, unless it has ended already.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(p.pid, unix.SIGKILL) // it may be a zombie
	}
}

// reap waits for a child that has ended or is about to.
func reap(pid int) (State, error) {
	var s State
	var used unix.Rusage
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, &used)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return s, err
		}
		break
	}
	s.Status = syscall.WaitStatus(status)
	s.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	s.MaxRSS = used.Maxrss << 10
	return s, nil
}

// niceness returns the nice value of a process that is more nicer than this one.
func niceness(more int) int {
	const none, most = 20, 19 // none is what getpriority(2) returns for a nice value of 0; it counts down
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		now = none
	}
	return min(none-now+more, most)
}
