package cli

import (
	"net/netip"
	"strings"
	"testing"
)

// Only a container with a network of its own has an address that counts as local.
func TestOwnAddress(t *testing.T) {
	local := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("172.17.0.2"), netip.MustParseAddr("10.0.0.5")}
	for name, test := range map[string]struct{ host, hosts, want string }{
		"bridge":                      {"4f1a2b3c4d5e", "127.0.0.1\tlocalhost\n172.17.0.2\t4f1a2b3c4d5e\n", "172.17.0.2"},
		"podman":                      {"4f1a2b3c4d5e", "172.17.0.2 4f1a2b3c4d5e nice_name # of podman\n", "172.17.0.2"},
		"the machine's network":       {"myhost", "127.0.0.1 localhost\n10.0.0.5 myhost\n", ""},
		"a machine that is called so": {"4f1a2b3c4d5e", "127.0.1.1 4f1a2b3c4d5e\n", ""},
		"somebody else's address":     {"4f1a2b3c4d5e", "192.168.7.7 4f1a2b3c4d5e\n", ""},
		"all addresses":               {"4f1a2b3c4d5e", "0.0.0.0 4f1a2b3c4d5e\n", ""},
		"no entry":                    {"4f1a2b3c4d5e", "# 172.17.0.2 4f1a2b3c4d5e\n", ""},
		"pod":                         {"mcsh-0", "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n10.0.0.5\tmcsh-0\n", "10.0.0.5"},
		"pod with the node's network": {"node-1", "# Kubernetes-managed hosts file (host network).\n10.0.0.5 node-1\n", ""},
	} {
		got, ok := addressInHosts(test.host, []byte(test.hosts), local)
		if ok != (test.want != "") || ok && got.String() != test.want {
			t.Errorf("%s: got %v, %v, want %q", name, got, ok, test.want)
		}
	}
}

// The variables of a runtime say where to listen where no flag does. Here is no container that could have an address.
func TestFromRuntime(t *testing.T) {
	if own, inside := containerAddress(); inside {
		t.Skipf("this is a container with the address %v", own)
	}
	for _, test := range []struct{ env, flag, want, wrong string }{
		{"", "", "", ""},
		{"MCP_TRANSPORT=stdio MCP_PORT=1", "", "", ""},
		{"MCP_TRANSPORT=streamable-http MCP_PORT=8000 MCP_HOST=127.0.0.1", "", "127.0.0.1:8000", ""},
		{"MCP_TRANSPORT=streamable-http", "", "127.0.0.1:8808", ""},
		{"MCP_TRANSPORT=http MCP_PORT=8000 MCP_HOST=0.0.0.0", "", "0.0.0.0:8000", ""},
		{"MCP_TRANSPORT=streamable-http MCP_PORT=8000", "127.0.0.1:1", "127.0.0.1:1", ""},
		{"MCP_TRANSPORT=sse", "", "", "MCP_TRANSPORT=sse: that is not served"},
		{"MCP_TRANSPORT=streamable-http MCP_PORT=x", "", "", "MCP_PORT=x is not a port"},
		{"MCP_TRANSPORT=streamable-http MCP_PORT=70000", "", "", "MCP_PORT=70000 is not a port"},
	} {
		p := &program{env: map[string]string{}}
		for _, pair := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			p.env[name] = value
		}
		l := listenFlags{address: test.flag}
		err := l.fromRuntime(p)
		if err == nil && test.wrong != "" || err != nil && err.Error() != test.wrong || l.address != test.want || l.contained {
			t.Errorf("%s: got %q, %v", test.env, l.address, err)
		}
	}
}
