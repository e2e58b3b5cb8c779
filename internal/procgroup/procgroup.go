// Package procgroup runs programs in process groups of their own, so that the processes that a program starts end with it. A
// process that leaves the group is not reached.
package procgroup

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A Group is a running program with its process group.
type Group struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex
	gone bool // the group's id may belong to another group; guarded by mu
}

// Start starts cmd in a process group of its own. When the program ends, the rest of its group is killed.
func Start(cmd *exec.Cmd) (*Group, error) {
	cmd.SysProcAttr = attributes()
	g := &Group{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go g.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// run starts the program, waits for its end, and then ends its group. It locks its thread, because on Linux the death
// signal is sent when the thread that started the program ends (go.dev/issue/27505).
func (g *Group) run(started chan<- error) {
	defer close(g.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	awaitEnd(g.cmd)
	g.mu.Lock()
	g.gone = true // from here on its id may be reused
	g.mu.Unlock()
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) // processes that it left
	_ = g.cmd.Wait()                                      // its status is in cmd; waits for the output too
}

// Done is closed when the program and its group have ended, and their output was read; see [exec.Cmd] for WaitDelay. The status
// is then in the ProcessState of the command.
func (g *Group) Done() <-chan struct{} { return g.done }

// Signal sends a signal to the group, and reports whether the program was still running.
func (g *Group) Signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone {
		_ = syscall.Kill(-g.cmd.Process.Pid, s)
	}
	return !g.gone
}
