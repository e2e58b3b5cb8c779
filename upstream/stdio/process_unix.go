//go:build unix && !linux

package stdio

import "syscall"

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// groupAttr gives the program a process group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// run starts the program, waits for its end, and then ends its group.
func (p *process) run(started chan<- error) {
	defer close(p.reaped)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		close(p.exited)
		return
	}
	_ = p.cmd.Wait()
	p.abandon()
	_ = syscall.Kill(-p.cmd.Process.Pid, kill) // what it left behind
	p.noteExit(p.cmd.ProcessState.String())
	close(p.exited)
}
