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
type bounded struct{ base *http.Transport }

// CloseIdleConnections is for that of [http.Client].
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

// paced fetches keys only once in a while, and remembers which there were.
type paced struct {
	base http.RoundTripper

	mu   sync.Mutex
	last time.Time       // guarded by mu
	ids  map[string]bool // of the keys of the latest answer, guarded by mu
}

// RoundTrip implements [http.RoundTripper].
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil && !p.turn() { // it is where one begins, and none is led to
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

// note remembers the keys of an answer by their ids, which the library does not tell.
func (p *paced) note(answer []byte) {
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if json.Unmarshal(answer, &set) != nil {
		return // the library says what is wrong
	}
	ids := map[string]bool{}
	for _, key := range set.Keys {
		ids[key.ID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
}

// knows reports whether the issuer has told of a key.
func (p *paced) knows(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return id != "" && p.ids[id]
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

// any reports whether the issuer has told of a key at all.
func (p *paced) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ids) > 0
}

// keys are those of an issuer.
type keys struct {
	remote *oidc.RemoteKeySet
	paced  *paced

	mu  sync.Mutex
	why string // there is none; empty: there are some. Guarded by mu
}

// verify checks a signature, for which the library fetches keys where it does not have the one of the token. It takes note
// of whether there are any.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil || errors.Is(err, errSoon): // it is as it was
	case unfetched(err) && k.why == "": // those that there are stay
	case unfetched(err):
		k.why = shortened(err.Error())
	case k.paced.any():
		k.why = ""
	default:
		k.why = "it has told of none"
	}
	return payload, err
}

// lacking says why there is no key, or nothing.
func (k *keys) lacking() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why
}

// stranger is a token with a key that no issuer has.
const stranger = "eyJhbGciOiJFUzI1NiIsImtpZCI6Im5vYm9keSdzIn0.e30.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// renew fetches the keys again. The library does so for a token whose key it does not have; those that it has stay where
// none can be fetched.
func (k *keys) renew(ctx context.Context) error {
	if _, err := k.verify(ctx, stranger); unfetched(err) && !errors.Is(err, errSoon) {
		return err
	}
	return nil
}

// unfetched reports whether an error of the library is that the keys could not be fetched, which it says in words alone.
func unfetched(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "fetching keys ") }

// An attempt is one check of a signature, with what came of it: the library's error does not say.
type attempt struct {
	*keys
	tried   bool
	payload []byte // of a token whose signature is right
	never   bool   // no key that may come makes the signature right
	err     error
}

// VerifySignature implements [oidc.KeySet].
func (a *attempt) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	a.tried = true
	a.payload, a.err = a.verify(ctx, token)
	if a.err == nil {
		return a.payload, nil
	}
	h := headOf(token)
	known := a.paced.knows(h.ID)
	if known && a.soon() { // the keys may have come after the library had looked among those that it had
		a.payload, a.err = a.verify(ctx, token)
	}
	a.never = known || len(h.Critical) > 0 || h.Key != nil
	return a.payload, a.err
}

// A head is what a token says of its signature.
type head struct {
	ID       string          `json:"kid"`
	Type     string          `json:"typ"`
	Critical json.RawMessage `json:"crit"` // what has to be understood, and is not
	Key      json.RawMessage `json:"jwk"`  // the key of whoever has signed, which proves nothing
}

func headOf(token string) head {
	var h head
	text, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return head{}
	}
	return h
}

// soon reports whether the key of a token may be one that we are not to ask for yet.
func (a *attempt) soon() bool { return errors.Is(a.err, errSoon) }
