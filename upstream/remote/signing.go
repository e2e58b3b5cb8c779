package remote

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// A signing says how the requests of one session are signed with logins. Their contexts hold it.
type signing struct {
	plain    bool                      // without a token
	messages string                    // the address for messages that a server of the older transport has named
	by       atomic.Pointer[signature] // of the first request; nil: there was none
}

// A signature is one sign-in of somebody. A refresh does not change it.
type signature struct {
	logins.Key
	made int64
}

// signingKey is the key of a signing in a context.
type signingKey struct{}

func (s *signing) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, signingKey{}, s)
}

// signingOf returns the signing of a request. One outside of sessions has its own.
func signingOf(req *http.Request) *signing {
	if s, ok := req.Context().Value(signingKey{}).(*signing); ok {
		return s
	}
	return new(signing)
}

// errOtherLogin is the error of a request in a session that began with another login. A server binds a session to its account,
// so that another one needs a new session.
var errOtherLogin = errors.New("somebody has signed in or out since the session began")

// check refuses a login that is not the one with which the session began.
func (s *signing) check(login logins.Login) error {
	now := signature{login.Key, login.Made.UnixNano()}
	if !s.by.CompareAndSwap(nil, &now) && *s.by.Load() != now {
		return errOtherLogin
	}
	return nil
}

// allows reports whether a request gets the token of a login: its address is in the resource of the login. The address for
// messages gets the token too, which the server of the stream has, and which names it on its own origin.
func (s *signing) allows(login logins.Login, req *http.Request) bool {
	to := req.URL.String()
	return !s.plain && (signin.Covers(login.Resource, to) || s.messages != "" && to == s.messages)
}
