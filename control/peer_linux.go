package control

import "golang.org/x/sys/unix"

// peerUser returns the user at the other end of a Unix socket.
func peerUser(fd uintptr) (int, error) {
	c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
