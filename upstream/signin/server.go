package signin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// A Server is an MCP server to sign in to, as it is configured.
type Server struct {
	Name string       // in the configuration
	URL  string       // of its endpoint
	HTTP *http.Client // of [NewHTTP]

	Settings

	More []string // scopes to ask for in any case: granted before, or demanded since
}

// Settings are how people sign in, as the operator says. The zero value leaves everything to the server.
type Settings struct {
	ClientID, ClientSecret string   // of a client that somebody has registered before; empty: none
	ClientMetadataURL      string   // of the document that describes us (client ID metadata document); empty: none
	CallbackPort           int      // of the redirect URI, as it is registered; 0: any
	MetadataURL            string   // of the authorization server's metadata; empty: the server says
	Issuer                 string   // the only authorization server that is accepted; empty: any that the server names
	Scopes                 []string // to ask for, whatever the server names; nil: those of its refusal, or else those that it supports
}

// pinned reports whether the operator has chosen the authorization server. Otherwise the server has, which may be hostile.
func (s Server) pinned() bool { return s.MetadataURL != "" || s.Issuer != "" }

const (
	maxScopes    = logins.MaxScopes // of one sign-in
	maxScope     = logins.MaxScope  // bytes of one
	offlineScope = "offline_access"
)

// scopesIn splits a list as requests and answers have it. Words that cannot be scopes are left out.
func scopesIn(list string) []string { return validScopes(strings.Fields(list)) }

func validScopes(list []string) (valid []string) {
	for _, scope := range list {
		if ValidScope(scope) && len(valid) < maxScopes && !slices.Contains(valid, scope) {
			valid = append(valid, scope)
		}
	}
	return valid
}

// ValidScope reports whether requests can ask for a scope.
func ValidScope(scope string) bool {
	return scope != "" && len(scope) <= maxScope &&
		!strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r > '~' })
}

// scopes chooses what to ask for: the scopes of the configuration, or else those of the refusal, or else all that the
// resource supports. More are added to them, and the scope for tokens that can be refreshed where the issuer knows it.
func (s Server) scopes(c Challenge, resource *oauthex.ProtectedResourceMetadata, issuer *issuer) []string {
	chosen := s.Scopes
	if len(chosen) == 0 {
		chosen = c.Scopes
	}
	if len(chosen) == 0 {
		chosen = resource.ScopesSupported
	}
	chosen = append(slices.Clone(chosen), s.More...)
	if slices.Contains(issuer.ScopesSupported, offlineScope) {
		chosen = append(chosen, offlineScope)
	}
	return validScopes(chosen)
}
