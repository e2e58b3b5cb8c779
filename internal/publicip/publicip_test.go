package publicip

import (
	"net/netip"
	"testing"
)

func TestSpecial(t *testing.T) {
	for _, tt := range []struct{ addr, want string }{
		{"8.8.8.8", ""},
		{"1.1.1.1", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"169.253.0.1", ""},
		{"223.255.255.255", ""},
		{"2606:4700:4700::1111", ""},
		{"2a00:1450:4001::1", ""},
		{"::ffff:8.8.8.8", ""},

		{"0.0.0.0", "unspecified"},
		{"0.1.2.3", "unspecified"},
		{"10.0.0.1", "private"},
		{"100.64.0.1", "carrier-grade NAT"},
		{"100.127.255.255", "carrier-grade NAT"},
		{"127.0.0.1", "loopback"},
		{"127.255.255.254", "loopback"},
		{"169.254.169.254", "link-local"},
		{"172.16.0.1", "private"},
		{"172.31.255.255", "private"},
		{"192.0.0.8", "reserved"},
		{"192.0.2.1", "documentation"},
		{"192.168.1.1", "private"},
		{"198.18.0.1", "benchmarking"},
		{"198.19.255.255", "benchmarking"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"},
		{"255.255.255.255", "reserved"},

		{"::", "unspecified"},
		{"::1", "loopback"},
		{"::2", "reserved"},
		{"::127.0.0.1", "reserved"}, // the old IPv4-compatible form
		{"::ffff:127.0.0.1", "loopback"},
		{"::ffff:10.0.0.1", "private"},
		{"::ffff:169.254.169.254", "link-local"},
		{"::ffff:0:127.0.0.1", "reserved"}, // IPv4-translated
		{"64:ff9b::7f00:1", "NAT64"},
		{"64:ff9b::808:808", "NAT64"},
		{"64:ff9b:1::1", "NAT64"},
		{"100::1", "reserved"},
		{"2001::1", "Teredo"},
		{"2001:10::1", "reserved"},
		{"2001:db8::1", "documentation"},
		{"2002:7f00:1::", "6to4"},
		{"3fff::1", "documentation"},
		{"4000::1", "reserved"},
		{"5f00::1", "reserved"},
		{"fc00::1", "private"},
		{"fd12:3456::1", "private"},
		{"fe80::1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"2606:4700::1%eth0", "link-local"},
		{"fec0::1", "reserved"},
		{"ff02::1", "multicast"},
	} {
		if got := Special(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("Special(%s) = %q, want %q", tt.addr, got, tt.want)
		}
	}
	if got := Special(netip.Addr{}); got != "reserved" {
		t.Errorf("Special of no address = %q, want reserved", got)
	}
}

func TestOnly(t *testing.T) {
	for addr, ok := range map[string]bool{
		"8.8.8.8:80": true, "[2606:4700::1]:443": true,
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:10.0.0.1]:80": false, "localhost:80": false, "": false, "8.8.8.8": false,
	} {
		if err := Only("tcp", addr, nil); (err == nil) != ok {
			t.Errorf("Only(%q): %v, want ok %v", addr, err, ok)
		}
	}
}
