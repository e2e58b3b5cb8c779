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

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/pausing"
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
	Groups   string   // the claim with the groups of servers that the caller may use; empty: callers have no groups

	// Operator is the claim that makes a caller an operator, with the word that it must have, such as "roles=mcsh-operator"; empty:
	// nobody is one.
	Operator string

	KeyAge time.Duration // between two fetches of the keys; 0: 10 minutes

	Proxy func(*http.Request) (*url.URL, error) // to the issuer; nil: none

	// Notify is called with messages for operators about the reachability of the issuer and its keys. It may be nil.
	Notify func(text string)
}

// An Issuer verifies the tokens of one OpenID Connect issuer. Its methods may be called concurrently.
type Issuer struct {
	o        Options
	client   *http.Client
	names    exactjson.Names // the claims that matter
	fetching singleflight.Group

	mu      sync.Mutex
	address string            // of the keys; empty: the issuer has not been found; guarded by mu, as is everything below
	keys    []jose.JSONWebKey // of the latest answer; the elements do not change
	fetched time.Time         // when the latest fetch began
	why     string            // the reason why there are no keys; empty: there are
}

// algorithms are the accepted signature algorithms, all with a private key: a verifier cannot sign.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// New makes an issuer. [Issuer.Follow] reaches it.
func New(o Options) (*Issuer, error) {
	switch err := checkAddress(o.Issuer); {
	case err != nil:
		return nil, fmt.Errorf("the issuer %.200q %w", withoutUser(o.Issuer), err)
	case o.Audience == "":
		return nil, errors.New("there is no audience: tokens that the issuer has given for other services would be taken")
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	o.KeyAge = cmp.Or(o.KeyAge, keyAge)
	i := &Issuer{o: o, client: newClient(o.Proxy), why: notAsked, names: exactjson.Names{Known: claimNames, Unique: true}}
	role, word, ok := strings.Cut(o.Operator, "=")
	if o.Operator != "" && (!ok || role == "" || word == "") {
		return nil, fmt.Errorf("%.100q is not a claim with a word, such as roles=mcsh-operator", o.Operator)
	}
	for _, claim := range []string{o.Name, o.Groups, role} {
		if claim != "" && !slices.Contains(i.names.Known, claim) {
			i.names.Known = append(slices.Clip(i.names.Known), claim)
		}
	}
	return i, nil
}

// notAsked is the reason why there is no issuer, or no key, before the first attempt.
const notAsked = "it has not been asked yet"

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
		if pausing.For(ctx, next) != nil {
			return
		}
	}
}

// reach finds the issuer if necessary, fetches its keys, and reports whether there are keys.
func (i *Issuer) reach(ctx context.Context) bool {
	if address, _ := i.state(); address == "" && !i.find(ctx) {
		return false
	}
	_ = i.renew(ctx) // it has notified of the error
	return i.Ready() == nil
}

// Check tries once to reach the issuer and to fetch its keys.
func (i *Issuer) Check(ctx context.Context) error {
	defer i.client.CloseIdleConnections()
	i.reach(ctx)
	return i.Ready()
}

// state returns the address of the keys, or "" if the issuer has not been found, and the reason why there are no keys.
func (i *Issuer) state() (address, why string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.address, i.why
}

// Ready returns nil if tokens of the issuer can be verified, and otherwise why they cannot.
func (i *Issuer) Ready() error {
	switch address, why := i.state(); {
	case address == "":
		return fmt.Errorf("the issuer %s cannot be asked: %s", i.o.Issuer, why)
	case why != "":
		return fmt.Errorf("the keys of the issuer %s cannot be fetched: %s", i.o.Issuer, why)
	}
	return nil
}

// maxShown is the number of bytes shown of an issuer's text.
const maxShown = 300

func shortened(err error) string {
	return texts.Cut(strings.Join(strings.Fields(err.Error()), " "), maxShown)
}

var _ auth.Verifier = (*Issuer)(nil)
