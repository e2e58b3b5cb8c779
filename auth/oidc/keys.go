package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxAnswer bounds an answer of an issuer. Large key sets have some ten kilobytes.
	maxAnswer = 1 << 20
	// keyPause is the shortest time between two fetches of keys: otherwise each token with an unknown key would cause a
	// request to the issuer. Tokens with a new key may have to wait so long.
	keyPause = 5 * time.Second
)

// errSoon is the error of a fetch before keyPause is over.
var errSoon = errors.New("they were asked for a moment ago")

// newClient makes a client that bounds the time of an answer, and follows only redirects to secure addresses.
func newClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Timeout:   answerTimeout,
		Transport: &http.Transport{Proxy: proxy, TLSHandshakeTimeout: answerTimeout, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) >= 3 {
				return errors.New("it leads on and on")
			}
			return checkAddress(r.URL.String())
		},
	}
}

// get reads the JSON answer of the issuer at an address.
func (i *Issuer) get(ctx context.Context, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Cache-Control", "no-cache")
	w, err := i.client.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	data, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxAnswer:
		return fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case w.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", w.Status, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("failed to decode the answer: %w", err)
	}
	return nil
}

// find fetches the issuer's configuration.
func (i *Issuer) find(ctx context.Context) bool {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	err := i.get(ctx, strings.TrimSuffix(i.o.Issuer, "/")+"/.well-known/openid-configuration", &about)
	if err == nil && about.Issuer != i.o.Issuer {
		err = fmt.Errorf("it calls itself %q", about.Issuer)
	}
	if err == nil {
		address, _, _ := strings.Cut(about.Keys, "?")
		if wrong := checkAddress(address); wrong != nil {
			err = fmt.Errorf("the address of its keys %w", wrong)
		}
	}
	if ctx.Err() != nil {
		return false
	}
	i.mu.Lock()
	was := i.why
	if i.why = notAsked; err != nil {
		i.why = shortened(err)
	} else {
		i.address = about.Keys
	}
	is := i.why
	i.mu.Unlock()
	switch {
	case err != nil && is != was:
		i.o.Notify(fmt.Sprintf("the issuer %s cannot be asked, and its tokens are refused until it can: %s", i.o.Issuer, is))
	case err == nil && was != notAsked:
		i.o.Notify(fmt.Sprintf("the issuer %s has been found", i.o.Issuer))
	}
	return err == nil
}

// renew fetches the keys. Callers at the same time share a fetch, which goes on without them. If it fails, the old keys
// stay in use.
func (i *Issuer) renew(ctx context.Context) error {
	select {
	case r := <-i.fetching.DoChan("", func() (any, error) { return nil, i.fetch() }):
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch fetches the keys unless it did so a moment ago, and notifies of a change.
func (i *Issuer) fetch() error {
	i.mu.Lock()
	address, soon := i.address, time.Since(i.fetched) < keyPause
	if !soon {
		i.fetched = time.Now()
	}
	i.mu.Unlock()
	if soon {
		return errSoon
	}
	var answer struct {
		Keys []json.RawMessage `json:"keys"`
	}
	err := i.get(context.Background(), address, &answer)
	keys := readKeys(answer.Keys)
	if err == nil && len(keys) == 0 && len(answer.Keys) > 0 {
		err = errors.New("none of its keys can be used here")
	}
	i.mu.Lock()
	was := i.why
	if err == nil {
		i.keys, i.why = keys, ""
	}
	switch {
	case len(i.keys) > 0:
	case err != nil:
		i.why = shortened(err)
	default:
		i.why = "the issuer has published none"
	}
	is := i.why
	i.mu.Unlock()
	switch {
	case is != "" && is != was:
		i.o.Notify(fmt.Sprintf("the keys of the issuer %s cannot be fetched, and its tokens are refused until they can: %s", i.o.Issuer, is))
	case is == "" && was != "" && was != notAsked:
		i.o.Notify(fmt.Sprintf("the keys of the issuer %s have been fetched", i.o.Issuer))
	case is == "" && err != nil: // the old keys stay in use
		i.o.Notify(fmt.Sprintf("the keys of the issuer %s cannot be fetched: %s", i.o.Issuer, shortened(err)))
	}
	return err
}

// readKeys returns the public keys of a set that sign tokens. A set may hold keys of kinds that are unknown here (RFC 7517,
// section 5), and keys that encrypt.
func readKeys(set []json.RawMessage) (keys []jose.JSONWebKey) {
	for _, raw := range set {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) != nil || !key.IsPublic() || key.Use == "enc" {
			continue
		}
		if key.Algorithm == "" || slices.Contains(algorithms, jose.SignatureAlgorithm(key.Algorithm)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// verify returns the payload of a token that one of the keys has signed. known means that there is a key with the id that
// the token names.
func (i *Issuer) verify(token *jose.JSONWebSignature) (payload []byte, ok, known bool) {
	i.mu.Lock()
	keys := i.keys
	i.mu.Unlock()
	id := token.Signatures[0].Header.KeyID
	for _, key := range keys {
		if id != "" && key.KeyID != id {
			continue
		}
		if payload, err := token.Verify(&key); err == nil {
			return payload, true, true
		}
		known = known || id != ""
	}
	return nil, false, known
}
