package oidc_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/internal/oidctest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestMain lets all tests that wait do so at the same time.
func TestMain(m *testing.M) {
	parttest.Overlap(6)
	os.Exit(m.Run())
}

const audience = "https://mcp.example.com/mcp"

// follow makes an issuer that is looked for until the end of the test.
func follow(t *testing.T, o oidc.Options) *oidc.Issuer {
	t.Helper()
	i, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { i.Follow(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return i
}

// ready waits until an issuer was found.
func ready(t *testing.T, i *oidc.Issuer) {
	t.Helper()
	for end := time.Now().Add(time.Minute); i.Ready() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(i.Ready())
		}
	}
}

func unsigned(claims oidctest.Claims) string {
	payload, _ := json.Marshal(claims) // of plain values
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + "."
}

// with changes claims; nil takes one away.
func with(claims oidctest.Claims, name string, value any) oidctest.Claims {
	if claims[name] = value; value == nil {
		delete(claims, name)
	}
	return claims
}

// flipped is a token with one bit of its signature turned.
func flipped(token string) string {
	at := strings.LastIndex(token, ".") + 10
	other := byte('A')
	if token[at] == other {
		other = 'B'
	}
	return token[:at] + string(other) + token[at+1:]
}

// mixed is the claims of one token with the signature of another.
func mixed(signed, claims string) string {
	return claims[:strings.LastIndex(claims, ".")] + signed[strings.LastIndex(signed, "."):]
}

