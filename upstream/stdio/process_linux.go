package stdio

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// groupAttr gives the program a process group of its own, and has the kernel kill it should this process die without
// a chance to clean up.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// run starts the program, waits for its end, and then ends its group. It keeps its thread to itself, because
// the death signal is sent when the thread ends that started the program (go.dev/issue/27505).
func (p *process) run(started chan<- error) {
	defer close(p.reaped)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		close(p.exited)
		return
	}
	// Without reaping it: as long as the program is a zombie, no other group can get its number.
	for {
		err = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	p.abandon()                                // from here on its number may be another's
	_ = syscall.Kill(-p.cmd.Process.Pid, kill) // what it left behind
	_ = p.cmd.Wait()                           // also for standard error; the status says it all
	p.noteExit(p.cmd.ProcessState.String())
	close(p.exited)
}
