// Package oidctest is an OpenID Connect issuer for tests: it says what it is, publishes its keys, signs in
// anyone who asks, and signs any text that a test wants to send.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer is a running issuer.
type Issuer struct {
	URL string

	t testing.TB

	mu      sync.Mutex
	name    string         // what it says that it is, guarded by mu
	keys    map[string]key // those that it publishes, by their ids; guarded by mu
	down    bool           // guarded by mu
	set     string         // of keys that it publishes in their place; empty: none; guarded by mu
	keyless bool           // whether it serves no keys, guarded by mu
	fetched int            // how often its keys were, guarded by mu
	asked   url.Values     // of the latest sign-in, guarded by mu
}

type key struct {
	private   crypto.Signer
	algorithm jose.SignatureAlgorithm
}

// New starts an issuer with one key of RSA, which has the id "1". It ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, keys: map[string]key{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.about)
	mux.HandleFunc("GET /keys", i.publish)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL, i.name = server.URL, server.URL
	i.AddKey("1", jose.RS256)
	return i
}

// AddKey publishes one more key.
func (i *Issuer) AddKey(id string, algorithm jose.SignatureAlgorithm) {
	i.t.Helper()
	var private crypto.Signer
	var err error
	if algorithm == jose.ES256 {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[id] = key{private, algorithm}
}

// RemoveKey publishes a key no longer.
func (i *Issuer) RemoveKey(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.keys, id)
}

// SetDown makes the issuer answer that it is out of order, or no longer.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// SetKeyless makes the issuer answer that its keys are out of order, or no longer.
func (i *Issuer) SetKeyless(keyless bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keyless = keyless
}

// SetKeys makes the issuer publish a text in place of its keys.
func (i *Issuer) SetKeys(set string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set = set
}

// SetName makes the issuer say that it is another.
func (i *Issuer) SetName(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name = name
}

// Fetched is how often the keys were fetched.
func (i *Issuer) Fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched
}

func (i *Issuer) about(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer(w, map[string]any{
		"issuer":                 i.name,
		"jwks_uri":               "HTTP" + strings.TrimPrefix(i.URL, "http") + "/keys", // which is the same, and reads otherwise
		"authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"code_challenge_methods_supported": []string{"S256"}, "grant_types_supported": []string{"authorization_code"},
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		// More than anybody should take: what is taken is not for the issuer to say.
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"},
	})
}

func (i *Issuer) publish(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetched++
	if i.keyless {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	if i.set != "" {
		i.answer(w, json.RawMessage(i.set))
		return
	}
	set := jose.JSONWebKeySet{}
	for id, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: id, Algorithm: string(k.algorithm), Use: "sig"})
	}
	i.answer(w, set)
}

// answer is called with mu held.
func (i *Issuer) answer(w http.ResponseWriter, v any) {
	if i.down {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Errorf("the issuer: %v", err)
	}
}

// authorize signs in anyone who asks, as the subject that the client's id names, and sends them back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked = r.URL.Query()
	back := i.asked.Get("redirect_uri") + "?" + url.Values{"code": {"the-code"}, "state": i.asked["state"]}.Encode()
	i.mu.Unlock()
	http.Redirect(w, r, back, http.StatusFound)
}

// token gives a token for the code, to who has asked for it (PKCE), for the resource that was named (RFC 8707).
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	asked := i.asked
	i.mu.Unlock()
	hash := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if r.FormValue("code") != "the-code" || base64.RawURLEncoding.EncodeToString(hash[:]) != asked.Get("code_challenge") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := i.Claims(asked.Get("client_id"), r.FormValue("resource"))
	claims["scope"] = asked.Get("scope")
	signed := i.Sign("1", claims)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer(w, map[string]any{"access_token": signed, "token_type": "Bearer", "expires_in": 3600, "scope": asked.Get("scope")})
}

// Claims are what a token says.
type Claims = map[string]any

// Claims are those of a token that is right: of a subject, for an audience, for an hour.
func (i *Issuer) Claims(subject, audience string) Claims {
	now := time.Now().Unix()
	return Claims{"iss": i.URL, "sub": subject, "aud": audience, "iat": now, "exp": now + 3600}
}

// Sign makes a token with a key that is published.
func (i *Issuer) Sign(id string, claims Claims) string {
	i.t.Helper()
	i.mu.Lock()
	k, ok := i.keys[id]
	i.mu.Unlock()
	if !ok {
		i.t.Fatalf("there is no key %q", id)
	}
	return SignWith(i.t, k.algorithm, k.private, id, claims)
}

// Typed makes a token of a type (typ) with a key that is published.
func (i *Issuer) Typed(id, typ string, claims Claims) string {
	i.t.Helper()
	i.mu.Lock()
	k := i.keys[id]
	i.mu.Unlock()
	return SignHead(i.t, k.algorithm, k.private, claims, map[jose.HeaderKey]any{"kid": id, "typ": typ})
}

// PublicPEM is the public part of a key, as those have it who hold it for a secret.
func (i *Issuer) PublicPEM(id string) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	der, err := x509.MarshalPKIXPublicKey(i.keys[id].private.Public())
	if err != nil {
		panic(fmt.Sprintf("oidctest: internal error: %v", err))
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// SignWith makes a token with any key.
func SignWith(t testing.TB, algorithm jose.SignatureAlgorithm, secret any, id string, claims Claims) string {
	t.Helper()
	head := map[jose.HeaderKey]any{}
	if id != "" {
		head["kid"] = id
	}
	return SignHead(t, algorithm, secret, claims, head)
}

// SignHead makes a token with any key, and says of its signature whatever head says.
func SignHead(t testing.TB, algorithm jose.SignatureAlgorithm, secret any, claims Claims, head map[jose.HeaderKey]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return signText(t, algorithm, secret, payload, head)
}

// SignText makes a token with a key that is published, of claims that are written out, such as those with a name twice.
func (i *Issuer) SignText(t testing.TB, id, claims string, head map[jose.HeaderKey]any) string {
	t.Helper()
	i.mu.Lock()
	k := i.keys[id]
	i.mu.Unlock()
	all := map[jose.HeaderKey]any{"kid": id}
	maps.Copy(all, head)
	return signText(t, k.algorithm, k.private, []byte(claims), all)
}

func signText(t testing.TB, algorithm jose.SignatureAlgorithm, secret any, payload []byte, head map[jose.HeaderKey]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: secret}, &jose.SignerOptions{ExtraHeaders: head})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
