package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const wellKnownResource = "/.well-known/oauth-protected-resource"

// resource finds the metadata of the server as a resource (RFC 9728): at the address that the refusal names, or else at the
// well-known ones. It returns nil if there is none.
func (s Server) resource(ctx context.Context, at *url.URL, named string) (*oauthex.ProtectedResourceMetadata, error) {
	root := origin(at) + wellKnownResource
	places := []string{named, root + pathOf(s.URL), root}
	for i, place := range places {
		if place == "" || i == 2 && place == places[1] {
			continue
		}
		found, err := s.resourceAt(ctx, at, place)
		if err == nil {
			found, err = s.confirmed(ctx, at, place, found)
		}
		if !errors.Is(err, errAbsent) {
			return found, err
		}
	}
	return nil, nil
}

// resourceAt reads the metadata of a resource that is the server, or contains it.
func (s Server) resourceAt(ctx context.Context, at *url.URL, place string) (*oauthex.ProtectedResourceMetadata, error) {
	var found oauthex.ProtectedResourceMetadata
	if err := getJSON(ctx, s.HTTP, place, &found); err != nil {
		return nil, err
	}
	if !Covers(found.Resource, s.URL) {
		return nil, fmt.Errorf("the metadata of %s is that of another resource, %q: it is not used",
			origin(at), texts.Cut(found.Resource, maxWords))
	}
	return &found, nil
}

// confirmed returns metadata as it is if its resource is the server itself. Metadata of a parent counts only at the
// well-known address of the parent: otherwise one tenant of a host could get tokens for all of it.
func (s Server) confirmed(
	ctx context.Context, at *url.URL, place string, found *oauthex.ProtectedResourceMetadata,
) (*oauthex.ProtectedResourceMetadata, error) {
	own := origin(at) + wellKnownResource + pathOf(found.Resource)
	if pathOf(found.Resource) == pathOf(s.URL) || place == own {
		return found, nil
	}
	parent, err := s.resourceAt(ctx, at, own)
	if errors.Is(err, errAbsent) || err == nil && pathOf(parent.Resource) != pathOf(found.Resource) {
		return nil, fmt.Errorf("%s names the resource %q, which does not say so itself at %s: it is not used",
			texts.Cut(place, maxWords), texts.Cut(found.Resource, maxWords), texts.Cut(own, maxWords))
	}
	return parent, err
}

// pathOf is the path of an address, without a slash at its end.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.EscapedPath(), "/")
}

// Covers reports whether a token for a resource may go to a server's address: the resource is the server itself, or
// contains it by whole segments of the path on the same origin, as servers with several endpoints name themselves.
func Covers(resource, address string) bool {
	r, err1 := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err1 != nil || err2 != nil || r.User != nil || r.Fragment != "" || r.RawQuery != "" || r.Opaque != "" || r.Host == "" {
		return false
	}
	if !strings.EqualFold(r.Scheme, a.Scheme) || hostPort(r) != hostPort(a) {
		return false
	}
	outer, inner := pathOf(resource), pathOf(address)
	return outer == inner || strings.HasPrefix(inner, outer+"/")
}

// hostPort is the host of an address with the port, also where that is the usual one.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return hostOf(u) + ":" + port
}

// canonical is the address of a server as a resource (RFC 8707). Its query is left out, because it may be a secret.
func canonical(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
}

// An issuer is the metadata of an authorization server (RFC 8414, or OpenID Connect Discovery).
type issuer struct {
	oauthex.AuthServerMeta
	DeviceEndpoint string `json:"device_authorization_endpoint"` // RFC 8628
}

// metadataPlaces are the well-known addresses of an issuer's metadata, in the order of the specification.
func metadataPlaces(u *url.URL) []string {
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if path == "" {
		return []string{origin(u) + oauth, origin(u) + oidc}
	}
	return []string{origin(u) + oauth + path, origin(u) + oidc + path, origin(u) + path + oidc}
}

// findIssuer reads the metadata of an issuer that a server names.
func findIssuer(ctx context.Context, c *http.Client, name string) (*issuer, error) {
	u, err := parse(c, name)
	if err != nil {
		return nil, err
	}
	for _, place := range metadataPlaces(u) {
		var found issuer
		err := getJSON(ctx, c, place, &found)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err == nil {
			err = found.check(c, name)
		}
		return &found, err
	}
	return nil, fmt.Errorf("%s: %w: it has no metadata of an authorization server", shown(u), errAbsent)
}

