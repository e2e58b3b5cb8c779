package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
)

const (
	// maxAnswer bounds an answer of an issuer. Large key sets have some ten kilobytes.
	maxAnswer = 1 << 20
	// keyPause is the shortest time between two fetches of keys: otherwise each token with an unknown key would cause a
	// request to the issuer. Tokens with a new key may have to wait so long.
	keyPause = 5 * time.Second
)

// errSoon is wrapped by the error of a fetch before keyPause is over.
var errSoon = errors.New("they were asked for a moment ago")

// bounded refuses the rest of an answer that is too long.
type bounded struct{ base *http.Transport }

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (b bounded) CloseIdleConnections() { b.base.CloseIdleConnections() }

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

// paced limits the rate of key fetches, and remembers the ids of the keys.
type paced struct {
	base http.RoundTripper

	mu   sync.Mutex
	last time.Time       // guarded by mu
	ids  map[string]bool // of the keys of the latest answer; the map does not change; guarded by mu
}

// RoundTrip implements [http.RoundTripper].
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil && !p.turn() { // redirects of a fetch are not counted
		return nil, errSoon
	}
	w, err := p.base.RoundTrip(r)
	if err != nil || w.StatusCode != http.StatusOK {
		return w, err
	}
	defer w.Body.Close()
	data, err := io.ReadAll(w.Body)
	if err != nil {
		return nil, err
	}
	w.Body = io.NopCloser(bytes.NewReader(data))
	p.note(data)
	return w, nil
}

// note remembers the ids of the keys in an answer, which the library does not expose.
func (p *paced) note(answer []byte) {
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if json.Unmarshal(answer, &set) != nil {
		return // the library reports the error
	}
	ids := map[string]bool{}
	for _, key := range set.Keys {
		ids[key.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
}

// latest returns the ids of the keys in the issuer's latest answer.
func (p *paced) latest() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids
}

// turn reports whether a fetch is allowed now, and counts it.
func (p *paced) turn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.last.IsZero() || now.Sub(p.last) >= keyPause {
		p.last = now
		return true
	}
	return false
}

// keys are the keys of an issuer.
type keys struct {
	remote *oidc.RemoteKeySet
	paced  *paced

	mu  sync.Mutex
	why string // the reason why there are no keys, or empty; guarded by mu
}

// verify checks a signature and updates why. The library fetches keys if it lacks the token's key.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil || errors.Is(err, errSoon): // nothing was learned
	case unfetched(err) && k.why == "": // the old keys stay in use
	case unfetched(err):
		k.why = shortened(err.Error())
	case len(k.paced.latest()) > 0:
		k.why = ""
	default:
		k.why = "it has told of none"
	}
	return payload, err
}

// lacking returns the reason why there are no keys, or "".
func (k *keys) lacking() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why
}

// unknownKey is a token signed with a key that no issuer has.
const unknownKey = "eyJhbGciOiJFUzI1NiIsImtpZCI6Im5vYm9keSdzIn0.e30.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// renew fetches the keys again: the library does so for a token with an unknown key. If the fetch fails, the old keys
// stay in use.
func (k *keys) renew(ctx context.Context) error {
	if _, err := k.verify(ctx, unknownKey); unfetched(err) && !errors.Is(err, errSoon) {
		return err
	}
	return nil
}

// unfetched reports whether the library could not fetch the keys. Only the text of its error tells.
func unfetched(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "fetching keys ") }

// An attempt records the outcome of one signature check, which the library's error does not tell.
type attempt struct {
	*keys
	tried   bool
	names   exactjson.Names // the claims that matter
	payload []byte          // of a token with a valid signature
	never   bool            // no new key can make the signature valid
	err     error
	unclear error // the signature is valid, but the head or the claims are ambiguous
}

// VerifySignature implements [oidc.KeySet]. It refuses ambiguous claims before the library reads them.
func (a *attempt) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	a.tried = true
	if a.payload, a.err = a.verify(ctx, token); a.err != nil {
		h := headOf(token)
		known := h.ID != "" && a.paced.latest()[h.ID]
		if known && errors.Is(a.err, errSoon) { // another request fetched the key after the library had missed it
			a.payload, a.err = a.verify(ctx, token)
		}
		a.never = known || len(h.Critical) > 0 || h.Key != nil
	}
	if a.err != nil {
		return nil, a.err
	}
	if _, err := exactjson.Members(headText(token), headNames); err != nil {
		a.unclear = fmt.Errorf("in its head %w", err)
	} else if _, err := exactjson.Members(a.payload, a.names); err != nil {
		a.unclear = fmt.Errorf("in its claims %w", err)
	}
	return a.payload, a.unclear
}

// A head is the header of a token.
type head struct {
	ID       string          `json:"kid"`
	Type     string          `json:"typ"`
	Critical json.RawMessage `json:"crit"` // extensions that must be understood, and are not
	Key      json.RawMessage `json:"jwk"`  // the signer's own key, which proves nothing
}

func headOf(token string) head {
	var h head
	if json.Unmarshal(headText(token), &h) != nil {
		return head{}
	}
	return h
}

// headText returns the header of a token as JSON, or nil.
func headText(token string) []byte {
	text, _, _ := strings.Cut(token, ".")
	data, _ := base64.RawURLEncoding.DecodeString(text)
	return data
}
