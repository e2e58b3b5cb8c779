package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcsh-dev/mcsh/auth"
)

const (
	// answerTimeout bounds one answer of the issuer. Requests wait for its keys.
	answerTimeout = 10 * time.Second
	// firstPause and lastPause are the waits between two looks for an issuer that is not found.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// keyAge is how long a key is taken that the issuer has withdrawn, as after a theft, where nobody comes with a new one.
	keyAge = 10 * time.Minute
)

// Options say whose tokens are taken.
type Options struct {
	Issuer   string   // as tokens name it
	Audience string   // what a token has to be meant for
	Scopes   []string // what it has to be given for, all of them
	Name     string   // the claim with what people call the caller; empty: the subject

	KeyAge time.Duration // how old its keys may be before they are fetched again; 0: 10 minutes

	Proxy func(*http.Request) (*url.URL, error) // the way to the issuer; nil: the direct one

	// Told is told of what people should know: that the issuer is not found, or its keys are not, and that it is. It may
	// be nil.
	Told func(text string)
}

// An Issuer lets in whom it has given tokens. Its methods may be called concurrently.
type Issuer struct {
	o      Options
	client *http.Client
	config *oidc.Config

	mu   sync.Mutex
	keys *keys  // nil: the issuer has not been found; guarded by mu
	why  string // why it has not, guarded by mu
}

// algorithms are those by which a token may be signed: with a private key, so that who checks cannot sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// New makes an issuer that has still to be found: see [Issuer.Follow].
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
	i := &Issuer{o: o, why: notAsked}
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
		SkipExpiryCheck: true, // it takes the clock of the issuer to be ours, or five minutes from it: see times
	}
	return i, nil
}

// checkAddress says what is wrong with an address of an issuer. Keys that come over an open network may be anybody's.
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

// withoutUser is an address without what may be a password.
func withoutUser(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return "that was given"
}

// Follow looks for the issuer and its keys until both are there, and then fetches the keys again once in a while, until
// ctx is done.
func (i *Issuer) Follow(ctx context.Context) {
	defer i.client.CloseIdleConnections()
	for pause := firstPause; ; {
		next := i.o.KeyAge
		if i.reach(ctx) {
			pause = firstPause
		} else {
			next, pause = pause, min(2*pause, lastPause)
		}
		if !wait(ctx, next) {
			return
		}
	}
}

// reach finds the issuer if it has not been found, fetches its keys, and reports whether anybody can come in by them.
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
	case is == "" && err != nil: // those that there are stay
		i.tellUnfetched(err)
	}
	return is == ""
}

// wait waits, and reports whether ctx is still good.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func (i *Issuer) tellUnfetched(err error) {
	i.o.Told(fmt.Sprintf("the keys of the issuer %s cannot be fetched: %s", i.o.Issuer, shortened(err.Error())))
}

// Check asks the issuer once what it is, and for its keys.
func (i *Issuer) Check(ctx context.Context) error {
	defer i.client.CloseIdleConnections()
	i.reach(ctx)
	return i.Ready()
}

// find asks the issuer what it is.
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

// notAsked is why there is no issuer, or why there are no keys, before anybody has asked.
const notAsked = "it has not been asked yet"

// keysAt are the keys at an address, which are fetched when they are needed.
func (i *Issuer) keysAt(address string) *keys {
	client, p := *i.client, &paced{base: i.client.Transport}
	client.Transport = p
	return &keys{why: notAsked, remote: oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &client), address), paced: p}
}

func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}

// found returns the keys of the issuer, or why there are none.
func (i *Issuer) found() (*keys, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys, i.why
}

// maxShown is how much of the words of others is shown.
const maxShown = 300

func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// Ready says why nobody can come in by a token of the issuer, or nothing.
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
