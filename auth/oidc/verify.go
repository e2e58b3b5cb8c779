package oidc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Claims are bounded: names go into logs, identities into tables.
const (
	maxSubject = 1024
	maxName    = 100
)

// claims are the claims that the library does not check.
type claims struct {
	Issuer    string          `json:"iss"`
	NotBefore *float64        `json:"nbf"`
	IssuedAt  json.Number     `json:"iat"`
	Scope     string          `json:"scope"`
	Scp       json.RawMessage `json:"scp"`    // scope, as some issuers write it: a string or an array of strings
	Events    json.RawMessage `json:"events"` // only in tokens that report an event, such as a sign-out (RFC 8417)
}

// Verify implements [auth.Verifier].
func (i *Issuer) Verify(ctx context.Context, token string) (auth.Identity, error) {
	if strings.Count(token, ".") != 2 {
		return auth.Identity{}, auth.ErrUnknown // it is not a JWT, or is encrypted for the issuer
	}
	set, _ := i.found()
	if set == nil {
		return auth.Identity{}, auth.Unready("the issuer of tokens cannot be asked at present, so nobody can be let in by one",
			fmt.Sprintf("try again in a few seconds; the gateway keeps asking %s, and its log says what is wrong", i.o.Issuer))
	}
	a := &attempt{keys: set, names: i.names}
	verified, err := oidc.NewVerifier(i.o.Issuer, a, i.config).Verify(ctx, token)
	if err != nil {
		return auth.Identity{}, i.refusal(a)
	}
	if typ := headOf(token).Type; otherUse(typ) {
		return auth.Identity{}, auth.Invalid(fmt.Sprintf("the token was made for another use: its type (typ) is %.40q", typ), i.signIn())
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return auth.Identity{}, i.misshapen()
	}
	if c.Events != nil {
		return auth.Identity{}, auth.Invalid("the token was made for another use: it tells of events (events), as a logout token does", i.signIn())
	}
	if refusal := i.times(verified.Expiry, c); refusal != nil {
		return auth.Identity{}, refusal
	}
	if refusal := i.subject(verified.Subject); refusal != nil {
		return auth.Identity{}, refusal
	}
	scopes := c.scopes()
	for _, scope := range i.o.Scopes {
		if !slices.Contains(scopes, scope) {
			return auth.Identity{}, auth.Insufficient(fmt.Sprintf("the token was not given for %q", scope), "sign in again and ask for the scope "+strings.Join(i.o.Scopes, " "))
		}
	}
	return auth.Identity{
		ID: "oidc " + i.o.Issuer + " " + verified.Subject, Name: i.name(verified), Scopes: scopes, Expires: verified.Expiry,
	}, nil
}

// otherUse reports whether a token's type names another use than access, such as to report a sign-out (RFC 8725, section
// 3.11). Most issuers set no type.
func otherUse(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return strings.HasSuffix(typ, "+jwt") && typ != "at+jwt" && !strings.HasSuffix(typ, "-at+jwt")
}

// signIn is the hint for most refusals.
func (i *Issuer) signIn() string { return "sign in again at " + i.o.Issuer }

// misshapen refuses a token whose claims cannot be read.
func (i *Issuer) misshapen() *auth.Refusal {
	return auth.Invalid("the claims of the token are not what they should be: a number, text or a list stands in the place of another", i.signIn())
}

// subject checks the subject of a token.
func (i *Issuer) subject(sub string) *auth.Refusal {
	switch {
	case sub == "" || len(sub) > maxSubject:
		return auth.Invalid("the token does not say whose it is (sub)", i.signIn())
	case strings.ContainsFunc(sub, unicode.IsControl):
		return auth.Invalid("the token says whose it is (sub) with control characters, such as the end of a line", i.signIn())
	}
	return nil
}

