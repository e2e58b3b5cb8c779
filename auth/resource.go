package auth

import (
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	endpointPath = "/mcp"
	metadataPath = wellKnown + "oauth-protected-resource"
)

// A Resource serves the metadata by which clients find the issuer of tokens (RFC 9728).
type Resource struct {
	Issuer string   // the authorization server
	Scopes []string // that a token needs

	// Public is the address of the gateway as clients see it, without a path, such as https://mcp.example.com. If it is
	// empty, the Host of each request is used, which has been checked before.
	Public string
}

// serves reports whether a path is one of the metadata.
func (s *Resource) serves(path string) bool {
	below, ok := strings.CutPrefix(path, metadataPath)
	return s != nil && ok && (below == "" || isEndpoint(below))
}

// isEndpoint reports whether a path is that of the endpoint, or of a group in it. Which groups there are is no secret to keep
// here: the answer is the same for all.
func isEndpoint(path string) bool {
	group, below := strings.CutPrefix(path, endpointPath+"/")
	return path == endpointPath || below && group != "" && !strings.Contains(group, "/")
}

// ServeHTTP answers with the metadata of the resource whose path follows the well-known path.
func (s *Resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Host")
	sdk.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource:               s.base(r) + strings.TrimPrefix(r.URL.Path, metadataPath),
		AuthorizationServers:   []string{s.Issuer},
		ScopesSupported:        s.Scopes,
		BearerMethodsSupported: []string{"header"},
		ResourceName:           "mcsh",
	}).ServeHTTP(w, r)
}

// metadataURL returns the URL of the metadata of the endpoint that a request is for.
func (s *Resource) metadataURL(r *http.Request) string {
	if isEndpoint(r.URL.Path) {
		return s.base(r) + metadataPath + described(r.URL.EscapedPath())
	}
	return s.base(r) + metadataPath + endpointPath
}

func (s *Resource) base(r *http.Request) string {
	switch {
	case s.Public != "":
		return strings.TrimSuffix(s.Public, "/")
	case r.TLS != nil:
		return "https://" + described(r.Host)
	}
	return "http://" + described(r.Host)
}
