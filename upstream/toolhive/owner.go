package toolhive

import (
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ownersKnown says that this system shows the owner of a connection.
const ownersKnown = runtime.GOOS == "linux"

// isOurs reports whether a user is the one that we run as, or root.
func isOurs(uid int) bool { return uid == 0 || uid == os.Geteuid() }

// ownerOf finds the user who has the other end of a connection within this machine. The other side must have answered
// on it: until then the socket counts as root's.
func ownerOf(conn net.Conn) (uid int, ok bool) {
	near, far := addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // without IPv6 there is no such file
		if uid, ok := socketOwner(string(table), far, near); ok {
			return uid, true
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

// socketOwner finds, in a table of sockets as Linux shows it (proc_pid_net(5)), the user whose socket has the local
// address and is connected to the remote one.
func socketOwner(table string, local, remote netip.AddrPort) (uid int, ok bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 8 || f[3] != "01" { // established
			continue
		}
		l, okl := socketAddress(f[1])
		r, okr := socketAddress(f[2])
		if !okl || !okr || l != local || r != remote {
			continue
		}
		if uid, err := strconv.Atoi(f[7]); err == nil {
			return uid, true
		}
	}
	return 0, false
}

// socketAddress reads an address of the table: words of four bytes, each the wrong way round, and the port.
func socketAddress(text string) (netip.AddrPort, bool) {
	words, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
