package remote

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// TestCommand: what a person is asked to run after a refusal, whose text the server chooses.
func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name, header string
		status       int
		known        bool
		want         string
	}{
		{"s", `Bearer resource_metadata="https://h/x"`, 401, false, "signed out: run mcsh login s"},
		{"my server", `Bearer`, 401, true, "signed out: run mcsh login 'my server'"},
		{"s", `Bearer`, 401, false, ""},
		{"s", `Basic realm="x"`, 401, false, ""},
		{"s", ``, 403, true, ""},
		{"s", `Bearer error="invalid_token", resource_metadata="https://h/x"`, 403, true, ""},
		{"s", `Bearer error="insufficient_scope", scope="a:b https://h/c.d"`, 403, true, "the server wants more rights than were granted: run mcsh login s --scope a:b --scope https://h/c.d"},
		{"s", `Bearer error="insufficient_scope", scope="$(rm) ;rm it's *"`, 403, true, "the server wants more rights than were granted: run mcsh login s --scope '$(rm)' --scope ';rm' --scope '*'"},
		{"s", `Bearer error="insufficient_scope", scope="` + strings.Repeat("x", 200) + strings.Repeat(" y", 1000) + `"`, 403, true, "the server wants more rights than were granted: run mcsh login s --scope " + strings.Repeat("x", 200) + " --scope y"},
		{"s", `Bearer error="insufficient_scope"`, 403, true, "the server wants more rights than were granted: run mcsh login s"},
	} {
		p := person{endpoint: Endpoint{Name: c.name}, known: c.known}
		got, _ := p.command(&http.Response{StatusCode: c.status, Header: http.Header{"Www-Authenticate": {c.header}}, Request: &http.Request{}})
		if got != c.want {
			t.Errorf("%d %.80s: got %q, want %q", c.status, c.header, got, c.want)
		}
	}
}

// TestEnding: a token is replaced a minute before its end, or when a tenth of its time is left.
func TestEnding(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ life, after time.Duration }{
		{time.Hour, 59 * time.Minute}, {10 * time.Minute, 9 * time.Minute}, {100 * time.Second, 90 * time.Second}, {10 * time.Second, 9 * time.Second},
	} {
		p, login := person{}, logins.Login{AccessToken: "a", RefreshToken: "r", Expiry: now.Add(c.life)}
		if p.ending(login, now) || p.ending(login, now.Add(c.after-time.Second)) {
			t.Errorf("a token of %v is replaced before %v", c.life, c.after)
		}
		if !p.ending(login, now.Add(c.after)) {
			t.Errorf("a token of %v is not replaced after %v", c.life, c.after)
		}
	}
	for name, login := range map[string]logins.Login{
		"no refresh token": {AccessToken: "a", Expiry: now}, "no expiry": {AccessToken: "a", RefreshToken: "r"}, "none": {},
	} {
		if (&person{}).ending(login, now.Add(time.Hour)) {
			t.Errorf("%s: it is replaced", name)
		}
	}
}

// TestChosenLogin: an endpoint uses its newest login, even if that has ended: an older one may be of another account.
func TestChosenLogin(t *testing.T) {
	const server, first, second = "https://h.example/mcp", "https://first.example", "https://second.example"
	now := time.Now()
	login := func(account, issuer, resource, token string, age time.Duration) logins.Login {
		return logins.Login{Key: logins.Key{Server: "s", Resource: resource, Issuer: issuer}, Account: account, AccessToken: token, Made: now.Add(-age)}
	}
	older, newer := login("older", first, server, "t", time.Hour), login("newer", second, server, "t", time.Minute)
	ended := login("ended", second, server, "", time.Minute)
	for name, c := range map[string]struct {
		issuer string
		of     []logins.Login
		want   string
	}{
		"none":            {"", nil, ""},
		"the newest":      {"", []logins.Login{older, newer}, "newer"},
		"in any order":    {"", []logins.Login{newer, older}, "newer"},
		"ended":           {"", []logins.Login{older, ended}, "ended"},
		"of the issuer":   {first, []logins.Login{older, newer}, "older"},
		"another address": {"", []logins.Login{older, login("new", first, "https://h.example/other", "t", 0)}, "older"},
	} {
		e := Endpoint{URL: server, SignIn: SignIn{Issuer: c.issuer}}
		if got, found := e.Login(c.of); got.Account != c.want || found != (c.want != "") {
			t.Errorf("%s: got %q, %t, want %q", name, got.Account, found, c.want)
		}
	}
}