// configuredIssuer reads the metadata at the address that the operator has configured. The issuer is at the same host, or
// is configured too.
func configuredIssuer(ctx context.Context, s Server) (*issuer, error) {
	u, err := parse(s.HTTP, s.MetadataURL)
	if err != nil {
		return nil, err
	}
	var found issuer
	if err := getJSON(ctx, s.HTTP, s.MetadataURL, &found); err != nil {
		return nil, err
	}
	name := s.Issuer
	if named, err := url.Parse(found.Issuer); name == "" && err == nil && origin(named) == origin(u) {
		name = found.Issuer
	}
	return &found, found.check(s.HTTP, name)
}

// check refuses metadata of another issuer, without PKCE, and with addresses that secrets must not go to.
func (i *issuer) check(c *http.Client, name string) error {
	if !SameIssuer(i.Issuer, name) {
		return fmt.Errorf("the metadata of the issuer %q is that of another issuer, %q: it is not used",
			texts.Cut(name, maxWords), texts.Cut(i.Issuer, maxWords))
	}
	if !slices.Contains(i.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %s does not say that it protects codes with PKCE and S256: it is not used",
			texts.Cut(i.Issuer, maxWords))
	}
	for _, one := range []struct {
		name, address string
		needed        bool
	}{
		{"authorization_endpoint", i.AuthorizationEndpoint, i.DeviceEndpoint == ""},
		{"token_endpoint", i.TokenEndpoint, true},
		{"registration_endpoint", i.RegistrationEndpoint, false},
		{"revocation_endpoint", i.RevocationEndpoint, false},
		{"device_authorization_endpoint", i.DeviceEndpoint, false},
	} {
		if one.address == "" && !one.needed {
			continue
		}
		if _, err := parse(c, one.address); err != nil {
			return fmt.Errorf("%s of the authorization server %s: %w", one.name, texts.Cut(i.Issuer, maxWords), err)
		}
	}
	return nil
}

// Moved says what a person should know before a sign-in if the server has named another issuer before; empty: nothing. There is
// no question if the operator has chosen the issuer.
func (t *Target) Moved() string {
	if t.Earlier == "" || t.server.pinned() {
		return ""
	}
	return fmt.Sprintf("the last sign-in was at %s, and the server now names %s: go on only if you know why",
		texts.Cut(t.Earlier, maxWords), texts.Cut(t.Issuer, maxWords))
}

// Warning says what a person should know before a sign-in in a browser; empty: nothing.
func (t *Target) Warning() string {
	return strings.Join(slices.DeleteFunc([]string{t.Moved(), t.mixUp()}, func(text string) bool { return text == "" }), "; ")
}

// mixUp warns of an answer that may be that of another issuer, because it does not name its own: metadata of a hostile one could
// send the person to an honest one, and the code to itself. Many honest issuers have two hosts, so this is no error, and no
// question if the operator has chosen the issuer.
func (t *Target) mixUp() string {
	people, err1 := url.Parse(t.issuer.AuthorizationEndpoint)
	tokens, err2 := url.Parse(t.issuer.TokenEndpoint)
	if err1 != nil || err2 != nil || t.issuer.AuthorizationEndpoint == "" || origin(people) == origin(tokens) ||
		t.issuer.AuthorizationResponseIssParameterSupported || t.server.pinned() {
		return ""
	}
	return fmt.Sprintf("the sign-in is at %s, and %s gets its result: go on only if both belong to %s, or set oauth.issuer",
		texts.Cut(origin(people), maxWords), texts.Cut(origin(tokens), maxWords), texts.Cut(t.Issuer, maxWords))
}

// SameIssuer compares issuers. Many servers name theirs with or without a slash at the end.
func SameIssuer(a, b string) bool {
	return b != "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// parse reads an address that a server has named, and refuses it if requests of c must not go there.
func parse(c *http.Client, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return nil, errors.New("there is no address")
	}
	if g, ok := c.Transport.(*guard); ok {
		return u, g.check(u)
	}
	return u, checkAddress(u)
}