// TestTokens: whose tokens are taken, and what is said of the others.
func TestTokens(t *testing.T) {
	issuer, other := oidctest.New(t), oidctest.New(t)
	issuer.AddKey("2", jose.ES256)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := func() oidctest.Claims { return with(issuer.Claims("u-1", audience), "scope", "mcp other") }
	now := time.Now().Unix()
	for _, test := range []struct {
		name, token string
		status      int // 0: it is taken
		want        string
	}{
		{"a token", issuer.Sign("1", good()), 0, "u-1"},
		{"another kind of key", issuer.Sign("2", good()), 0, "u-1"},
		{"a name", issuer.Sign("1", with(good(), "email", "ada@example.com\n")), 0, "ada@example.com"},
		{"a name that turns colours and direction", issuer.Sign("1", with(good(), "email", "a\u009b31mda\u202e@example.com\u2028")), 0, "a31mda@example.com"},
		{"a type that says that it gives access", issuer.Typed("1", "application/AT+JWT", good()), 0, "u-1"},
		{"a type that says nothing", issuer.Typed("1", "JWT", good()), 0, "u-1"},
		{"that somebody has signed out", issuer.Typed("1", "logout+jwt", good()), 401, "for another use: its type (typ)"},
		{"a proof of a key", issuer.Typed("1", "dpop+jwt", good()), 401, "for another use: its type (typ)"},
		{"one of two audiences", issuer.Sign("1", with(good(), "aud", []string{"x", audience})), 0, "u-1"},
		{"scopes as some issuers write them", issuer.Sign("1", with(with(good(), "scope", nil), "scp", []string{"mcp"})), 0, "u-1"},
		{"scopes as others do", issuer.Sign("1", with(with(good(), "scope", nil), "scp", "x mcp")), 0, "u-1"},
		{"a clock that is behind", issuer.Sign("1", with(good(), "exp", now-30)), 0, "u-1"},
		{"a clock that is ahead", issuer.Sign("1", with(good(), "nbf", now+30)), 0, "u-1"},
		{"it ran out", issuer.Sign("1", with(good(), "exp", now-90)), 401, "the token ran out at "},
		{"an end in milliseconds", issuer.Sign("1", with(good(), "exp", now*1000)), 401, "ends too far away (exp)"},
		{"the end of time", issuer.Sign("1", with(good(), "exp", 1e300)), 401, "ends too far away (exp)"},
		{"no end", issuer.Sign("1", with(good(), "exp", nil)), 401, "does not say when it ends"},
		{"not yet", issuer.Sign("1", with(good(), "nbf", now+90)), 401, "not valid yet (nbf)"},
		{"another audience", issuer.Sign("1", with(good(), "aud", "https://other.example")), 401, "not meant for this gateway"},
		{"no audience", issuer.Sign("1", with(good(), "aud", nil)), 401, "not meant for this gateway"},
		{"another issuer with our key", issuer.Sign("1", with(good(), "iss", "https://evil.example")), 401, `the token is from "https://evil.example"`},
		{"an issuer that is nearly ours", issuer.Sign("1", with(good(), "iss", issuer.URL+"/")), 401, "the token is from"},
		{"nobody's key with our id", oidctest.SignWith(t, jose.RS256, stranger, "1", good()), 401, "not signed with a key of"},
		{"a key of another issuer with our id", other.Sign("1", good()), 401, "not signed with a key of"},
		{"nobody's key with nobody's id", oidctest.SignWith(t, jose.RS256, stranger, "9", good()), 503, "a key that is not known"},
		{"nobody's key without an id", oidctest.SignWith(t, jose.RS256, stranger, "", good()), 503, "a key that is not known"},
		{"a signature that was changed", flipped(issuer.Sign("1", good())), 401, "not signed with a key of"},
		{"the claims of another", mixed(issuer.Sign("1", good()), issuer.Sign("1", with(good(), "sub", "root"))), 401, "not signed with a key of"},
		{"what has to be understood", oidctest.SignHead(t, jose.RS256, stranger, good(), map[jose.HeaderKey]any{"kid": "9", "crit": []string{"x"}, "x": 1}), 401, "not signed with a key of"},
		{"a key that comes along", oidctest.SignHead(t, jose.RS256, stranger, good(), map[jose.HeaderKey]any{"kid": "9", "jwk": jose.JSONWebKey{Key: stranger.Public()}}), 401, "not signed with a key of"},
		{"text for an end", issuer.Sign("1", with(good(), "exp", "x")), 401, "claims of the token are not what they should be"},
		{"a number for a subject", issuer.Sign("1", with(good(), "sub", 5)), 401, "claims of the token are not what they should be"},
		{"a number for an issuer", issuer.Sign("1", with(good(), "iss", 5)), 401, "claims of the token are not what they should be"},
		{"a number for a subject of another audience", issuer.Sign("1", with(with(good(), "sub", 5), "aud", "x")), 401, "not meant for this gateway"},
		{"a number among audiences", issuer.Sign("1", with(good(), "aud", []any{audience, 5})), 401, "not meant for this gateway"},
		{"a number among scopes", issuer.Sign("1", with(with(good(), "scope", nil), "scp", []any{"mcp", 5})), 403, `was not given for "mcp"`},
		{"a number for an audience", issuer.Sign("1", with(good(), "aud", 5)), 401, "not meant for this gateway"},
		{"a clock that made it ahead", issuer.Sign("1", with(good(), "iat", now+30)), 0, "u-1"},
		{"no time at which it was made", issuer.Sign("1", with(good(), "iat", nil)), 0, "u-1"},
		{"made in the future", issuer.Sign("1", with(good(), "iat", now+1000)), 401, "made in the future (iat)"},
		{"made at the end of time", issuer.Sign("1", with(good(), "iat", 1e300)), 401, "made in the future (iat)"},
		{"a subject of two lines", issuer.Sign("1", with(good(), "sub", "a\nb")), 401, "control characters"},
		{"a subject that turns colours", issuer.Sign("1", with(good(), "sub", "a\u009b31m")), 401, "control characters"},
		{"no algorithm", unsigned(good()), 401, "not one that an issuer has signed with"},
		{"a public key for a secret", oidctest.SignWith(t, jose.HS256, issuer.PublicPEM("1"), "1", good()), 401, "not one that an issuer has signed with"},
		{"no subject", issuer.Sign("1", with(good(), "sub", nil)), 401, "does not say whose it is"},
		{"no scope", issuer.Sign("1", with(good(), "scope", nil)), 403, `was not given for "mcp"`},
		{"another scope", issuer.Sign("1", with(good(), "scope", "mcpx")), 403, `was not given for "mcp"`},
		{"a list for a scope", issuer.Sign("1", with(good(), "scope", []string{"mcp"})), 401, "claims of the token are not what they should be"},
		{"dots", "a.b.c", 401, "not one that an issuer has signed"},
		{"no JWT", "opaque", -1, ""},
		{"one that is encrypted", "a.b.c.d.e", -1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, Scopes: []string{"mcp"}, Name: "email"})
			ready(t, i)
			// The keys are fetched for a token that is right, so that the next is one of somebody whom nobody waits for.
			if _, err := i.Verify(t.Context(), issuer.Sign("1", good())); err != nil {
				t.Fatal(err)
			}
			identity, err := i.Verify(t.Context(), test.token)
			refusal, refused := errors.AsType[*auth.Refusal](err)
			switch {
			case test.status == 0 && (err != nil || identity.Name != test.want || identity.ID != "oidc "+issuer.URL+" u-1"):
				t.Errorf("got %+v, %v", identity, err)
			case test.status < 0 && !errors.Is(err, auth.ErrUnknown):
				t.Errorf("got %v", err)
			case test.status > 0 && (!refused || refusal.Status != test.status || !strings.Contains(refusal.Text, test.want)):
				t.Errorf("got %+v", err)
			}
		})
	}
}

