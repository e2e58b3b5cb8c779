package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/auth"
)

const (
	// MaxToken is the length of the longest accepted token in bytes: those of large companies have several thousand.
	MaxToken = 16 << 10
	// retryAfter is the Retry-After header, in seconds, if a token cannot be checked at present.
	retryAfter = 5
	// nameExtra is the key of an identity's name in the extras of the SDK's TokenInfo.
	nameExtra = "mcsh/name"
	// groupsExtra is the key of an identity's groups there; absent: the caller is not limited to groups.
	groupsExtra = "mcsh/groups"
)

// A Guard admits requests by their bearer tokens.
type Guard struct {
	Verifiers []Verifier // asked in this order
	Resource  *Resource  // tells clients how to get a token; nil: they cannot get one by themselves
	Open      []string   // paths that need no token
	Advice    string     // how to get a token from the operator; empty: one for calls of tools

	// Refused is called for each refused request. It may be nil.
	Refused func(r *http.Request, why *Refusal)
}

// Protect passes admitted requests to next, before it reads anything of a body. They carry the identity as the SDK's
// TokenInfo, to which sessions are bound, and no longer the token.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case g.Resource.serves(path):
			g.Resource.ServeHTTP(w, r)
		case slices.Contains(g.Open, path):
			next.ServeHTTP(w, r)
		case strings.HasPrefix(path, wellKnown):
			http.NotFound(w, r) // there are no other ways to sign in
		default:
			g.admit(w, r, next)
		}
	})
}

// admit passes a request to next if its token is valid.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, next http.Handler) {
	token, refusal := bearer(r)
	var identity Identity
	if refusal == nil {
		identity, refusal = g.Identify(r.Context(), token)
	}
	if refusal != nil {
		g.refuse(w, r, refusal)
		return
	}
	g.serve(w, r, token, identity, next)
}

// Pass passes a request to next as the owner of a token, which the sender has given in another way than with the request. A stream
// ends with the token. [IdentityOf] knows the owner. Pass returns the refusal of a token that is not valid.
func (g *Guard) Pass(w http.ResponseWriter, r *http.Request, token string, next http.Handler) *Refusal {
	identity, refusal := g.Identify(r.Context(), token)
	if refusal != nil {
		return refusal
	}
	r = r.WithContext(context.WithValue(r.Context(), identityKey{}, identity))
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer "+token) // the SDK looks for it
	g.serve(w, r, token, identity, next)
	return nil
}

// serve passes a request, whose header has the token, to next as the owner of the token.
func (g *Guard) serve(w http.ResponseWriter, r *http.Request, token string, identity Identity, next http.Handler) {
	ctx := r.Context()
	lasts := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
	if lasts && !identity.Expires.IsZero() {
		// A stream has no end of its own, and its token is checked only at its beginning.
		limited, cancel := context.WithDeadline(ctx, identity.Expires.Add(Skew))
		defer cancel()
		ctx = limited
	}
	r = r.WithContext(ctx) // a copy: the server inspects the body of its own request
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{ReadCloser: r.Body, checkedAt: time.Now(), again: func() *Refusal {
			_, refusal := g.Identify(ctx, token)
			return refusal
		}}
	}
	g.withIdentity(identity)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})).ServeHTTP(w, r)
}

// NameOf returns the name of the identity that a [Guard] has admitted, for the log.
func NameOf(info *sdk.TokenInfo) string {
	name, _ := info.Extra[nameExtra].(string)
	return name
}

// GroupsOf returns the groups of the identity that a [Guard] has admitted, and whether it is limited to their servers.
func GroupsOf(info *sdk.TokenInfo) (groups []string, limited bool) {
	if info == nil {
		return nil, false
	}
	found, limited := info.Extra[groupsExtra]
	groups, _ = found.([]string) // the guard has put it there
	return groups, limited
}

// LimitOf returns the groups of the caller of a request, and whether the caller is limited to their servers.
func LimitOf(ctx context.Context) (groups []string, limited bool) {
	return GroupsOf(sdk.TokenInfoFromContext(ctx))
}

