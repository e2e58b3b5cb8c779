package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// An Identity is the owner of a token.
type Identity struct {
	ID      string    // unique among the callers of all verifiers
	Name    string    // for people
	Scopes  []string  // of the token
	Expires time.Time // of the token; zero: never

	Groups []string // of servers that the caller may use, sorted; nil: the verifier knows of none
	All    bool     // the caller may use all servers, with or without groups

	Operator bool // the caller may see what all callers do
}

// identityKey is the context key of the identity of a request.
type identityKey struct{}

// IdentityOf returns the identity of a request that [Guard.Pass] has passed.
func IdentityOf(ctx context.Context) (identity Identity, known bool) {
	identity, known = ctx.Value(identityKey{}).(Identity)
	return identity, known
}

// groupNames matches the valid names of groups of servers, as package upstream has them.
var groupNames = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidGroup reports whether a group of servers may have a name.
func ValidGroup(name string) bool { return groupNames().MatchString(name) }

// A Grouper is a [Verifier] that limits callers to groups. If one does, callers without groups may use no server, with
// any verifier.
type Grouper interface {
	// Grouped reports whether any caller has groups. Once true it stays so.
	Grouped() bool
}

// A Verifier identifies the owner of a token. Verify may be called concurrently. Its error wraps [ErrUnknown] if the next
// verifier should be asked, and is a [*Refusal] if none should. Any other error means that the token cannot be checked at present.
type Verifier interface {
	Verify(ctx context.Context, token string) (Identity, error)
}

// ErrUnknown is wrapped by the error for a token that a verifier does not know.
var ErrUnknown = errors.New("unknown token")

// Codes of refusals, which clients act on (RFC 6750, section 3.1).
const (
	invalidRequest    = "invalid_request"
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// A Refusal explains to the people at the client why a request is refused. Its texts hold nothing of the token.
type Refusal struct {
	Status int    // of HTTP
	Code   string // empty: no code applies
	Text   string
	Hint   string // what to do

	wait bool // a retry can help
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Text
	}
	return r.Text + ": " + r.Hint
}

// Invalid refuses a token.
func Invalid(text, hint string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Code: invalidToken, Text: text, Hint: hint}
}

// Insufficient refuses a token that lacks a scope.
func Insufficient(text, hint string) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Code: insufficientScope, Text: text, Hint: hint}
}

// Unready refuses a token that cannot be checked at present.
func Unready(text, hint string) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Text: text, Hint: hint, wait: true}
}
