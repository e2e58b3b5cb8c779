package remote

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// heldLogin is a store with one login.
type heldLogin struct {
	login logins.Login
	asked int
	err   error         // of a refresh
	slow  time.Duration // of a refresh; it ends no wait of its callers
	fresh func(logins.Login) logins.Login
}

func (h *heldLogin) Of(string, string) ([]logins.Login, error) { return []logins.Login{h.login}, nil }

func (h *heldLogin) Refresh(
	ctx context.Context, _ logins.Key, _ string, _ func(context.Context, logins.Login) (logins.Login, error),
) (logins.Login, error) {
	h.asked++
	select {
	case <-ctx.Done():
		return logins.Login{}, context.Cause(ctx)
	case <-time.After(h.slow):
	}
	if h.err != nil {
		return logins.Login{}, h.err
	}
	h.login = h.fresh(h.login)
	return h.login, nil
}

// held makes a person with a login whose token ends after a time.
func held(left time.Duration) (*person, *heldLogin) {
	h := &heldLogin{login: logins.Login{
		Key:         logins.Key{Server: "s", Resource: "https://h.example/mcp", Issuer: "https://h.example"},
		AccessToken: "first", RefreshToken: "r", Expiry: time.Now().Add(left),
	}}
	h.fresh = func(l logins.Login) logins.Login {
		l.AccessToken, l.Expiry = l.AccessToken+"+", time.Now().Add(time.Hour)
		return l
	}
	return &person{endpoint: Endpoint{Name: "s", URL: "https://h.example/mcp", Logins: h}}, h
}

func (p *person) signed(t *testing.T, how *signing) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(how.in(t.Context()), http.MethodPost, p.endpoint.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.sign(req)
}

// renewed is whether a request is made again after a 401 for its token.
func (p *person) renewed(t *testing.T, token string) (bool, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.endpoint.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}
	return p.renew(t.Context(), token, req, resp)
}

// TestSlowIssuer: a request waits for a moment only while its token works, and those after it do not wait. With a token that has
// expired it waits.
func TestSlowIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := held(time.Second)
		h.slow = 20 * time.Second
		h.login.Expiry = time.Now().Add(time.Minute)
		p.ending(h.login, time.Now())
		time.Sleep(55 * time.Second) // less than a tenth of its time is left
		for i, want := range []time.Duration{maxPatience, 0, 0} {
			begun := time.Now()
			token, err := p.signed(t, new(signing))
			if waited := time.Since(begun); token != "first" || err != nil || waited != want {
				t.Errorf("request %d: got %q, %v after %v, want the old token after %v", i, token, err, waited, want)
			}
		}
		time.Sleep(3 * time.Second)
		if token, err := p.signed(t, new(signing)); token != "first+" || err != nil {
			t.Errorf("after the token has expired: got %q, %v", token, err)
		}
	})
}

// TestRefreshPause: there is a pause between two refreshes of a login, after one that failed and after one whose token is
// refused too.
func TestRefreshPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := held(-time.Minute)
		h.err = errors.New("503")
		for range 50 {
			if _, err := p.signed(t, new(signing)); !errors.Is(err, h.err) {
				t.Fatalf("got %v, want the error of the issuer", err)
			}
			if again, err := p.renewed(t, "first"); again || !errors.Is(err, h.err) {
				t.Fatalf("after a refusal: got %t, %v", again, err)
			}
		}
		if h.asked != 1 {
			t.Errorf("the issuer was asked %d times, want 1", h.asked)
		}
		time.Sleep(refreshPause)
		h.err = nil
		if token, err := p.signed(t, new(signing)); token != "first+" || err != nil {
			t.Errorf("after the pause: got %q, %v", token, err)
		}
		for range 50 {
			if again, err := p.renewed(t, "first+"); again || err != nil {
				t.Fatalf("a new token is refused: got %t, %v", again, err)
			}
		}
		time.Sleep(refreshPause)
		if again, err := p.renewed(t, "first+"); !again || err != nil || h.asked != 3 {
			t.Errorf("a refusal after the pause: got %t, %v after %d requests, want 3", again, err, h.asked)
		}
	})
}

