package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/pending"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// pagesPath begins the paths of the pages of sign-ins on a listener that serves other things, too.
const pagesPath = "/oauth"

// newSignIns returns the sign-ins of a gateway. The caller closes them.
func (p *program) newSignIns(ctx context.Context, s settings, l *listenFlags) *signIns {
	store, _ := p.openLogins(ctx, s) // opening the configuration reports it
	o := pending.Options{Store: store}
	if l.hasPages() {
		o.Public = strings.TrimSuffix(l.auth.public, "/") + pagesPath
	}
	return &signIns{SignIns: pending.New(o), store: store}
}

// hasPages reports whether browsers reach the gateway.
func (l *listenFlags) hasPages() bool { return l.address != "" && l.auth.public != "" }

// alone reports whether only the person at this machine reaches the gateway with a client: then that person also opens the pages
// that the client is asked to show. A gateway with a public address, with another name, or behind a proxy has other callers; the
// pages of one that is the program of a container are not reached.
func (l *listenFlags) alone() bool {
	if _, inside := containerAddress(); inside && os.Getppid() <= 1 || l.contained || l.runtime { // its client is outside
		return false
	}
	host, _, err := net.SplitHostPort(l.address)
	return l.address == "" || err == nil && isLoopback(host) && !l.auth.enabled() && l.auth.public == "" && len(l.hosts)+len(l.proxies) == 0
}

// withPages adds the pages of sign-ins to the paths of h, if there is an address for browsers. A proxy may leave the path of that
// address out.
func (l *listenFlags) withPages(pages http.Handler, h http.Handler) http.Handler {
	public, err := url.Parse(l.auth.public)
	if !l.hasPages() || pages == nil || err != nil {
		return h
	}
	below := strings.TrimSuffix(public.Path, "/") + pagesPath + "/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pagesPath+"/") || strings.HasPrefix(r.URL.Path, below) {
			pages.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// signIns are the sign-ins of a gateway that serves.
type signIns struct {
	*pending.SignIns
	store   *logins.Store // nil: there is neither a state directory nor a shared store
	servers *upstream.Pool
}

var _ control.Logins = (*signIns)(nil)

// Begin implements [upstream.SignIns].
func (s *signIns) Begin(ctx context.Context, e upstream.Endpoint, scopes []string) (string, func(context.Context) error, error) {
	server, err := e.SignInServer()
	if err != nil {
		return "", nil, err
	}
	server.More = scopes
	return s.Here(ctx, server)
}

// usable returns the error of a gateway that keeps no sign-ins.
func (s *signIns) usable() error {
	if s.store == nil {
		return &control.Error{Status: http.StatusConflict, Message: "the gateway keeps no sign-ins", Hint: "start it with a state directory (--state DIR)"}
	}
	return nil
}

// Logins implements [control.Logins].
func (s *signIns) Logins() ([]control.Login, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return storedLogins(s.store)
}

// Logout implements [control.Logins].
func (s *signIns) Logout(ctx context.Context, r control.LogoutRequest) ([]control.Logout, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if (r.Server != "") == r.All {
		return nil, &control.Error{Status: http.StatusBadRequest, Message: "name one server, or all", Hint: `such as {"server": "github"} or {"all": true}`}
	}
	list := []control.Logout{}
	err := endLogins(ctx, s.store, s.servers.Configured(ctx), r.Server, func(l control.Logout) error {
		l.Note = s.servers.Hide(l.Note)
		list = append(list, l)
		return nil
	})
	if errors.Is(err, errNobodySignedIn) {
		return list, nil
	}
	return list, s.failed(r.Server, err)
}

// server returns a configured server that a person may sign in to.
func (s *signIns) server(ctx context.Context, name string, scopes []string) (signin.Server, error) {
	if err := s.usable(); err != nil {
		return signin.Server{}, err
	}
	servers := s.servers.Configured(ctx)
	at := slices.IndexFunc(servers, func(one upstream.Server) bool { return one.Name == name })
	if err := checkPersonSignsIn(servers, at, name); err != nil {
		return signin.Server{}, err
	}
	if bad := slices.IndexFunc(scopes, func(scope string) bool { return !signin.ValidScope(scope) }); bad >= 0 || len(scopes) > logins.MaxScopes {
		return signin.Server{}, usageError("scopes are words without spaces and quotes", "the scopes cannot be asked for")
	}
	server, err := servers[at].Endpoint.SignInServer()
	if err != nil {
		return server, configError("fix tls of the server", fmt.Errorf("%s: %w", name, err))
	}
	server.More = scopes
	return server, nil
}

// BeginLogin implements [control.Logins].
func (s *signIns) BeginLogin(ctx context.Context, r control.LoginRequest) (control.PendingLogin, error) {
	server, err := s.server(ctx, r.Server, r.Scopes)
	if err != nil {
		return control.PendingLogin{}, s.failed(r.Server, err)
	}
	var begun *pending.SignIn
	if r.Device {
		begun, err = s.Device(ctx, server)
	} else {
		begun, err = s.SignIns.Begin(ctx, server, r.Redirect)
	}
	switch {
	case errors.Is(err, pending.ErrListen):
		return control.PendingLogin{Server: r.Server, Listen: &server.CallbackPort}, nil
	case errors.Is(err, signin.ErrNotNeeded):
		return control.PendingLogin{}, &control.Error{Status: http.StatusNotFound, Message: r.Server + ": " + worksWithout, Hint: "there is nothing to do"}
	case err != nil:
		return control.PendingLogin{}, s.failed(r.Server, err)
	}
	return control.PendingLogin{
		ID: begun.ID, Server: begun.Server, Issuer: begun.Issuer, Address: begun.Address, Code: begun.Code, Warning: begun.Warning, Ends: &begun.Ends,
	}, nil
}

// WaitLogin implements [control.Logins].
func (s *signIns) WaitLogin(ctx context.Context, id string) (control.LoginState, error) {
	login, err := s.Wait(ctx, id)
	return s.state(ctx, id, login, err)
}

// FinishLogin implements [control.Logins].
func (s *signIns) FinishLogin(ctx context.Context, f control.LoginEnd) (control.LoginState, error) {
	login, err := s.Finish(ctx, f.ID, f.Address)
	return s.state(ctx, f.ID, login, err)
}

// state describes a sign-in: an end of ctx is none of it.
func (s *signIns) state(ctx context.Context, id string, login logins.Login, err error) (control.LoginState, error) {
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return control.LoginState{State: control.LoginWaiting}, nil
	default:
		return control.LoginState{}, s.failed(s.ServerOf(id), err)
	}
	row, err := describe(s.store, login)
	if err != nil {
		return control.LoginState{}, s.failed(s.ServerOf(id), err)
	}
	return control.LoginState{State: control.LoginDone, Login: &row}, nil
}

