package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/auth"
)

const (
	// maxToken is the longest token that is looked at, in bytes: those of large companies have some thousand.
	maxToken = 16 << 10
	// retryAfter is what a client is told to wait, in seconds, where its token cannot be checked at present.
	retryAfter = 5
	// nameExtra is where the name of an identity stands among the extras of the SDK's TokenInfo.
	nameExtra = "mcsh/name"
)

// A Guard lets requests in by their bearer tokens.
type Guard struct {
	Verifiers []Verifier // asked in this order
	Resource  *Resource  // how clients get a token by themselves; nil: they cannot
	Open      []string   // paths that anybody may ask for

	// Refused is told of each request that is not let in. It may be nil.
	Refused func(r *http.Request, why *Refusal)
}

// Protect lets through to next what may be let in, before anything of a body is read. What comes through says who it is
// from in the SDK's TokenInfo, which sessions are bound to, and no longer carries the token.
func (g *Guard) Protect(next http.Handler) http.Handler {
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case g.Resource.serves(path):
			g.Resource.ServeHTTP(w, r)
		case slices.Contains(g.Open, path):
			next.ServeHTTP(w, r)
		case strings.HasPrefix(path, wellKnown):
			http.NotFound(w, r) // who looks for more ways to sign in is told that there is none
		default:
			g.admit(w, r, inside)
		}
	})
}

// admit lets a request through to inside if its token is good, for as long as it is.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, inside http.Handler) {
	token, refusal := bearer(r)
	var identity Identity
	if refusal == nil {
		identity, refusal = g.identify(r.Context(), token)
	}
	if refusal != nil {
		g.refuse(w, r, refusal)
		return
	}
	ctx := r.Context()
	if r.Method == http.MethodGet && !identity.Expires.IsZero() {
		// A stream has no end of its own, and a request is all that is checked.
		limited, cancel := context.WithDeadline(ctx, identity.Expires.Add(Skew))
		defer cancel()
		ctx = limited
	}
	r = r.WithContext(ctx) // whose body is not that of the server, which looks at its own
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{ReadCloser: r.Body, asked: time.Now(), again: func() *Refusal {
			_, refusal := g.identify(ctx, token)
			return refusal
		}}
	}
	pass(identity)(inside).ServeHTTP(w, r)
}

// NameOf is the name of the identity that a [Guard] has let in, for the log.
func NameOf(info *sdk.TokenInfo) string {
	name, _ := info.Extra[nameExtra].(string)
	return name
}

// wellKnown begins the paths where clients look for what there is.
const wellKnown = "/.well-known/"

// pass puts who a request comes from where the SDK looks for it, which only its own middleware can.
func pass(identity Identity) func(http.Handler) http.Handler {
	info := &sdk.TokenInfo{
		UserID: identity.ID, Scopes: identity.Scopes, Expiration: identity.Expires, Extra: map[string]any{nameExtra: identity.Name},
	}
	return sdk.RequireBearerToken(func(context.Context, string, *http.Request) (*sdk.TokenInfo, error) {
		return info, nil
	}, &sdk.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: Skew})
}

// Skew is how far the clocks of those who issue tokens may be from ours.
const Skew = time.Minute

// identify says whose a token is.
func (g *Guard) identify(ctx context.Context, token string) (Identity, *Refusal) {
	for _, v := range g.Verifiers {
		identity, err := v.Verify(ctx, token)
		var refusal *Refusal
		switch {
		case err == nil && identity.ID != "":
			return identity, nil
		case err == nil: // nobody may share the place of those who are nobody
			return Identity{}, Invalid("the token does not say whose it is", "")
		case errors.As(err, &refusal):
			return Identity{}, refusal
		case !errors.Is(err, ErrUnknown):
			return Identity{}, Unready("the token cannot be checked at present", "try again; the log of the gateway says why")
		}
	}
	return Identity{}, Invalid("this gateway does not know the token", g.advice())
}

// Ready says why nobody can be let in at present, or nothing. A verifier without a Ready of its own always can.
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

// advice says how to get a token.
func (g *Guard) advice() string {
	const own = "ask its operator for one, who makes it with: mcsh token new NAME"
	if g.Resource != nil {
		return "sign in at " + g.Resource.Issuer + " (a client that can finds the way by itself), or " + own
	}
	return own
}

// bearer takes the token out of a request. There is one place where it may stand.
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
	case len(token) > maxToken:
		return "", Invalid(fmt.Sprintf("the token is longer than %d bytes", maxToken), "")
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

// refuse answers a request that is not let in: in words, for clients show them, and in the header that clients act on.
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

// challenge says how to get in (RFC 6750, section 3, and RFC 9728, section 5.1).
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

// described makes text fit into a header.
func described(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return '\''
		}
		return c
	}, text)
}
