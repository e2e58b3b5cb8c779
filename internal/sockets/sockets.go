// Package sockets lists the TCP sockets of this machine, as Linux shows them (proc_pid_net(5)).
package sockets

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Socket is one TCP socket.
type Socket struct {
	Local, Remote netip.AddrPort
	State         State
	User          int
	Inode         string
}

// State is the state of a socket, as the kernel numbers it.
type State string

// The states that matter here.
const (
	Connected State = "01"
	Listening State = "0A"
)

// TCP lists the sockets. Other systems than Linux show none.
func TCP() (list []Socket) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(name) // without IPv6 there is no such file
		list = append(list, parse(string(table))...)
	}
	return list
}

// parse reads a table. It leaves out lines that it does not understand, such as the first.
func parse(table string) (list []Socket) {
	for line := range strings.Lines(table) {
		// Columns: number, local address, remote address, state, …, user (the eighth), …, inode (the tenth).
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		local, okl := address(f[1])
		remote, okr := address(f[2])
		if user, err := strconv.Atoi(f[7]); okl && okr && err == nil {
			list = append(list, Socket{local, remote, State(f[3]), user, f[9]})
		}
	}
	return list
}

// address reads an address of the table: words of four bytes, each the wrong way round, and the port.
func address(text string) (netip.AddrPort, bool) {
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
