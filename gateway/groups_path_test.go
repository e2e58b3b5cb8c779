package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// FuzzPathGroup: a path names a group only as its one segment behind that of the endpoint, and no header of a client does.
func FuzzPathGroup(f *testing.F) {
	for _, path := range []string{"/mcp", "/mcp/", "/mcp/dev", "/mcp/dev/", "/mcp/../dev", "/mcp/..", "/mcp//dev", "/MCP/dev", "/mcpdev", "/mcp/d\x00v", "/mcp/dev\n", "/mcp/" + strings.Repeat("a", 65), "/", ""} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		group, ok := pathGroup(path)
		if ok && path != endpointPath+strings.Repeat("/", min(len(group), 1))+group || len(group) > 64 && ok {
			t.Fatalf("%q is the group %q", path, group)
		}
		if ok && (strings.ContainsAny(group, "/%\\?# \r\n\x00") || strings.HasPrefix(group, ".")) {
			t.Errorf("%q is the name of a group", group)
		}
		r := httptest.NewRequest(http.MethodPost, endpointPath, nil)
		r.URL.Path = path
		r.Header.Set(groupHeader, "forged")
		fr := &front{hasGroup: func(asked string, _ *auth.TokenInfo) bool { return asked == "dev" }}
		entered := fr.enterGroup(r)
		if want := path == endpointPath || path == endpointPath+"/dev"; entered != want {
			t.Errorf("%q: entered %v", path, entered)
		}
		if got := r.Header.Get(groupHeader); got != "" && got != "dev" || entered && got != group {
			t.Errorf("%q: the header has %q", path, got)
		}
	})
}