// CancelLogin implements [control.Logins].
func (s *signIns) CancelLogin(id string) error { return s.failed("", s.Cancel(id)) }

// statusOfLogins are the answers to requests about sign-ins, by the exit status that the command would have.
var statusOfLogins = map[int]int{exitUsage: http.StatusNotFound, exitConfig: http.StatusInternalServerError, exitAuth: http.StatusUnprocessableEntity}

// failed returns the error of a request, with what to do next.
func (s *signIns) failed(server string, err error) error {
	switch {
	case err == nil:
		return nil
	case isType[*control.Error](err), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, pending.ErrAddress):
		return &control.Error{Status: http.StatusConflict, Message: err.Error(), Hint: "copy all of the address that the browser ends at"}
	case errors.Is(err, pending.ErrUnknown):
		return &control.Error{Status: http.StatusNotFound, Message: err.Error(), Hint: "begin again"}
	}
	hint, status := "", exitAuth
	if !classified(err) {
		err = loginFailure(server, err)
	}
	if f, ok := errors.AsType[*failure](err); ok {
		hint, status = f.hint, f.status
	}
	code := statusOfLogins[status]
	if errors.Is(err, pending.ErrMany) {
		code = http.StatusTooManyRequests
	}
	return &control.Error{Status: max(code, http.StatusNotFound), Message: s.servers.Hide(strings.TrimPrefix(err.Error(), ": ")), Hint: hint}
}