// TestGroups: the groups in a claim are those that groups of servers can have; a claim of another form names none.
func TestGroups(t *testing.T) {
	issuer := oidctest.New(t)
	for _, test := range []struct {
		name  string
		claim any
		want  []string
	}{
		{"none", nil, nil},
		{"a list", []string{"ops", "dev", "ops"}, []string{"dev", "ops"}},
		{"one", "dev", []string{"dev"}},
		{"words", "ops dev", []string{"dev", "ops"}},
		{"no list", []string{}, nil},
		{"names of other services", []string{"dev", "DevOps Team", "/admin", "..", "*", ""}, []string{"dev"}},
		{"all", "*", nil},
		{"a number in the list", []any{"dev", 1}, nil},
		{"an object", map[string]any{"dev": true}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, claim := range []string{"groups", ""} {
				i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, Groups: claim})
				ready(t, i)
				identity, err := i.Verify(t.Context(), issuer.Sign("1", with(issuer.Claims("u-1", audience), "groups", test.claim)))
				want := test.want
				if claim == "" {
					want = nil
				}
				if err != nil || !slices.Equal(identity.Groups, want) || identity.All || i.Grouped() != (claim != "") {
					t.Errorf("claim %q: got %+v, %v, limited %v", claim, identity, err, i.Grouped())
				}
			}
		})
	}
}

// TestAudienceOfGroup: a token for the address of a group is good for that group alone, if its caller has it.
func TestAudienceOfGroup(t *testing.T) {
	issuer := oidctest.New(t)
	for _, test := range []struct {
		own, claim string
		aud        any
		want       string // the groups, or the beginning of the error
	}{
		{audience, "", audience, "[]"},
		{audience, "", audience + "/dev", "[dev]"},
		{audience, "", []string{audience + "/dev", audience}, "[]"},
		{audience, "", audience + "/", "the token is not meant for this gateway"},
		{audience, "", audience + "/dev/ops", "the token is not meant for this gateway"},
		{audience, "", audience + "/../x", "the token is not meant for this gateway"},
		{audience, "groups", audience, "[dev ops]"},
		{audience, "groups", audience + "/dev", "[dev]"},
		{audience, "groups", audience + "/other", "[]"},
		{"https://example.com", "", "https://example.com/billing", "the token is not meant for this gateway"},
	} {
		i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: test.own, Groups: test.claim})
		ready(t, i)
		identity, err := i.Verify(t.Context(), issuer.Sign("1", with(with(issuer.Claims("u-1", ""), "aud", test.aud), "groups", []string{"ops", "dev"})))
		got := fmt.Sprint(identity.Groups)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%v for %s, claim %q: got %s, want %s", test.aud, test.own, test.claim, got, test.want)
		}
	}
}

