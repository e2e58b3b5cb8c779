package control

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// checkPeer returns an error unless the process at the other end of a connection is of this user.
func checkPeer(conn net.Conn) error {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("that is no Unix socket")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return err
	}
	user, asked := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { user, asked = peerUser(fd) }); err != nil || asked != nil {
		return errors.Join(err, asked)
	}
	if user != os.Geteuid() {
		return fmt.Errorf("the other end of the socket belongs to user %d, and this is user %d", user, os.Geteuid())
	}
	return nil
}
