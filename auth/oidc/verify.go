package oidc

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Claims are bounded: names go into logs, identities into tables.
const (
	maxSubject = 1024
	maxName    = 100
)

// claims are the claims that count.
type claims struct {
	Issuer    string          `json:"iss"`
	Subject   string          `json:"sub"`
	Audience  json.RawMessage `json:"aud"` // a string or an array of strings
	Expires   json.Number     `json:"exp"`
	NotBefore *float64        `json:"nbf"`
	IssuedAt  json.Number     `json:"iat"`
	Scope     string          `json:"scope"`
	Scp       json.RawMessage `json:"scp"`    // scope, as some issuers write it: a string or an array of strings
	Events    json.RawMessage `json:"events"` // only in tokens that report an event, such as a sign-out (RFC 8417)
}

// Verify implements [auth.Verifier]. It quotes a token only after its signature proved valid.
func (i *Issuer) Verify(ctx context.Context, token string) (auth.Identity, error) {
	if strings.Count(token, ".") != 2 {
		return auth.Identity{}, auth.ErrUnknown // it is not a JWT, or is encrypted for the issuer
	}
	payload, refusal := i.signed(ctx, token)
	if refusal != nil {
		return auth.Identity{}, refusal
	}
	members, err := exactjson.Members(payload, i.names)
	if err != nil {
		return auth.Identity{}, unclear("claims", err)
	}
	var c claims
	err = json.Unmarshal(payload, &c)
	if refusal := i.check(c, err); refusal != nil {
		return auth.Identity{}, refusal
	}
	name := ""
	if i.o.Name != "" {
		_ = json.Unmarshal(members[i.o.Name], &name) // a name of another type counts as none
	}
	return auth.Identity{
		ID:   "oidc " + i.o.Issuer + " " + c.Subject,
		Name: texts.Cut(cmp.Or(visible(name), visible(c.Subject)), maxName), Scopes: c.scopes(), Expires: c.end(),
		Groups: i.groups(members, i.group(c)), Operator: i.operator(members),
	}, nil
}

// Grouped implements [auth.Grouper].
func (i *Issuer) Grouped() bool { return i.o.Groups != "" }