// TestSameToken: an issuer that gives the same token again, with more time, is asked once.
func TestSameToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := held(time.Minute)
		h.fresh = func(l logins.Login) logins.Login {
			l.Expiry = time.Now().Add(time.Hour)
			return l
		}
		p.ending(h.login, time.Now())
		time.Sleep(55 * time.Second)
		for range 20 {
			if token, err := p.signed(t, new(signing)); token != "first" || err != nil {
				t.Fatalf("got %q, %v", token, err)
			}
			time.Sleep(refreshPause)
		}
		if h.asked != 1 {
			t.Errorf("the issuer was asked %d times, want 1", h.asked)
		}
	})
}

// TestNoRefreshToken: a refused login without a refresh token stays until its token has expired.
func TestNoRefreshToken(t *testing.T) {
	for _, c := range []struct {
		name   string
		expiry time.Time
		asked  int
	}{{"works", time.Now().Add(time.Hour), 0}, {"unknown", time.Time{}, 0}, {"expired", time.Now().Add(-time.Hour), 1}} {
		p, h := held(time.Hour)
		h.login.RefreshToken, h.login.Expiry, h.err = "", c.expiry, logins.ErrEnded
		if again, err := p.renewed(t, "first"); again || err != nil || h.asked != c.asked {
			t.Errorf("%s: got %t, %v after %d refreshes, want %d", c.name, again, err, h.asked, c.asked)
		}
	}
}

// TestChanged: after a refusal the sign-in has changed until a request uses another token.
func TestChanged(t *testing.T) {
	p, h := held(time.Hour)
	p.note(&http.Request{Header: http.Header{"Authorization": {"Bearer first"}}})
	if p.changed() {
		t.Error("the token is the one that was refused")
	}
	h.login.AccessToken = "second"
	for range 2 { // the question does not change the answer
		if !p.changed() {
			t.Error("another token does not count")
		}
	}
	if _, err := p.signed(t, new(signing)); err != nil || p.changed() {
		t.Errorf("after a request with the other token it still counts (%v)", err)
	}
}

// TestSignedSession: the requests of a session have one login, also after a refresh of it.
func TestSignedSession(t *testing.T) {
	p, h := held(time.Hour)
	session, other := new(signing), new(signing)
	for name, change := range map[string]func(){
		"account": func() { h.login.Issuer += "/other" }, "sign-in": func() { h.login.Made = h.login.Made.Add(time.Second) },
	} {
		session, other = other, new(signing)
		if _, err := p.signed(t, session); err != nil {
			t.Fatal(err)
		}
		h.login.AccessToken += "+"
		if _, err := p.signed(t, session); err != nil {
			t.Errorf("after a refresh: %v", err)
		}
		change()
		if token, err := p.signed(t, session); token != "" || !errors.Is(err, errOtherLogin) {
			t.Errorf("another %s: got %q, %v", name, token, err)
		}
		if token, err := p.signed(t, other); token != h.login.AccessToken || err != nil {
			t.Errorf("another %s in a new session: got %q, %v", name, token, err)
		}
	}
}

// TestTokenGoes: which addresses get the token of a login.
func TestTokenGoes(t *testing.T) {
	named := signing{messages: "https://h.example/messages?id=1"}
	for _, c := range []struct {
		how  *signing
		to   string
		want bool
	}{
		{new(signing), "https://h.example/mcp", true},
		{new(signing), "https://h.example/mcp/more?a=b", true},
		{new(signing), "http://h.example/mcp", false},
		{new(signing), "https://h.example:8443/mcp", false},
		{new(signing), "https://other.example/mcp", false},
		{new(signing), "https://h.example/", false},
		{new(signing), "https://h.example/messages?id=1", false},
		{&signing{plain: true}, "https://h.example/mcp", false},
		{&named, "https://h.example/messages?id=1", true},
		{&named, "https://h.example/messages?id=2", false},
		{&named, "https://h.example/mcp", true},
	} {
		_, h := held(time.Hour)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.how.allows(h.login, req); got != c.want {
			t.Errorf("%s of %+v: got %t", c.to, c.how.messages, got)
		}
	}
}
