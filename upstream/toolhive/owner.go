package toolhive

import (
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/mcsh-dev/mcsh/internal/sockets"
)

// ownersKnown says that this system shows the owner of a connection.
const ownersKnown = runtime.GOOS == "linux"

// isOurs reports whether a user is the one that we run as, or root.
func isOurs(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// ownerOf finds the user who has the other end of a connection within this machine. The other side must have answered
// on it: until then the socket counts as root's.
func ownerOf(conn net.Conn) (uid int, ok bool) {
	return socketOwner(sockets.TCP(), addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr()))
}

// socketOwner finds the user of the socket at far that is connected with near.
func socketOwner(list []sockets.Socket, far, near netip.AddrPort) (uid int, ok bool) {
	for _, s := range list {
		if s.State == sockets.Connected && s.Local == far && s.Remote == near {
			return s.User, true
		}
	}
	return 0, false
}

func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
