//go:build unix && !linux

package procgroup

import (
	"os/exec"
	"syscall"
)

// attributes gives the program a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd waits for the end of the program. A second Wait returns at once.
func awaitEnd(cmd *exec.Cmd) { _ = cmd.Wait() }
