//go:build !linux

package control

import "golang.org/x/sys/unix"

// peerUser returns the user at the other end of a Unix socket.
func peerUser(fd uintptr) (int, error) {
	c, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
