package toolhive

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// An owner is who has the other end of a connection within this machine.
type owner int

const (
	ownerUnknown owner = iota // it cannot be seen from here
	ownerOurs                 // the user that we run as, or root
	ownerOther
)

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
