package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	// answerTimeout bounds one answer of the issuer. Requests wait for its keys.
	answerTimeout = 10 * time.Second
	// firstPause and lastPause bound the backoff between two attempts to reach the issuer.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// keyAge bounds how long a withdrawn key is accepted, for example after a theft, if no token with a new key arrives.
	keyAge = 10 * time.Minute
)

// Options select the accepted tokens.
type Options struct {
	Issuer   string   // as tokens name it
	Audience string   // that a token must name
	Scopes   []string // that a token needs, all of them
	Name     string   // the claim with the caller's name; empty: the subject

	KeyAge time.Duration // between two fetches of the keys; 0: 10 minutes

	Proxy func(*http.Request) (*url.URL, error) // to the issuer; nil: none

	// Told is called with messages for operators about the reachability of the issuer and its keys. It may be nil.
	Told func(text string)
}

// An Issuer verifies the tokens of one OpenID Connect issuer. Its methods may be called concurrently.
type Issuer struct {
	o      Options
	client *http.Client
	config *oidc.Config
	names  exactjson.Names // the claims that matter

	mu   sync.Mutex
	keys *keys  // nil: the issuer has not been found; guarded by mu
	why  string // the reason why keys is nil; guarded by mu
}

// algorithms are the accepted signature algorithms, all with a private key: a verifier cannot sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// New makes an issuer. [Issuer.Follow] reaches it.
func New(o Options) (*Issuer, error) {
	switch err := checkAddress(o.Issuer); {
	case err != nil:
		return nil, fmt.Errorf("the issuer %.200q %w", withoutUser(o.Issuer), err)
	case o.Audience == "":
		return nil, errors.New("there is no audience: tokens that the issuer has given for other services would be taken")
	}
	if o.Told == nil {
		o.Told = func(string) {}
	}
	o.KeyAge = cmp.Or(o.KeyAge, keyAge)
	i := &Issuer{o: o, why: notAsked, names: exactjson.Names{Known: claimNames, Unique: true}}
	if o.Name != "" {
		i.names.Known = append(slices.Clone(claimNames), o.Name)
	}
	i.client = &http.Client{
		Timeout:   answerTimeout,
		Transport: bounded{&http.Transport{Proxy: o.Proxy, TLSHandshakeTimeout: answerTimeout, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) >= 3 {
				return errors.New("it leads on and on")
			}
			return checkAddress(r.URL.String())
		},
	}
	i.config = &oidc.Config{
		ClientID: o.Audience, SupportedSigningAlgs: algorithms,
		SkipExpiryCheck: true, // the library tolerates no skew, or five minutes: see times
	}
	return i, nil
}

// checkAddress returns an error for an invalid or insecure address: keys from an open network can be forged.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return errors.New("is not an address such as https://login.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has more than a host and a path")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("does not begin with https://")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("does not begin with https://: what it says could be anybody's")
}

// withoutUser returns an address without user and password.
func withoutUser(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return "that was given"
}

// Follow retries until it has the issuer and its keys, and then refreshes the keys regularly, until ctx is done.
func (i *Issuer) Follow(ctx context.Context) {
	defer i.client.CloseIdleConnections()
	for pause := firstPause; ; {
		next := i.o.KeyAge
		if i.reach(ctx) {
			pause = firstPause
		} else {
			next, pause = pause, min(2*pause, lastPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// reach finds the issuer if necessary, fetches its keys, and reports whether there are keys.
func (i *Issuer) reach(ctx context.Context) bool {
	set, _ := i.found()
	if set == nil {
		if !i.find(ctx) {
			return false
		}
		set, _ = i.found()
	}
	was := set.lacking()
	err := set.renew(ctx)
	is := set.lacking()
	switch {
	case ctx.Err() != nil:
	case is != "" && is != was:
		i.o.Told(fmt.Sprintf("the keys of the issuer %s cannot be fetched, and nobody can come in by its tokens until they can: %s", i.o.Issuer, is))
	case is == "" && was != "" && was != notAsked:
		i.o.Told(fmt.Sprintf("the keys of the issuer %s have been fetched", i.o.Issuer))
	case is == "" && err != nil: // the old keys stay in use
		i.tellUnfetched(err)
	}
	return is == ""
}

func (i *Issuer) tellUnfetched(err error) {
	i.o.Told(fmt.Sprintf("the keys of the issuer %s cannot be fetched: %s", i.o.Issuer, shortened(err.Error())))
}

// Check tries once to reach the issuer and to fetch its keys.
func (i *Issuer) Check(ctx context.Context) error {
	defer i.client.CloseIdleConnections()
	i.reach(ctx)
	return i.Ready()
}

// find fetches the issuer's configuration.
func (i *Issuer) find(ctx context.Context) bool {
	ctx = oidc.ClientContext(ctx, i.client)
	provider, err := oidc.NewProvider(ctx, i.o.Issuer)
	var about struct {
		Keys string `json:"jwks_uri"`
	}
	if err == nil {
		if err = provider.Claims(&about); err == nil {
			if err = checkAddress(withoutQuery(about.Keys)); err != nil {
				err = fmt.Errorf("the address of its keys %w", err)
			}
		}
	}
	if ctx.Err() != nil {
		return false
	}
	i.mu.Lock()
	was := i.why
	if err == nil {
		i.keys, i.why = i.keysAt(about.Keys), ""
	} else {
		i.why = shortened(err.Error())
	}
	is := i.why
	i.mu.Unlock()
	switch {
	case err != nil && is != was:
		i.o.Told(fmt.Sprintf("the issuer %s cannot be asked, and nobody can come in by its tokens until it can: %s", i.o.Issuer, is))
	case err == nil && was != notAsked:
		i.o.Told(fmt.Sprintf("the issuer %s has been found", i.o.Issuer))
	}
	return err == nil
}

// notAsked is the reason why there is no issuer, or no key, before the first attempt.
const notAsked = "it has not been asked yet"

// keysAt returns the keys at an address, which are fetched when needed.
func (i *Issuer) keysAt(address string) *keys {
	client, p := *i.client, &paced{base: i.client.Transport}
	client.Transport = p
	return &keys{why: notAsked, remote: oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), address), paced: p}
}

func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}

// found returns the keys of the issuer, or the reason why there are none.
func (i *Issuer) found() (*keys, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys, i.why
}

// maxShown is the number of bytes shown of an issuer's text.
const maxShown = 300

func shortened(text string) string {
	return texts.Cut(strings.Join(strings.Fields(text), " "), maxShown)
}

// Ready returns nil if tokens of the issuer can be verified, and otherwise why they cannot.
func (i *Issuer) Ready() error {
	set, why := i.found()
	if set == nil {
		return fmt.Errorf("the issuer %s cannot be asked: %s", i.o.Issuer, why)
	}
	if why := set.lacking(); why != "" {
		return fmt.Errorf("the keys of the issuer %s cannot be fetched: %s", i.o.Issuer, why)
	}
	return nil
}

var _ auth.Verifier = (*Issuer)(nil)
