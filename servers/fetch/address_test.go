package fetch

import (
	"net/netip"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/markdown"
)

func TestNotPublic(t *testing.T) {
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
		if got := notPublic(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("notPublic(%s) = %q, want %q", tt.addr, got, tt.want)
		}
	}
	if got := notPublic(netip.Addr{}); got != "reserved" {
		t.Errorf("notPublic of no address = %q, want reserved", got)
	}
}

func TestOnlyPublic(t *testing.T) {
	for addr, ok := range map[string]bool{
		"8.8.8.8:80": true, "[2606:4700::1]:443": true,
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:10.0.0.1]:80": false, "localhost:80": false, "": false, "8.8.8.8": false,
	} {
		if err := onlyPublic("tcp", addr, nil); (err == nil) != ok {
			t.Errorf("onlyPublic(%q): %v, want ok %v", addr, err, ok)
		}
	}
}

func TestHosts(t *testing.T) {
	h, err := newHosts([]string{"*.internal", "Exact.Example.", "10.0.0.?", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"a.internal": true, "a.b.internal": true, "A.INTERNAL.": true, "exact.example": true, "10.0.0.7": true, "::1": true,
		"internal": false, "a.internal.evil.com": false, "notexact.example": false, "10.0.0.77": false, "": false, "::2": false,
	} {
		if got := h.match(host); got != want {
			t.Errorf("match(%q) = %v, want %v", host, got, want)
		}
	}
	for _, bad := range []string{"", "[", "http://x", "a/b", "host:80", "me@host"} {
		if _, err := newHosts([]string{bad}); err == nil {
			t.Errorf("the pattern %q was accepted", bad)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"http://a/b?c#d", "https://u:p@h", "http:///x", "http:a", "//h", "http://[::1%25eth0]:80/", "HTTP://X", "http://a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseURL(raw)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q was accepted as %v", raw, u)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("<p>x"), "text/html; charset=utf-16", "auto")
	f.Add([]byte("\xff\xfea\x00"), "text/plain", "raw")
	f.Add([]byte(`{"a":1}`), "application/json", "markdown")
	f.Add([]byte("<blockquote><ul><li>x"), ";;", "auto")
	base, err := parseURL("http://example.com/a/")
	if err != nil {
		f.Fatal(err)
	}
	s := &server{markdown: markdown.Bounded}
	f.Fuzz(func(t *testing.T, body []byte, contentType, as string) {
		text, err := s.text(t.Context(), classify(body, contentType), as, base, &answer{})
		if err == nil && text != string([]rune(text)) {
			t.Errorf("not valid UTF-8: %q", text)
		}
	})
}
