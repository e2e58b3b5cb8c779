package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/internal/texts"
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
	Scopes                 []string // to ask for in place of those that the server names; nil: those of its refusal, or else those that it supports
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

// Ways in which a client proves to a token endpoint who it is.
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// maxID bounds the names and secrets that a server gives, in bytes.
const maxID = 8 << 10

// client is what the authorization server knows us as: a client that somebody has registered there, or the address of the
// document about us, or else a new one. redirectURI is empty for a sign-in on another device.
func (t *Target) client(ctx context.Context, redirectURI string) (logins.Client, error) {
	s, methods := t.server, t.issuer.TokenEndpointAuthMethodsSupported
	switch {
	case s.ClientSecret != "" && !s.pinned():
		return logins.Client{}, fmt.Errorf("the configured secret of the client is not sent to %s, which the server has named: "+
			"set oauth.authServerMetadataUrl", texts.Cut(t.Issuer, maxWords))
	case s.ClientID != "" && s.ClientSecret != "":
		return logins.Client{ID: s.ClientID, Secret: s.ClientSecret, AuthMethod: secretMethod(methods)}, nil
	case s.ClientID != "":
		return logins.Client{ID: s.ClientID, AuthMethod: authNone}, nil
	case s.ClientMetadataURL != "" && t.issuer.ClientIDMetadataDocumentSupported:
		return logins.Client{ID: s.ClientMetadataURL, AuthMethod: authNone}, nil
	case t.issuer.RegistrationEndpoint != "":
		return t.register(ctx, redirectURI)
	}
	return logins.Client{}, fmt.Errorf("%s does not register clients by itself: register one there, with the redirect address "+
		"http://localhost:PORT/callback, and set oauth.clientId and callbackPort", texts.Cut(t.Issuer, maxWords))
}

// secretMethod picks how to send a secret: every server must know the first.
func secretMethod(supported []string) string {
	if slices.Contains(supported, authPost) && !slices.Contains(supported, authBasic) {
		return authPost
	}
	return authBasic
}

// A registration is the request for a new client. An empty list of response types says something else than none.
type registration struct {
	oauthex.ClientRegistrationMetadata
	ResponseTypes []string `json:"response_types"`
}

// register makes a new client (RFC 7591). It asks for one without a secret where the server knows those, as programs on a
// person's machine should be.
func (t *Target) register(ctx context.Context, redirectURI string) (logins.Client, error) {
	method := secretMethod(t.issuer.TokenEndpointAuthMethodsSupported)
	if known := t.issuer.TokenEndpointAuthMethodsSupported; len(known) == 0 || slices.Contains(known, authNone) {
		method = authNone
	}
	wanted := registration{oauthex.ClientRegistrationMetadata{
		ClientName: "mcsh", TokenEndpointAuthMethod: method, Scope: joined(t.Scopes),
		GrantTypes: []string{"authorization_code", "refresh_token"}, ApplicationType: "native", RedirectURIs: []string{redirectURI},
	}, []string{"code"}}
	if redirectURI == "" {
		wanted.GrantTypes, wanted.ResponseTypes, wanted.RedirectURIs = []string{grantDevice, "refresh_token"}, []string{}, []string{}
	} else if u, err := url.Parse(redirectURI); err == nil && !isLoopback(u.Hostname()) {
		wanted.ApplicationType = "web"
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return logins.Client{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.issuer.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return logins.Client{}, errors.New("the address for registering clients is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	status, _, answer, err := do(t.server.HTTP, req)
	if err == nil && status != http.StatusCreated && status != http.StatusOK {
		err = refusalIn(req.URL, status, answer)
	}
	if err != nil {
		return logins.Client{}, fmt.Errorf("registering a client: %w", err)
	}
	return registered(answer, method)
}

// registered reads the answer of a registration.
func registered(answer []byte, asked string) (logins.Client, error) {
	var r struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
		Ends   int64  `json:"client_secret_expires_at"`
	}
	if err := json.Unmarshal(answer, &r); err != nil || r.ID == "" || len(r.ID) > maxID || len(r.Secret) > maxID {
		return logins.Client{}, errors.New("registering a client: the answer is not as the specification says")
	}
	c := logins.Client{ID: r.ID, Secret: r.Secret, AuthMethod: r.Method}
	switch {
	case c.Secret == "":
		c.AuthMethod = authNone
	case c.AuthMethod == "" && asked != authNone:
		c.AuthMethod = asked
	case c.AuthMethod == "":
		c.AuthMethod = authBasic
	}
	if !slices.Contains([]string{authNone, authBasic, authPost}, c.AuthMethod) {
		return logins.Client{}, fmt.Errorf("registering a client: the server wants the method %.60q, which is not supported",
			c.AuthMethod)
	}
	if r.Ends > 0 && c.Secret != "" {
		c.Expiry = time.Unix(r.Ends, 0)
	}
	return c, nil
}
