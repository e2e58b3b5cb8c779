// Package publicip tells addresses of the public Internet from all others, and connects to no others.
package publicip

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
)

// reserved are the networks that are not the public Internet, by their names in the registries of special-purpose
// addresses. The first network that holds an address names it. IPv6 outside of 2000::/3 is refused as a whole.
var reserved = sync.OnceValue(func() (list []network) {
	for _, row := range []struct{ name, prefixes string }{
		{"unspecified", "0.0.0.0/8 ::/128"},
		{"loopback", "127.0.0.0/8 ::1/128"},
		{"private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"},
		{"link-local", "169.254.0.0/16 fe80::/10"},
		{"carrier-grade NAT", "100.64.0.0/10"},
		{"documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"},
		{"benchmarking", "198.18.0.0/15"},
		{"multicast", "224.0.0.0/4 ff00::/8"},
		{"6to4 relay", "192.88.99.0/24"},
		{"6to4", "2002::/16"},
		{"NAT64", "64:ff9b::/96 64:ff9b:1::/48"},
		{"Teredo", "2001::/32"},
		{"reserved", "192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 240.0.0.0/4 2001::/23 2620:4f:8000::/48"},
	} {
		for prefix := range strings.FieldsSeq(row.prefixes) {
			list = append(list, network{netip.MustParsePrefix(prefix), row.name})
		}
	}
	return list
})

// A network is a range of addresses with a name.
type network struct {
	netip.Prefix
	name string
}

var globalUnicast6 = netip.MustParsePrefix("2000::/3")

// Special names the kind of a special address, or returns "" for a public one.
func Special(addr netip.Addr) string {
	if addr.Zone() != "" {
		return "link-local"
	}
	addr = addr.Unmap() // an IPv4 address in IPv6 form reaches the IPv4 address
	for _, r := range reserved() {
		if r.Contains(addr) {
			return r.name
		}
	}
	if !addr.IsValid() || addr.Is6() && !globalUnicast6.Contains(addr) {
		return "reserved"
	}
	return ""
}

// Refused is the error of a connection to an address that is not public.
type Refused struct{ What string }

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("its address is a %s one", r.What) }

// Only is a net.Dialer's Control. It checks the resolved address just before the connection, so a name cannot
// resolve to another address after the check.
func Only(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refused{"malformed"}
	}
	if what := Special(ap.Addr()); what != "" {
		return &Refused{what}
	}
	return nil
}
