//go:build linux

package jail

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// dropCapabilities empties the calling thread's capability sets, so that a program that root runs gets none: the
// bounding set bounds what an exec may give. A thread without CAP_SETPCAP has nothing that matters to drop there.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EPERM || err == unix.EINVAL {
			break
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