// refusal explains why a token is refused. It quotes a token only after its signature proved valid.
func (i *Issuer) refusal(a *attempt) *auth.Refusal {
	switch {
	case !a.tried:
		return auth.Invalid("the token is not one that an issuer has signed with "+strings.Join(algorithms, ", "), i.signIn())
	case a.never && a.err != nil:
		return i.unsigned()
	case errors.Is(a.err, errSoon): // the key may exist, but must not be fetched yet
		return auth.Unready("the token is signed with a key that is not known", fmt.Sprintf("try again in a few seconds: the keys of %s were fetched a moment ago; if that does not help, sign in again", i.o.Issuer))
	case unfetched(a.err):
		if !errors.Is(a.err, context.Canceled) { // the client has gone
			i.tellUnfetched(a.err)
		}
		return auth.Unready("the keys of the issuer cannot be fetched at present", "try again in a few seconds; the log of the gateway says what is wrong")
	case a.err != nil:
		return i.unsigned()
	case a.unclear != nil:
		return auth.Invalid(fmt.Sprintf("the token can be read in two ways: %s", a.unclear), "the issuer has to write each claim once, in the letters of its standard")
	}
	var c struct {
		Issuer   string          `json:"iss"`
		Audience json.RawMessage `json:"aud"`
	}
	switch err := json.Unmarshal(a.payload, &c); {
	case err != nil:
		return i.misshapen()
	case c.Issuer != i.o.Issuer:
		return auth.Invalid(fmt.Sprintf("the token is from %.100q, and this gateway takes those of %q", c.Issuer, i.o.Issuer), i.signIn())
	case !slices.Contains(words(c.Audience, one), i.o.Audience):
		return auth.Invalid(fmt.Sprintf("the token is not meant for this gateway: its audience has to be %q", i.o.Audience),
			"the client has to ask the issuer for a token for this gateway (resource or audience)")
	}
	return i.misshapen() // the library checks nothing else
}

// unsigned refuses a token without a valid signature.
func (i *Issuer) unsigned() *auth.Refusal {
	return auth.Invalid("the token is not signed with a key of "+i.o.Issuer, i.signIn())
}

// times checks the times of a token.
func (i *Issuer) times(end time.Time, c claims) *auth.Refusal {
	now := time.Now()
	latest := float64(now.Add(auth.Skew).Unix())
	issued, _ := c.IssuedAt.Float64() // 0 if absent, infinite if too large
	switch {
	case end.IsZero() || end.Unix() <= 0:
		return auth.Invalid("the token does not say when it ends (exp)", i.signIn())
	case now.After(end.Add(auth.Skew)):
		return auth.Invalid("the token ran out at "+end.UTC().Format(time.RFC3339), i.signIn())
	case c.NotBefore != nil && latest < *c.NotBefore:
		return auth.Invalid("the token is not valid yet (nbf)", "wait, or set the clocks of the gateway and the issuer")
	case latest < issued:
		return auth.Invalid("the token was made in the future (iat)", "set the clocks of the gateway and the issuer")
	}
	return nil
}

// scopes returns the scopes of the token.
func (c claims) scopes() []string {
	return append(strings.Fields(c.Scope), words(c.Scp, strings.Fields)...)
}

// words returns the words of a claim that is a list of strings, or a string, which split splits.
func words(claim json.RawMessage, split func(string) []string) []string {
	var text string
	var texts []string
	if json.Unmarshal(claim, &text) == nil {
		return split(text)
	}
	_ = json.Unmarshal(claim, &texts) // other values have no words
	return texts
}

// one returns a text as one word.
func one(text string) []string { return []string{text} }

// name returns the name of the caller for people.
func (i *Issuer) name(token *oidc.IDToken) string {
	var all map[string]any
	name := ""
	if i.o.Name != "" && token.Claims(&all) == nil {
		name, _ = all[i.o.Name].(string)
	}
	return texts.Cut(cmp.Or(visible(name), visible(token.Subject)), maxName)
}

// visible removes control and invisible characters, since callers may choose their names.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, text)
}

// claimNames are the claims that the library or this package checks.
var claimNames = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "azp", "nonce", "at_hash", "scope", "scp", "events", "_claim_names", "_claim_sources",
}

// headNames are the members of a token's header for its signature and its use.
var headNames = exactjson.Names{Unique: true, Known: []string{
	"alg", "kid", "typ", "cty", "crit", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256", "b64",
}}
