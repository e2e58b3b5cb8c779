//go:build unix && !linux

package stdio

import (
	"os/exec"
	"syscall"
)

// groupAttr gives the program a process group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd waits for the end of the program. A second Wait returns at once.
func awaitEnd(cmd *exec.Cmd) { _ = cmd.Wait() }
