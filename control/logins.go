package control

import (
	"context"
	"net/http"
	"time"
)

// Logins answers for the sign-ins of a gateway. Its methods may be called concurrently, and end with ctx.
type Logins interface {
	Logins() ([]Login, error)

	// Logout deletes the sign-ins to a server, or all of them, and makes their issuers revoke them.
	Logout(ctx context.Context, r LogoutRequest) ([]Logout, error)

	BeginLogin(ctx context.Context, r LoginRequest) (PendingLogin, error)

	// WaitLogin waits until a sign-in has ended, or ctx has.
	WaitLogin(ctx context.Context, id string) (LoginState, error)

	// FinishLogin ends a sign-in with the address that the browser was redirected to. Another address changes nothing.
	FinishLogin(ctx context.Context, f LoginEnd) (LoginState, error)

	CancelLogin(id string) error
}

// A Login is a sign-in of a person, without its tokens.
type Login struct {
	Server    string     `json:"server"`
	Resource  string     `json:"resource"`
	Issuer    string     `json:"issuer"`
	Account   string     `json:"account,omitempty"`
	Scopes    []string   `json:"scopes"`
	SignedIn  time.Time  `json:"signed_in"`
	Expires   *time.Time `json:"expires,omitempty"` // the access token
	Refreshed bool       `json:"refreshed"`         // before it expires
	Ended     *time.Time `json:"ended,omitempty"`   // the issuer has refused to refresh it
	Stored    string     `json:"stored"`
	Sealed    bool       `json:"sealed"`
}

// A LogoutRequest names a server, or all.
type LogoutRequest struct {
	Server string `json:"server,omitempty"`
	All    bool   `json:"all,omitempty"`
}

// A Logout is a sign-in that has ended.
type Logout struct {
	Server   string `json:"server"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	Revoked  bool   `json:"revoked"` // by the issuer
	Note     string `json:"note"`    // what the issuer has done
}

// A LoginRequest says how a person signs in.
type LoginRequest struct {
	Server   string   `json:"server"`
	Scopes   []string `json:"scopes,omitempty"`   // to ask for, too
	Redirect string   `json:"redirect,omitempty"` // an address of the caller's machine, where it waits for the browser
	Device   bool     `json:"device,omitempty"`   // on another device, with a code
}

// A PendingLogin is a sign-in that has begun, or says what the caller needs to begin one.
type PendingLogin struct {
	ID      string     `json:"id,omitempty"` // a secret
	Server  string     `json:"server"`
	Issuer  string     `json:"issuer,omitempty"`
	Address string     `json:"address,omitempty"` // that the person opens; a secret
	Code    string     `json:"code,omitempty"`    // that the person enters there
	Warning string     `json:"warning,omitempty"` // for the person
	Ends    *time.Time `json:"ends,omitempty"`

	// Listen says that nothing has begun: the caller waits for the browser on a port of its machine (0: any), and asks again with
	// the redirect address http://127.0.0.1:PORT/callback, or with localhost if the port is not 0.
	Listen *int `json:"listen,omitempty"`
}

// A LoginEnd is the address at which the browser has ended.
type LoginEnd struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// A LoginState is a sign-in that goes on, or its result. Its failure is an error.
type LoginState struct {
	State string `json:"state"` // waiting or done
	Login *Login `json:"login,omitempty"`
}

// States of a sign-in.
const (
	LoginWaiting = "waiting"
	LoginDone    = "done"
)

// loginID names a sign-in that has begun.
type loginID struct {
	ID string `json:"id"`
}

// waitMax bounds one wait for a person: the next request goes on waiting.
const waitMax = 20 * time.Second

// loginRoutes are the requests about sign-ins.
var loginRoutes = []route{
	{http.MethodGet, "/v1/logins", nil, func(_ context.Context, s Source, _ any) (any, error) { return s.Logins() }},
	post("/v1/logout", Source.Logout),
	post("/v1/logins/begin", Source.BeginLogin),
	post("/v1/logins/wait", func(s Source, ctx context.Context, l loginID) (LoginState, error) {
		ctx, cancel := context.WithTimeout(ctx, waitMax)
		defer cancel()
		return s.WaitLogin(ctx, l.ID)
	}),
	post("/v1/logins/finish", func(s Source, ctx context.Context, end LoginEnd) (LoginState, error) {
		ctx, cancel := context.WithTimeout(ctx, waitMax)
		defer cancel()
		return s.FinishLogin(ctx, end)
	}),
	post("/v1/logins/cancel", func(s Source, _ context.Context, l loginID) (struct{}, error) { return struct{}{}, s.CancelLogin(l.ID) }),
}

// Logins lists the sign-ins of the gateway.
func (c *Client) Logins(ctx context.Context) (list []Login, err error) {
	return list, c.call(ctx, queryWait, http.MethodGet, "/v1/logins", nil, &list)
}

// Logout ends sign-ins.
func (c *Client) Logout(ctx context.Context, r LogoutRequest) (list []Logout, err error) {
	return list, c.call(ctx, reloadWait, http.MethodPost, "/v1/logout", r, &list)
}

// BeginLogin begins a sign-in.
func (c *Client) BeginLogin(ctx context.Context, r LoginRequest) (p PendingLogin, err error) {
	return p, c.call(ctx, reloadWait, http.MethodPost, "/v1/logins/begin", r, &p)
}

// WaitLogin waits until a sign-in has ended.
func (c *Client) WaitLogin(ctx context.Context, id string) (Login, error) {
	return c.await(ctx, id, LoginState{State: LoginWaiting})
}

// FinishLogin ends a sign-in with the address that the browser was redirected to.
func (c *Client) FinishLogin(ctx context.Context, id, address string) (Login, error) {
	var s LoginState
	if err := c.call(ctx, reloadWait, http.MethodPost, "/v1/logins/finish", LoginEnd{id, address}, &s); err != nil {
		return Login{}, err
	}
	return c.await(ctx, id, s)
}

// await asks for the state of a sign-in until it has ended.
func (c *Client) await(ctx context.Context, id string, s LoginState) (Login, error) {
	for s.State == LoginWaiting && ctx.Err() == nil {
		s = LoginState{}
		if err := c.call(ctx, reloadWait, http.MethodPost, "/v1/logins/wait", loginID{id}, &s); err != nil {
			return Login{}, err
		}
	}
	switch {
	case s.Login != nil:
		return *s.Login, nil
	case ctx.Err() != nil:
		return Login{}, context.Cause(ctx)
	}
	return Login{}, failed(0, "start a newer gateway", "%s: the state of the sign-in is not known here: %.20q", c.name, s.State)
}

// CancelLogin gives a sign-in up.
func (c *Client) CancelLogin(ctx context.Context, id string) error {
	return c.call(ctx, queryWait, http.MethodPost, "/v1/logins/cancel", loginID{id}, &struct{}{})
}
