//go:build linux

package jail

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCapabilities empties the calling thread's capability sets, so that a program that root runs gets none: the
// bounding set bounds what an exec may give. A process without CAP_SETPCAP has nothing that matters to drop there.
//
//go:norace
//go:nocheckptr
//go:nosplit
func dropCapabilities() syscall.Errno {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_, _, e := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0)
		if e == unix.EPERM || e == unix.EINVAL {
			break
		}
		if e != 0 {
			return e
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	return e
}
