package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/control"
)

// Logins has the sign-ins of people to servers.
type Logins interface {
	// Logins returns the servers that a person may sign in to, and the sign-ins that are kept.
	Logins(ctx context.Context) ([]LoginState, error)

	// Login begins a sign-in, which the person goes on with at an address.
	Login(ctx context.Context, server string) (control.PendingLogin, error)

	// Logout ends the sign-ins to a server.
	Logout(ctx context.Context, server string) ([]control.Logout, error)
}

// A LoginState is a server with the sign-in to it, if there is one.
type LoginState struct {
	Server string
	Needed bool // the server has refused to work without
	Login  *control.Login
}

func loginsPage() page {
	return page{
		path: "logins", title: "Logins", file: "logins.html", menu: "logins", keys: "i",
		there: func(o *Options) bool { return o.Logins != nil }, show: showLogins,
		acts: []act{{"logins/{server}/login", login}, {"logins/{server}/logout", logout}},
	}
}

// A loginsView is the list of servers, and a sign-in that has begun.
type loginsView struct {
	List    []LoginState
	Begun   *control.PendingLogin
	Since   int64 // when it has begun, in milliseconds
	Wrong   string
	Allowed bool // the visitor may sign in and out
}

func showLogins(v *Visit) (any, error) {
	list, err := v.Options().Logins.Logins(v.Context())
	view := &loginsView{List: list, Allowed: v.Who.Operator}
	if err != nil {
		view.Wrong = sentence(err)
	}
	if server := v.URL.Query().Get("begun"); server != "" && v.Fragment() && !view.signedIn(server, v.number("since")) {
		v.done = true
		v.w.WriteHeader(http.StatusNoContent) // the page keeps what it has
	}
	return view, nil
}

// signedIn reports whether somebody has signed in to a server since a time, in milliseconds.
func (l *loginsView) signedIn(server string, since int64) bool {
	return slices.ContainsFunc(l.List, func(s LoginState) bool {
		return s.Server == server && s.Login != nil && s.Login.SignedIn.UnixMilli() >= since/1000*1000 // files may have whole seconds
	})
}

// sentence is an error with what to do next.
func sentence(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok && e.Hint != "" {
		return e.Message + ": " + e.Hint
	}
	return err.Error()
}

func login(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	begun, err := v.Options().Logins.Login(v.Context(), v.PathValue("server"))
	if err != nil {
		return nil, &Problem{http.StatusConflict, "The sign-in has not begun", sentence(err), ""}
	}
	data, err := showLogins(v)
	if view, ok := data.(*loginsView); ok {
		view.Begun, view.Since = &begun, time.Now().UnixMilli()
	}
	return data, err
}

func logout(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	ended, err := v.Options().Logins.Logout(v.Context(), v.PathValue("server"))
	switch {
	case err != nil:
		return nil, &Problem{http.StatusConflict, "The sign-in has not ended", sentence(err), ""}
	case len(ended) > 0:
		v.Notice("Signed out of %s: %s", v.PathValue("server"), ended[0].Note)
	}
	return showLogins(v)
}
