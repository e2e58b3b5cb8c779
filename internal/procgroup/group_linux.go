package procgroup

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives the program a process group of its own, and makes the kernel kill it if this process dies without
// cleaning up.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits for the end of the program without reaping it: while it is a zombie, no other group can get its id.
func awaitEnd(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