// Unlimited passes requests to next, which is about all servers, and refuses those of callers who are limited to groups.
func Unlimited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, limited := LimitOf(r.Context()); limited {
			http.Error(w, "this is about all servers, and your token is for some groups of them", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// grouped reports whether callers without groups may use no server.
func (g *Guard) grouped() bool {
	return slices.ContainsFunc(g.Verifiers, func(v Verifier) bool {
		grouper, ok := v.(Grouper)
		return ok && grouper.Grouped()
	})
}

// wellKnown begins the paths where clients look for metadata.
const wellKnown = "/.well-known/"

// withIdentity adds an identity to requests. Only the SDK's own middleware can set its TokenInfo.
func (g *Guard) withIdentity(identity Identity) func(http.Handler) http.Handler {
	info := &sdk.TokenInfo{
		UserID: identity.ID, Scopes: identity.Scopes, Expiration: identity.Expires, Extra: map[string]any{nameExtra: identity.Name},
	}
	if !identity.All && (identity.Groups != nil || g.grouped()) {
		info.Extra[groupsExtra] = identity.Groups
	}
	return sdk.RequireBearerToken(func(context.Context, string, *http.Request) (*sdk.TokenInfo, error) {
		return info, nil
	}, &sdk.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: Skew})
}

// Skew is the tolerated difference between the clocks of issuers and ours.
const Skew = time.Minute

// Identify returns the owner of a token.
func (g *Guard) Identify(ctx context.Context, token string) (Identity, *Refusal) {
	for _, v := range g.Verifiers {
		identity, err := v.Verify(ctx, token)
		var refusal *Refusal
		switch {
		case err == nil && identity.ID != "":
			return identity, nil
		case err == nil: // all callers without an id would be one caller
			return Identity{}, Invalid("the token does not say whose it is", "")
		case errors.As(err, &refusal):
			return Identity{}, refusal
		case !errors.Is(err, ErrUnknown):
			return Identity{}, Unready("the token cannot be checked at present", "try again; the log of the gateway says why")
		}
	}
	return Identity{}, Invalid("this gateway does not know the token", g.advice())
}

// Ready returns nil if some verifier can admit callers, and otherwise why none can. One without a Ready method always can.
func (g *Guard) Ready() error {
	var why error
	for _, v := range g.Verifiers {
		r, ok := v.(interface{ Ready() error })
		if !ok {
			return nil
		}
		err := r.Ready()
		if err == nil {
			return nil
		}
		why = errors.Join(why, err)
	}
	return why
}

// advice tells how to get a token.
func (g *Guard) advice() string {
	own := cmp.Or(g.Advice, "ask its operator for one, who makes it with: mcsh token new NAME")
	if g.Resource != nil {
		return "sign in at " + g.Resource.Issuer + " (a client that can finds the way by itself), or " + own
	}
	return own
}

// bearer returns the token of a request, which only the Authorization header may hold.
func bearer(r *http.Request) (string, *Refusal) {
	const form = `send one header "Authorization: Bearer TOKEN"`
	wrong := func(text string) (string, *Refusal) {
		return "", &Refusal{Status: http.StatusBadRequest, Code: invalidRequest, Text: text, Hint: form}
	}
	if inQuery(r.URL.RawQuery) {
		return wrong("a token in the address is not taken: addresses are written into logs; make a new token, this one may have been read")
	}
	lines := r.Header["Authorization"]
	switch {
	case len(lines) == 0:
		return "", &Refusal{Status: http.StatusUnauthorized, Text: "this gateway wants to know who you are", Hint: form}
	case len(lines) > 1:
		return wrong(fmt.Sprintf("there are %d Authorization headers", len(lines)))
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(lines[0]), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", Invalid("the Authorization header is of another scheme than Bearer", form)
	case len(token) > MaxToken:
		return "", Invalid(fmt.Sprintf("the token is longer than %d bytes", MaxToken), "")
	case token == "":
		return "", Invalid("the Authorization header holds no token", form+"; the variable that the client takes it from may not be set")
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", Invalid("the token holds characters that no token has", form)
	}
	return token, nil
}

// inQuery reports whether a query holds a token, as far as it can be read.
func inQuery(query string) bool {
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		if name, _, _ := strings.Cut(part, "="); strings.EqualFold(name, "access_token") {
			return true
		}
	}
	return false
}

// refuse answers a refused request with a text that clients show, and a header that clients act on.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, why *Refusal) {
	if why.Status == http.StatusUnauthorized && why.Hint == "" {
		why.Hint = g.advice()
	}
	if g.Refused != nil {
		g.Refused(r, why)
	}
	if why.wait {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	} else {
		w.Header().Set("WWW-Authenticate", g.challenge(r, why))
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why.Error(), why.Status)
}

// challenge writes WWW-Authenticate (RFC 6750, section 3, and RFC 9728, section 5.1).
func (g *Guard) challenge(r *http.Request, why *Refusal) string {
	params := []string{`realm="mcsh"`}
	if why.Code != "" {
		params = append(params, fmt.Sprintf(`error="%s"`, why.Code), fmt.Sprintf(`error_description="%s"`, described(why.Text)))
	}
	if g.Resource != nil {
		params = append(params, fmt.Sprintf(`resource_metadata="%s"`, g.Resource.metadataURL(r)))
		if len(g.Resource.Scopes) > 0 {
			params = append(params, fmt.Sprintf(`scope="%s"`, strings.Join(g.Resource.Scopes, " ")))
		}
	}
	return "Bearer " + strings.Join(params, ", ")
}

// described replaces the characters of a text that a header cannot hold.
func described(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return '\''
		}
		return c
	}, text)
}

// recheckAfter is the age of the first check of a token after which the end of the body needs a second one. Most bodies
// arrive at once. A call that began after the end of its caller would not be cancelled with the others.
const recheckAfter = 10 * time.Millisecond

// body is the body of a request that was admitted before the body arrived. If the token has ended when a late body is
// complete, its reader gets the refusal instead of io.EOF.
type body struct {
	io.ReadCloser
	checkedAt time.Time
	again     func() *Refusal // checks the token again; nil: it is still valid
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && time.Since(b.checkedAt) > recheckAfter {
		if refusal := b.again(); refusal != nil {
			return n, refusal
		}
	}
	return n, err
}