// groups returns the groups in the claims: a list of names, or names with spaces between. Issuers list groups for all their
// services, so names that no group of servers can have are left out. A claim of another form names none. A token that is only
// for one group gives that one, if the caller has it.
func (i *Issuer) groups(members map[string]json.RawMessage, only string) []string {
	switch {
	case i.o.Groups == "" && only == "":
		return nil
	case i.o.Groups == "":
		return []string{only}
	}
	names := slices.DeleteFunc(words(members[i.o.Groups], strings.Fields), func(name string) bool {
		return !auth.ValidGroup(name) || only != "" && name != only
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// operator reports whether the claims name an operator.
func (i *Issuer) operator(members map[string]json.RawMessage) bool {
	claim, word, ok := strings.Cut(i.o.Operator, "=")
	return ok && slices.Contains(words(members[claim], strings.Fields), word)
}

// meant reports whether a token is for this gateway, or for a group of it.
func (i *Issuer) meant(c claims) bool {
	return slices.Contains(words(c.Audience, one), i.o.Audience) || i.group(c) != ""
}

// endpointPath ends an audience that is the address of the endpoint. A group has an address below it.
const endpointPath = "/mcp"

// group returns the group whose address is the audience of a token, as issuers write it for a client that has asked for a token
// for that address; "" if the token is for all of the gateway.
func (i *Issuer) group(c claims) string {
	names := words(c.Audience, one)
	if slices.Contains(names, i.o.Audience) || !strings.HasSuffix(i.o.Audience, endpointPath) {
		return ""
	}
	for _, name := range names {
		if group, below := strings.CutPrefix(name, i.o.Audience+"/"); below && auth.ValidGroup(group) {
			return group
		}
	}
	return ""
}

// signed returns the claims of a token that the issuer has signed. It fetches keys if none of the known ones has.
func (i *Issuer) signed(ctx context.Context, text string) ([]byte, *auth.Refusal) {
	if address, _ := i.state(); address == "" {
		return nil, auth.Unready("the issuer of tokens cannot be asked at present, so no token can be accepted",
			fmt.Sprintf("try again in a few seconds; the gateway keeps asking %s, and its log says what is wrong", i.o.Issuer))
	}
	token, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		return nil, auth.Invalid("the token is not one that an issuer has signed with "+algorithmNames(), i.signIn())
	}
	payload, ok, known := i.verify(token)
	if !ok {
		err = i.renew(ctx)
		payload, ok, known = i.verify(token) // even if another request has just fetched them
	}
	head := token.Signatures[0].Header
	if !ok {
		// Extensions that must be understood are not; the signer's own key proves nothing.
		never := known || head.ExtraHeaders["crit"] != nil || head.JSONWebKey != nil
		return nil, i.unsigned(never, err)
	}
	begin, _, _ := strings.Cut(text, ".")
	data, _ := base64.RawURLEncoding.DecodeString(begin) // it has been decoded before
	if _, err := exactjson.Members(data, headNames); err != nil {
		return nil, unclear("head", err)
	}
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); otherUse(typ) {
		return nil, auth.Invalid(fmt.Sprintf("the token was made for another use: its type (typ) is %.40q", typ), i.signIn())
	}
	return payload, nil
}

// unsigned refuses a token that no key has signed. never means that no new key can change that; err is the error of the
// fetch of new keys.
func (i *Issuer) unsigned(never bool, err error) *auth.Refusal {
	switch {
	case err == nil || never:
		return auth.Invalid("the token is not signed with a key of "+i.o.Issuer, i.signIn())
	case errors.Is(err, errSoon): // the key may exist, but must not be fetched yet
		return auth.Unready("the token is signed with a key that is not known", fmt.Sprintf("try again in a few seconds: the keys of %s were fetched a moment ago; if that does not help, sign in again", i.o.Issuer))
	}
	return auth.Unready("the keys of the issuer cannot be fetched at present", "try again in a few seconds; the log of the gateway says what is wrong")
}

// unclear refuses a token that other readers could read differently.
func unclear(part string, err error) *auth.Refusal {
	return auth.Invalid(fmt.Sprintf("the token can be read in two ways: in its %s %s", part, err), "the issuer has to write each claim once, in the letters of its standard")
}

func algorithmNames() string {
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// otherUse reports whether a token's type names another use than access, such as to report a sign-out (RFC 8725, section
// 3.11). Most issuers set no type.
func otherUse(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return strings.HasSuffix(typ, "+jwt") && typ != "at+jwt" && !strings.HasSuffix(typ, "-at+jwt")
}

// signIn is the hint for most refusals.
func (i *Issuer) signIn() string { return "sign in again at " + i.o.Issuer }

// check checks claims, which were decoded with err.
func (i *Issuer) check(c claims, err error) *auth.Refusal {
	google := i.o.Issuer == "https://accounts.google.com" && c.Issuer == "accounts.google.com" // as some of its tokens say
	switch {
	case c.Issuer != i.o.Issuer && !google && (err == nil || c.Issuer != ""):
		return auth.Invalid(fmt.Sprintf("the token is from %.100q, and this gateway takes those of %q", c.Issuer, i.o.Issuer), i.signIn())
	case c.Issuer != "" && !i.meant(c):
		return auth.Invalid(fmt.Sprintf("the token is not meant for this gateway: its audience has to be %q", i.o.Audience),
			"the client has to ask the issuer for a token for this gateway (resource or audience)")
	case err != nil:
		return auth.Invalid("the claims of the token are not what they should be: a number, text or a list stands in the place of another", i.signIn())
	case c.Events != nil:
		return auth.Invalid("the token was made for another use: it reports events (events), as a logout token does", i.signIn())
	}
	if refusal := i.times(c); refusal != nil {
		return refusal
	}
	scopes := c.scopes()
	lacking := slices.IndexFunc(i.o.Scopes, func(scope string) bool { return !slices.Contains(scopes, scope) })
	switch {
	case c.Subject == "" || len(c.Subject) > maxSubject:
		return auth.Invalid("the token does not say whose it is (sub)", i.signIn())
	case strings.ContainsFunc(c.Subject, unicode.IsControl):
		return auth.Invalid("the token says whose it is (sub) with control characters, such as the end of a line", i.signIn())
	case lacking >= 0:
		return auth.Insufficient(fmt.Sprintf("the token was not given for %q", i.o.Scopes[lacking]), "sign in again and ask for the scope "+strings.Join(i.o.Scopes, " "))
	}
	return nil
}

// times checks the times of a token.
func (i *Issuer) times(c claims) *auth.Refusal {
	now, end := time.Now(), c.end()
	latest := float64(now.Add(auth.Skew).Unix())
	issued, _ := c.IssuedAt.Float64() // 0 if absent, infinite if too large
	expires, _ := c.Expires.Float64() // as well
	switch {
	case expires > lastSecond:
		return auth.Invalid("the token ends too far away (exp)", "the issuer has to write the time in seconds since 1970")
	case end.IsZero():
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

// lastSecond bounds the end of a token, far below the end of [time.Time].
const lastSecond = 1 << 40

// end returns the time at which the token expires; zero: it does not say, or too late a time.
func (c claims) end() time.Time {
	if end, _ := c.Expires.Float64(); end >= 1 && end <= lastSecond {
		return time.Unix(int64(end), 0)
	}
	return time.Time{}
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
	if json.Unmarshal(claim, &texts) != nil { // also of a list that is text in part
		return nil
	}
	return texts
}

// one returns a text as one word.
func one(text string) []string { return []string{text} }

// visible removes control and invisible characters, since callers may choose their names.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, text)
}

// claimNames are the registered claims that decide who comes in, here or in other readers of tokens.
var claimNames = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "azp", "nonce", "at_hash", "scope", "scp", "events", "_claim_names", "_claim_sources",
}

// headNames are the members of a token's header for its signature and its use.
var headNames = exactjson.Names{Unique: true, Known: []string{
	"alg", "kid", "typ", "cty", "crit", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256", "b64",
}}
