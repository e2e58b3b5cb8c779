package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request under a name that somebody else may own is refused, whatever listens.
func TestHosts(t *testing.T) {
	beyond := Hosts{Names: []string{"mcp.example.com", "*.svc.cluster.local", "host.docker.internal"}, Short: true}
	for _, test := range []struct {
		hosts Hosts
		host  string
		want  bool
	}{
		{Hosts{}, "127.0.0.1:8808", true},
		{Hosts{}, "localhost:8808", true},
		{Hosts{}, "LOCALHOST.", true},
		{Hosts{}, "[::1]:8808", true},
		{Hosts{}, "[::1]", true},
		{Hosts{}, "172.17.0.2:8808", true},
		{Hosts{}, "x.localhost", true},
		{Hosts{}, "", true},
		{Hosts{}, "mcsh:8808", false},
		{Hosts{}, "evil.example", false},
		{Hosts{}, "127.0.0.1.evil.example:8808", false},
		{Hosts{}, "localhost.evil.example", false},
		{Hosts{}, "evil.example:8808:1", false},
		{Hosts{}, "host.docker.internal", false},
		{beyond, "mcsh:8808", true},
		{beyond, "MCP.example.com:443", true},
		{beyond, "host.docker.internal:8808", true},
		{beyond, "a.b.svc.cluster.local", true},
		{beyond, "svc.cluster.local", false},
		{beyond, "asvc.cluster.local", false},
		{beyond, "evil.example", false},
		{beyond, "mcp.example.com.evil.example", false},
		{beyond, "example.com", false},
		{Hosts{Names: []string{"*"}}, "any.example", true},
		{Hosts{Names: []string{"*example"}}, "evilexample", false},
	} {
		reached := false
		h := test.hosts.Check(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached = r.Context().Value(http.LocalAddrContextKey) == nil
		}))
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Host = test.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if reached != test.want || !test.want && (w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--allow-host")) {
			t.Errorf("%q with %q: reached %v, want %v (%d %s)", test.host, test.hosts.Names, reached, test.want, w.Code, w.Body)
		}
	}
}
