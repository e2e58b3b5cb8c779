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
)

// maxIssuers is how many of the authorization servers that a resource names are tried.
const maxIssuers = 8

// ErrNotNeeded is the error of a server that works without a sign-in.
var ErrNotNeeded = errors.New("the server asks for no sign-in, and does not say where to sign in")

// A Target is where a person signs in to a server.
type Target struct {
	Issuer   string   // of the authorization server
	Resource string   // what the server calls itself
	Scopes   []string // that the sign-in asks for
	Earlier  string   // issuer of the last sign-in to the server, if it was another one

	server Server
	issuer *issuer
}

// Discover finds where to sign in. challenge is the WWW-Authenticate of the server's refusal; if it is empty, Discover asks
// the server for it.
func Discover(ctx context.Context, s Server, challenge string) (*Target, error) {
	at, err := parse(s.HTTP, s.URL)
	if err != nil {
		return nil, err
	}
	refused := challenge != ""
	if !refused {
		if challenge, refused, err = s.ask(ctx); err != nil {
			return nil, err
		}
	}
	demand := ParseChallenge(challenge)
	resource, err := s.resource(ctx, at, demand.Metadata)
	if err != nil && s.MetadataURL == "" {
		return nil, err
	}
	var found *issuer
	switch {
	case s.MetadataURL != "":
		found, err = configuredIssuer(ctx, s)
	case resource != nil:
		found, err = s.firstIssuer(ctx, resource.AuthorizationServers)
	case refused:
		found, err = s.oldIssuer(ctx, at)
	default:
		err = ErrNotNeeded
	}
	if err != nil {
		return nil, err
	}
	if resource == nil {
		resource = &oauthex.ProtectedResourceMetadata{Resource: canonical(at)}
	}
	return &Target{
		Issuer: found.Issuer, Resource: resource.Resource, Scopes: s.scopes(demand, resource, found),
		server: s, issuer: found,
	}, nil
}

// firstIssuer returns the first authorization server that works.
func (s Server) firstIssuer(ctx context.Context, names []string) (*issuer, error) {
	if s.Issuer != "" {
		if !slices.ContainsFunc(names, func(name string) bool { return SameIssuer(name, s.Issuer) }) {
			return nil, fmt.Errorf("the server does not name the configured issuer %s for signing in", s.Issuer)
		}
		names = []string{s.Issuer}
	}
	err := errors.New("the server names no authorization server")
	var failed []error
	for _, name := range names[:min(len(names), maxIssuers)] {
		found, one := findIssuer(ctx, s.HTTP, name)
		if one == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, one)
		err = errors.Join(failed...)
	}
	return nil, err
}

// oldIssuer is the authorization server of a server of 2025-03-26, at its own root. Every later revision demands metadata
// of the resource, so a server that refuses requests and has none is that old; its sign-in has fixed addresses if it has no
// metadata at all. They are on the server's own origin, so no other host gets a code or a token.
func (s Server) oldIssuer(ctx context.Context, at *url.URL) (*issuer, error) {
	root := origin(at)
	if s.Issuer != "" && !SameIssuer(s.Issuer, root) {
		return findIssuer(ctx, s.HTTP, s.Issuer)
	}
	found, err := findIssuer(ctx, s.HTTP, root)
	if !errors.Is(err, errAbsent) {
		return found, err
	}
	return &issuer{AuthServerMeta: oauthex.AuthServerMeta{
		Issuer: root, AuthorizationEndpoint: root + "/authorize", TokenEndpoint: root + "/token",
		RegistrationEndpoint: root + "/register",
	}}, nil
}

// At returns the place where a person signs in for a resource at an issuer that the operator has named.
func At(ctx context.Context, s Server, resource string) (*Target, error) {
	found, err := findIssuer(ctx, s.HTTP, s.Issuer)
	if err != nil {
		return nil, err
	}
	return &Target{Issuer: found.Issuer, Resource: resource, Scopes: s.Scopes, server: s, issuer: found}, nil
}

// maxChallenge bounds a header that is parsed, in bytes: the parser's time grows with the square.
const maxChallenge = 8 << 10

// A Challenge is what a server demands when it refuses a request.
type Challenge struct {
	Metadata string   // address of the metadata of the resource; empty: not named
	Scopes   []string // that the request needs; nil: not named
	Code     string   // such as insufficient_scope
}

// ParseChallenge reads the value of a WWW-Authenticate header. It ignores what it does not understand: then the server's
// well-known addresses say where to sign in.
func ParseChallenge(header string) (c Challenge) {
	if len(header) > maxChallenge {
		return c
	}
	all, err := oauthex.ParseWWWAuthenticate([]string{header})
	if err != nil {
		return c
	}
	for _, one := range all {
		if one.Scheme != "bearer" {
			continue
		}
		c = Challenge{one.Params["resource_metadata"], scopesIn(one.Params["scope"]), plain(one.Params["error"], 60, nil)}
		if c.Metadata != "" {
			break
		}
	}
	return c
}

// Requests that a server refuses unless it works without a sign-in. Some servers refuse only the first, which begins no
// session; some know it only in a session, and refuse the second.
const (
	question1 = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	question2 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"mcsh","version":"0"}}}`
)

// ask makes requests without a token. It returns the challenge of a refusal, and whether there was one.
func (s Server) ask(ctx context.Context) (challenge string, refused bool, err error) {
	for _, question := range []string{question1, question2} {
		if challenge, refused, err = s.askOnce(ctx, question); refused || err != nil {
			break
		}
	}
	return challenge, refused, err
}

func (s Server) askOnce(ctx context.Context, question string) (challenge string, refused bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(question))
	if err != nil {
		return "", false, errors.New("the address of the server is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return "", false, withoutAddress(req.URL, err)
	}
	_ = resp.Body.Close() // only the header counts
	if resp.StatusCode != http.StatusUnauthorized {
		return "", false, nil
	}
	return bestChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
}

// bestChallenge picks the header that says most.
func bestChallenge(headers []string) (best string) {
	for _, header := range headers {
		if best == "" || ParseChallenge(header).Metadata != "" {
			best = header
		}
	}
	return best
}