// TestRotation: a key that is new is found, one that is gone is not asked for with each token.
func TestRotation(t *testing.T) {
	t.Parallel() // it waits
	for range 10 {
		if rotate(t) {
			return
		}
	}
	t.Fatal("the machine is too slow: keys were always fetched long before they were asked for again")
}

// keyPause is the pause between two fetches of keys.
const keyPause = 5 * time.Second

// rotate exchanges the key of an issuer. It reports false if it was slower than the pause between two fetches of keys.
func rotate(t *testing.T) bool {
	t.Helper()
	issuer := oidctest.New(t)
	i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience})
	ready(t, i)
	verify := func(token string) error { _, err := i.Verify(t.Context(), token); return err }
	old := issuer.Sign("1", issuer.Claims("u", audience))
	begun := time.Now()
	if err := verify(old); err != nil {
		t.Fatal(err)
	}
	issuer.AddKey("2", jose.RS256)
	issuer.RemoveKey("1")
	rotated := issuer.Sign("2", issuer.Claims("u", audience))
	var answers []error
	for range 50 {
		answers = append(answers, verify(rotated))
	}
	fetched := issuer.Fetched()
	if time.Since(begun) > keyPause {
		return false
	}
	for _, err := range answers {
		if refusal, ok := errors.AsType[*auth.Refusal](err); !ok || refusal.Status != http.StatusServiceUnavailable {
			t.Fatalf("a moment after keys were fetched: got %v", err)
		}
	}
	if fetched != 1 {
		t.Errorf("the keys were fetched %d times", fetched)
	}
	end := time.Now().Add(time.Minute)
	for verify(rotated) != nil {
		if time.Now().After(end) {
			t.Fatal("the new key is not found")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for verify(old) == nil { // the notice comes a moment before the new keys are in use
		if time.Now().After(end) {
			t.Fatal("a token of a key that is gone is taken")
		}
		time.Sleep(time.Millisecond)
	}
	if n := issuer.Fetched(); n != 2 {
		t.Errorf("the keys were fetched %d times", n)
	}
	return true
}

// TestWithdrawnKey: a key that the issuer has withdrawn is taken no longer, although nobody comes with one that is new.
func TestWithdrawnKey(t *testing.T) {
	t.Parallel() // it waits
	issuer := oidctest.New(t)
	issuer.AddKey("2", jose.RS256)
	notices := make(chan string, 100)
	i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, KeyAge: 100 * time.Millisecond, Notify: func(text string) { notices <- text }})
	ready(t, i)
	verify := func(token string) error { _, err := i.Verify(t.Context(), token); return err }
	stolen, good := issuer.Sign("1", issuer.Claims("u", audience)), issuer.Sign("2", issuer.Claims("u", audience))
	for end := time.Now().Add(time.Minute); verify(stolen) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a token is not taken")
		}
	}
	issuer.RemoveKey("1")
	for end := time.Now().Add(time.Minute); verify(stolen) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a token of a key that was withdrawn is taken")
		}
	}
	issuer.SetKeys(`{"keys": [{"kty": "unheard of"}, "no key"]}`)
	for end, failed := time.After(time.Minute), false; !failed; {
		select {
		case text := <-notices:
			failed = strings.Contains(text, "cannot be fetched: none of its keys can be used")
		case <-end:
			t.Fatal("keys are not fetched again")
		}
	}
	if err := verify(good); err != nil {
		t.Errorf("the keys that there were are gone with the answer: %v", err)
	}
}

