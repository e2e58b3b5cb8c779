package auth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// An Identity is who a token belongs to.
type Identity struct {
	ID      string    // what no other caller has, whatever verifier it comes from
	Name    string    // what people call the caller
	Scopes  []string  // what the token was given for
	Expires time.Time // when the token ends; zero: never
}

// A Verifier says whose a token is. Verify may be called concurrently. Its error wraps [ErrUnknown] where the token is none
// of this verifier's, so that the next one is asked, and is a [*Refusal] where nobody else need be.
type Verifier interface {
	Verify(ctx context.Context, token string) (Identity, error)
}

// ErrUnknown is wrapped by the error of a token that a verifier knows nothing of.
var ErrUnknown = errors.New("unknown token")

// Codes of refusals, which clients act on (RFC 6750, section 3.1).
const (
	invalidRequest    = "invalid_request"
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// A Refusal is why a request is not let in, in words for the people at the client. They hold nothing of the token.
type Refusal struct {
	Status int    // of HTTP
	Code   string // empty: none of the codes says it
	Text   string
	Hint   string // what to do

	wait bool // trying again will do
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

// Insufficient refuses a token that was not given for this.
func Insufficient(text, hint string) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Code: insufficientScope, Text: text, Hint: hint}
}

// Unready refuses a token that cannot be checked at present.
func Unready(text, hint string) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Text: text, Hint: hint, wait: true}
}
