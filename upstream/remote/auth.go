package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// signInWait bounds one request of a sign-in.
const signInWait = 30 * time.Second

// OAuth signs in as a program, with the grant of client credentials. Where and with which scopes to sign in the server
// says, but the secret goes to the host of Issuer or of Token and to no other, whatever the server says.
type OAuth struct {
	Issuer       string // address of the authorization server
	Token        string // address at which it gives tokens, where that is at another host; empty: at Issuer's
	ClientID     string
	ClientSecret string
}

// signer makes a signer of the settings, which may be nil. The server itself is asked through own, everybody else
// through others.
func (o *OAuth) signer(own, others http.RoundTripper, target *url.URL) (*signer, error) {
	if o == nil {
		return nil, nil
	}
	allowed := map[string]bool{}
	for _, raw := range []string{o.Issuer, o.Token} {
		if raw == "" {
			continue
		}
		u, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("the address of the authorization server: %w", err)
		}
		allowed[place(u)] = true
	}
	if o.Issuer == "" || o.ClientID == "" || o.ClientSecret == "" {
		return nil, errors.New("it needs issuer, clientId and clientSecret")
	}
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID: o.ClientID, Issuer: o.Issuer,
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret},
		},
		HTTPClient: &http.Client{
			Transport:     &errand{own: own, others: others, secretTo: allowed, readFrom: place(target)},
			Timeout:       signInWait,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		return nil, err
	}
	return &signer{handler: handler}, nil
}

// An errand carries the requests of a sign-in, to the hosts that they are for.
type errand struct {
	own, others http.RoundTripper
	secretTo    map[string]bool // schemes and hosts that may get the secret
	readFrom    string          // the server's own, which says where to sign in
}

// RoundTrip implements [http.RoundTripper].
func (e *errand) RoundTrip(req *http.Request) (*http.Response, error) {
	to := place(req.URL)
	switch {
	case to == e.readFrom && (e.secretTo[to] || req.Method == http.MethodGet):
		return e.own.RoundTrip(req)
	case e.secretTo[to]:
		return e.others.RoundTrip(req)
	}
	return nil, fmt.Errorf("the server names %s for signing in, which is not the configured authorization server", to)
}

// A signer adds tokens to requests, and signs in when they are refused: one at a time, however many are refused.
type signer struct {
	handler auth.OAuthHandler

	mu sync.Mutex // held while signing in: all requests wait for that
}

// sign adds the token that there is, if there is one, and returns it.
func (s *signer) sign(ctx context.Context, h http.Header) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := s.token(ctx)
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return token, err
}

// token returns the token that there is, or nothing. s.mu is held: handlers do not guard it.
func (s *signer) token(ctx context.Context) (string, error) {
	source, err := s.handler.TokenSource(ctx)
	if err != nil || source == nil {
		return "", err
	}
	token, err := source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant":
		return "", nil // the request will be refused, and then we sign in
	case err != nil:
		return "", err
	}
	return token.AccessToken, nil
}

// renew signs in, unless somebody else has since the request was made with a token that was refused.
func (s *signer) renew(ctx context.Context, refused string, req *http.Request, resp *http.Response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, err := s.token(ctx); err == nil && now != "" && now != refused {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
		return resp.Body.Close()
	}
	if err := s.handler.Authorize(context.WithoutCancel(ctx), req, resp); err != nil {
		return fmt.Errorf("signing in: %w", err)
	}
	return nil
}
