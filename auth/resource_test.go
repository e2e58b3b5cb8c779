package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/auth"
)

// TestMetadataOfGroups: the refusal at the path of a group names its metadata, whose resource is that path, as clients check it.
// It is the same for a group that is not there.
func TestMetadataOfGroups(t *testing.T) {
	guard := &auth.Guard{Resource: &auth.Resource{Issuer: "https://login.example.com", Public: "https://mcp.example.com"}}
	h := guard.Protect(http.NotFoundHandler())
	const metadata = "/.well-known/oauth-protected-resource"
	for path, resource := range map[string]string{
		"/mcp":       "/mcp",
		"/mcp/dev":   "/mcp/dev",
		"/mcp/gone":  "/mcp/gone",
		"/mcp/a/b":   "/mcp",
		"/mcp/":      "/mcp",
		"/metrics":   "/mcp",
		"/mcp/%22,x": "/mcp/%22,x",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if got := w.Header().Get("WWW-Authenticate"); !strings.Contains(got, `resource_metadata="https://mcp.example.com`+metadata+resource+`"`) {
			t.Errorf("%s: got %s", path, got)
		}
	}
	for path, want := range map[string]string{
		metadata: `"resource":"https://mcp.example.com"`, metadata + "/mcp": `"resource":"https://mcp.example.com/mcp"`,
		metadata + "/mcp/dev": `"resource":"https://mcp.example.com/mcp/dev"`, metadata + "/mcp/a/b": "not found", metadata + "/other": "not found",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
