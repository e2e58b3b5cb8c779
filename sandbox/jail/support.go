//go:build linux

package jail

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Support says what the running kernel offers to this process.
type Support struct {
	Landlock int  // ABI version, 0 if there is none
	Seccomp  bool // system call filters, with an errno and with killing as verdicts
}

// Supported asks the kernel. It changes nothing.
func Supported() Support {
	return Support{
		Landlock: LandlockABI(),
		Seccomp:  hasVerdict(unix.SECCOMP_RET_ERRNO) && hasVerdict(unix.SECCOMP_RET_KILL_PROCESS),
	}
}

func hasVerdict(v uint32) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&v)))
	return errno == 0
}
