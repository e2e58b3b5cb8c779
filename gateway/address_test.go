package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestForwarded: of what proxies say, that of trusted ones counts.
func TestForwarded(t *testing.T) {
	trusted, err := ParseProxies([]string{"10.0.0.0/8", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, peer, x, forwarded, want string }{
		{"a client", "192.0.2.1", "", "", "192.0.2.1"},
		{"a client that lies", "192.0.2.1", "192.0.2.9", "for=192.0.2.9", "192.0.2.1"},
		{"this machine", "[::1]", "", "", localAddress},
		{"this machine, as IPv6 has it", "[::ffff:127.0.0.2]", "", "", localAddress},
		{"a network of IPv6", "[2001:db8::1]", "", "", "2001:db8::/64"},
		{"behind a proxy", "10.1.1.1", "192.0.2.1", "", "192.0.2.1"},
		{"behind a proxy, lying to it", "10.1.1.1", "192.0.2.9, 192.0.2.1", "", "192.0.2.1"},
		{"behind two", "10.1.1.1", "192.0.2.9, 192.0.2.1, 10.2.2.2", "", "192.0.2.1"},
		{"only proxies", "10.1.1.1", "10.3.3.3, 10.2.2.2", "", "10.3.3.3"},
		{"with a port", "10.1.1.1", "192.0.2.1:5555", "", "192.0.2.1"},
		{"by the standard", "10.1.1.1", "", `for=192.0.2.9, For="192.0.2.1:5555";proto=https`, "192.0.2.1"},
		{"of IPv6", "10.1.1.1", "", `For="[2001:db8::1]:5555"`, "2001:db8::/64"},
		{"both ways", "10.1.1.1", "192.0.2.1", "for=192.0.2.1", "192.0.2.1"},
		{"both ways, contradicting", "10.1.1.1", "192.0.2.9", "for=192.0.2.1", "10.1.1.1"},
		{"hidden", "10.1.1.1", "", "for=_hidden", "10.1.1.1"},
		{"malformed", "10.1.1.1", "192.0.2.1, x", "", "10.1.1.1"},
		{"one way malformed", "10.1.1.1", "192.0.2.9", "for=_hidden", "10.1.1.1"},
		{"the other way malformed", "10.1.1.1", "unknown", "for=192.0.2.9", "10.1.1.1"},
		{"this machine, says a proxy", "127.0.0.1", "127.0.0.9", "", "127.0.0.9"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.RemoteAddr = tt.peer + ":1234"
		r.Header.Set(addressHeader, localAddress) // nobody believes that
		for name, value := range map[string]string{"X-Forwarded-For": tt.x, "Forwarded": tt.forwarded} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		trusted.mark(r)
		if got := originOf(r.Header, ""); got != (origin{key: "address " + tt.want, local: tt.want == localAddress}) {
			t.Errorf("%s: got %+v, want %s", tt.name, got, tt.want)
		}
	}
	for _, wrong := range []string{"", "10.0.0.1/8", "10.0.0.0/33", "proxy", "fe80::1%eth0"} {
		if _, err := ParseProxies([]string{wrong}); err == nil {
			t.Errorf("%q is taken for a network", wrong)
		}
	}
}
