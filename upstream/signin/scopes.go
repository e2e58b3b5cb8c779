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
		if scope == "" || len(scope) > maxScope || len(valid) == maxScopes || slices.Contains(valid, scope) {
			continue
		}
		if !strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r > '~' }) {
			valid = append(valid, scope)
		}
	}
	return valid
}

// scopes chooses what to ask for: the scopes of the refusal, or else those of the configuration, or else all that the
// resource supports. More are added to them, and the scope for tokens that can be refreshed where the issuer knows it.
func (s Server) scopes(c Challenge, resource *oauthex.ProtectedResourceMetadata, issuer *issuer) []string {
	chosen := c.Scopes
	if len(chosen) == 0 {
		chosen = s.Scopes
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
