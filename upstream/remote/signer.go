package remote

import (
	"context"
	"crypto/tls"
	"net/http"
)

// A signer adds tokens to requests, and gets others when they are refused.
type signer interface {
	// sign adds the current token to a request, if there is one for it, and returns the token.
	sign(req *http.Request) (token string, err error)

	// renew gets another token after a refusal, and reports whether the request should be made again. If not, and there is
	// no error, it leaves the answer as it is.
	renew(ctx context.Context, refused string, req *http.Request, resp *http.Response) (retry bool, err error)
}

// signer returns what signs the requests to the endpoint, or nil: nothing else than its headers do.
func (t *client) signer(own, others *tls.Config) (signer, error) {
	switch {
	case t.OAuth != nil:
		return t.OAuth.signer(t.base, t.baseTransport(others), t.target)
	case t.signsPerson():
		return newPerson(t.Endpoint, own, others), nil
	}
	return nil, nil
}

// signs reports whether requests have tokens: a program signs in, or somebody has done so.
func (t *client) signs() bool {
	p, ok := t.auth.(*person)
	return t.auth != nil && (!ok || p.signedIn())
}
