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

// A Resource is how clients find out where to get a token (RFC 9728).
type Resource struct {
	Issuer string   // the authorization server
	Scopes []string // what a token has to be given for

	// Public is the address of the gateway as clients see it, without a path, such as https://mcp.example.com. Empty: it
	// is the Host of each request, whose name has been looked at before.
	Public string
}

// serves reports whether a path is that of the metadata.
func (s *Resource) serves(path string) bool {
	return s != nil && (path == metadataPath || path == metadataPath+endpointPath)
}

// ServeHTTP answers with the metadata. Below the well-known path stands that of the resource which follows it.
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

// metadataURL is where the metadata of the endpoint is.
func (s *Resource) metadataURL(r *http.Request) string {
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
