package signin

import (
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

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
