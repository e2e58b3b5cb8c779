package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// maxAnswer bounds what an issuer says. Key sets of large ones are some ten kilobytes.
	maxAnswer = 1 << 20
	// keyPause is how long no keys are fetched after they have been. Whoever sends tokens that are not known would have us
	// ask the issuer as often; a key that is new waits no longer than that.
	keyPause = 5 * time.Second
)

// errSoon is wrapped by the error of keys that were fetched a moment ago.
var errSoon = errors.New("they were asked for a moment ago")

// bounded cuts off answers that are too long.
type bounded struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	w, err := b.base.RoundTrip(r)
	if err == nil {
		w.Body = &boundedBody{ReadCloser: w.Body, left: maxAnswer}
	}
	return w, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// paced fetches keys only once in a while.
type paced struct {
	base http.RoundTripper

	mu   sync.Mutex
	last time.Time // guarded by mu
}

// RoundTrip implements [http.RoundTripper].
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil && !p.turn() { // it is where one begins, and none is led to
		return nil, errSoon
	}
	return p.base.RoundTrip(r)
}

// turn reports whether it is time again.
func (p *paced) turn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.last.IsZero() || now.Sub(p.last) >= keyPause {
		p.last = now
		return true
	}
	return false
}

// keys are those of an issuer.
type keys struct{ remote *oidc.RemoteKeySet }

// An attempt is one check of a signature, with what came of it: the library's error does not say.
type attempt struct {
	*keys
	tried   bool
	payload []byte // of a token whose signature is right
	err     error
}

// VerifySignature implements [oidc.KeySet].
func (a *attempt) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	a.tried = true
	a.payload, a.err = a.remote.VerifySignature(ctx, token)
	return a.payload, a.err
}

// soon reports whether the key of a token may be one that we are not to ask for yet.
func (a *attempt) soon() bool { return errors.Is(a.err, errSoon) }

// unfetched reports whether the keys could not be fetched. The library says so in words alone.
func (a *attempt) unfetched() bool {
	return a.err != nil && strings.HasPrefix(a.err.Error(), "fetching keys ")
}
