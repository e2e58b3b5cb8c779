package toolhive

import (
	"net"
	"net/netip"
	"os"
)

// ownersKnown says that ownerOf can tell on this system.
const ownersKnown = true

// ownerOf finds who has the other end of a connection. The other side must have answered on it: before that the
// socket is nobody's.
func ownerOf(conn net.Conn) owner {
	near, ok1 := addrPort(conn.LocalAddr())
	far, ok2 := addrPort(conn.RemoteAddr())
	if !ok1 || !ok2 {
		return ownerUnknown
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue // without IPv6 there is no such file
		}
		if uid, ok := socketOwner(string(table), far, near); ok {
			if isOurs(uid) {
				return ownerOurs
			}
			return ownerOther
		}
	}
	return ownerUnknown
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), true
}
