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

// OAuth signs in as a program, with the grant of client credentials. The server says where and with which scopes to sign
// in, but the secret goes only to the host of Issuer or of Token.
type OAuth struct {
	Issuer       string // address of the authorization server
	Token        string // address of its tokens, if that is on another host; empty: on Issuer's
	ClientID     string
	ClientSecret string
}

// signer makes a signer of the settings. Requests to the server itself go through own, all others through others.
func (o *OAuth) signer(own, others http.RoundTripper, target *url.URL) (signer, error) {
	allowed := map[string]bool{}
	for _, raw := range []string{o.Issuer, o.Token} {
		if raw == "" {
			continue
		}
		u, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("the address of the authorization server: %w", err)
		}
		allowed[origin(u)] = true
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
			Transport:     &signInTripper{own: own, others: others, secretTo: allowed, readFrom: origin(target)},
			Timeout:       signInWait,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	})
	if err != nil {
		return nil, err
	}
	return &program{handler: handler}, nil
}

// maxSignIn bounds one answer of a sign-in, in bytes.
const maxSignIn = 1 << 20

// A signInTripper sends the requests of a sign-in, only to the hosts that they are for.
type signInTripper struct {
	own, others http.RoundTripper
	secretTo    map[string]bool // schemes and hosts that may get the secret
	readFrom    string          // the server's own, for the metadata that says where to sign in
}

// RoundTrip implements [http.RoundTripper].
func (e *signInTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	to := origin(req.URL)
	by := e.others
	switch {
	case to == e.readFrom && (e.secretTo[to] || req.Method == http.MethodGet):
		by = e.own
	case !e.secretTo[to]:
		return nil, fmt.Errorf("the server names %s for signing in, which is not the configured authorization server", to)
	}
	resp, err := by.RoundTrip(req)
	if err == nil {
		resp.Body = &cappedBody{ReadCloser: resp.Body, left: maxSignIn, limit: maxSignIn}
	}
	return resp, err
}

// A program signs in by itself when requests are refused: one sign-in at a time, however many are refused.
type program struct {
	handler auth.OAuthHandler

	mu sync.Mutex // held while signing in: all requests wait for that
}

// sign implements [signer].
func (s *program) sign(req *http.Request) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := s.token(req.Context())
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return token, err
}

// token returns the current token, or nothing. s.mu is held: handlers do not guard it.
func (s *program) token(ctx context.Context) (string, error) {
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

// renew implements [signer]. It signs in, unless another request has done so since the token was refused.
func (s *program) renew(ctx context.Context, refused string, req *http.Request, resp *http.Response) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, err := s.token(ctx); err == nil && now != "" && now != refused {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
		return true, resp.Body.Close()
	}
	if err := s.handler.Authorize(context.WithoutCancel(ctx), req, resp); err != nil {
		return false, fmt.Errorf("signing in: %w", err)
	}
	return true, nil
}
