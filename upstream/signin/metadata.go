package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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