// TestKeysForSignatures: a key that is not for the signatures of tokens proves nothing.
func TestKeysForSignatures(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	issuer := oidctest.New(t)
	token := oidctest.SignWith(t, jose.RS256, key, "k", issuer.Claims("u", audience))
	for _, test := range []struct {
		use, algorithm string
		taken          bool
	}{
		{"sig", "RS256", true},
		{"sig", "", true},
		{"", "", true},
		{"enc", "RSA-OAEP", false},
		{"enc", "RS256", false},
		{"enc", "", false},
		{"", "RSA-OAEP", false},
		{"sig", "HS256", false},
	} {
		set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: test.use, Algorithm: test.algorithm}}})
		if err != nil {
			t.Fatal(err)
		}
		issuer.SetKeys(string(set))
		i, err := oidc.New(oidc.Options{Issuer: issuer.URL, Audience: audience})
		if err != nil {
			t.Fatal(err)
		}
		ready := i.Check(t.Context())
		_, err = i.Verify(t.Context(), token)
		if (ready == nil) != test.taken || (err == nil) != test.taken {
			t.Errorf("use %q, alg %q: got %v, %v", test.use, test.algorithm, ready, err)
		}
	}
}

// TestLateIssuer: an issuer that cannot be asked is looked for, and what is wrong is said; keys that cannot be fetched are
// no fault of a token.
func TestLateIssuer(t *testing.T) {
	t.Parallel() // it waits
	issuer := oidctest.New(t)
	issuer.SetDown(true)
	notices := make(chan string, 100)
	i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, Notify: func(text string) { notices <- text }})
	token := issuer.Sign("1", issuer.Claims("u", audience))
	wait := func(want string) {
		t.Helper()
		select {
		case text := <-notices:
			if !strings.Contains(text, want) {
				t.Errorf("notices %q, want %q", text, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("there is no notice %q", want)
		}
	}
	unready := func(want string) {
		t.Helper()
		_, err := i.Verify(t.Context(), token)
		if refusal, ok := errors.AsType[*auth.Refusal](err); !ok || refusal.Status != http.StatusServiceUnavailable || !strings.Contains(refusal.Text, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	lacks := func(want string) {
		t.Helper()
		if err := i.Ready(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	wait("503 Service Unavailable: out of order")
	lacks("the issuer " + issuer.URL + " cannot be asked: 503")
	unready("the issuer of tokens cannot be asked at present")
	issuer.SetName("https://evil.example")
	issuer.SetKeyless(true)
	issuer.SetDown(false)
	wait("evil.example")
	unready("the issuer of tokens cannot be asked at present")
	issuer.SetName(issuer.URL)
	wait("has been found")
	wait("the keys of the issuer")
	lacks("the keys of the issuer " + issuer.URL + " cannot be fetched: 503")
	unready("") // in the words of keys that were asked for a moment ago, or of keys that cannot be fetched
	issuer.SetKeyless(false)
	for end := time.Now().Add(time.Minute); i.Ready() != nil; time.Sleep(50 * time.Millisecond) { // no token has to come
		if time.Now().After(end) {
			t.Fatal(i.Ready())
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := i.Verify(t.Context(), token); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	issuer.SetDown(true) // what is known is enough
	if _, err := i.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// TestNoKeys: an issuer that publishes no key admits nobody, and is asked again until it does.
func TestNoKeys(t *testing.T) {
	t.Parallel() // it waits
	issuer := oidctest.New(t)
	issuer.RemoveKey("1")
	notices := make(chan string, 100)
	i := follow(t, oidc.Options{Issuer: issuer.URL, Audience: audience, Notify: func(text string) { notices <- text }})
	if text := <-notices; !strings.Contains(text, "the issuer has published none") {
		t.Errorf("notices %q", text)
	}
	if err := i.Ready(); err == nil || !strings.Contains(err.Error(), "the issuer has published none") {
		t.Errorf("got %v", err)
	}
	issuer.AddKey("2", jose.RS256)
	if text := <-notices; !strings.Contains(text, "have been fetched") {
		t.Errorf("notices %q", text)
	}
	if err := i.Ready(); err != nil {
		t.Error(err)
	}
}

// TestOptions: an issuer whose keys could be anybody's is refused, and so are tokens for any service.
func TestOptions(t *testing.T) {
	for _, test := range []struct{ issuer, audience, want string }{
		{"https://login.example.com/tenant", audience, ""},
		{"http://127.0.0.1:9000", audience, ""},
		{"http://localhost", audience, ""},
		{"http://login.example.com", audience, "could be anybody's"},
		{"http://localhost.evil.example", audience, "could be anybody's"},
		{"login.example.com", audience, "is not an address"},
		{"ftp://login.example.com", audience, "does not begin with https://"},
		{"https://user:secret@login.example.com", audience, "more than a host and a path"},
		{"https://login.example.com?x", audience, "more than a host and a path"},
		{"", audience, "is not an address"},
		{"https://login.example.com", "", "no audience"},
	} {
		_, err := oidc.New(oidc.Options{Issuer: test.issuer, Audience: test.audience})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q: got %v, want %q", test.issuer, err, test.want)
		}
	}
}

// TestHostileIssuer: what an issuer says is bounded, and it leads nowhere that could be anybody's.
func TestHostileIssuer(t *testing.T) {
	for _, test := range []struct {
		name, want string
		answer     func(w http.ResponseWriter, r *http.Request, self string)
	}{
		{"endless", "longer than", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			for range 100 {
				w.Write([]byte(strings.Repeat(" ", 64<<10)))
			}
		}},
		{"keys that anybody can write", "the address of its keys does not begin with https://", func(w http.ResponseWriter, _ *http.Request, self string) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]string{"issuer": self, "jwks_uri": "http://keys.example/keys"})
		}},
		{"leads elsewhere", "could be anybody's", func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		}},
		{"in a circle", "leads on and on", func(w http.ResponseWriter, r *http.Request, self string) {
			http.Redirect(w, r, self, http.StatusFound)
		}},
		{"nonsense", "failed to decode", func(w http.ResponseWriter, _ *http.Request, _ string) { w.Write([]byte("<html>")) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var server *httptest.Server
			server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { test.answer(w, r, server.URL) }))
			t.Cleanup(server.Close)
			notices := make(chan string, 10)
			i := follow(t, oidc.Options{Issuer: server.URL, Audience: audience, Notify: func(text string) { notices <- text }})
			select {
			case text := <-notices:
				if !strings.Contains(text, test.want) || len(text) > 600 {
					t.Errorf("notices %q", text)
				}
			case <-time.After(time.Minute):
				t.Fatal("there is no notice")
			}
			if i.Ready() == nil {
				t.Error("it is found")
			}
		})
	}
}

// TestSharedFetch: callers at the same time cause one request for keys, and none waits longer than its client.
func TestSharedFetch(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	release, begun := make(chan struct{}), make(chan struct{}, 10)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		begun <- struct{}{}
		<-release
		json.NewEncoder(w).Encode(map[string]any{"keys": []any{
			map[string]string{"kty": "unheard of", "kid": "0"}, "no key", jose.JSONWebKey{Key: key.Public(), KeyID: "1"},
		}})
	})
	i := follow(t, oidc.Options{Issuer: server.URL, Audience: audience})
	<-begun
	token := oidctest.SignWith(t, jose.RS256, key, "1", oidctest.Claims{"iss": server.URL, "aud": audience, "sub": "u", "exp": time.Now().Unix() + 600})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Verify(gone, token); err == nil {
		t.Error("a token without a key is taken")
	}
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if identity, err := i.Verify(t.Context(), token); err != nil || identity.Name != "u" {
				t.Errorf("got %+v, %v", identity, err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // in which they could ask
	close(release)
	work.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}
