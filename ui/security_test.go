package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/control"
)

// secretive is a gateway whose words nobody may read who has not signed in.
type secretive struct{ fake }

func (secretive) Waiting(context.Context, string) ([]WaitingTool, error) { return nil, nil }
func (secretive) Accept(context.Context, string, string, string) error   { return nil }
func (secretive) Restart(context.Context, string) error                  { return nil }
func (secretive) Disable(context.Context, string) error                  { return nil }
func (secretive) Enable(context.Context, string) error                   { return nil }
func (secretive) Resources(context.Context) []Resource                   { return nil }
func (secretive) Prompts(context.Context) []Prompt                       { return nil }
func (secretive) Read(context.Context, string) ([]Content, error) {
	return []Content{{Text: "was read"}}, nil
}

func (secretive) Prompt(context.Context, string, string, map[string]string) ([]Content, error) {
	return nil, nil
}

// secretServers has a server with words on its standard error.
type secretServers struct{ secretive }

func (secretServers) Servers(context.Context) []ServerState {
	return []ServerState{{Name: "one", Status: "ready", Stderr: "words about callers", Calls: 4711, Errors: 4712, P50: 4713 * time.Hour, P95: 4713 * time.Hour}}
}

// newSecretive makes a console of it, and appends to acts what operators do.
func newSecretive(t *testing.T, acts *[]string) *Console {
	t.Helper()
	c, err := New(Options{
		About: func() control.Gateway {
			return control.Gateway{ID: "gateway-id", Directory: "/secret/directory", Started: time.Now()}
		},
		Activity: fake{}, System: fake{}, Servers: secretServers{}, Offers: secretive{},
		Acted: func(who, path string) { *acts = append(*acts, who+" "+path) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// signedIn signs somebody in and returns the cookie.
func signedIn(t *testing.T, c *Console, h http.Handler, token string) string {
	t.Helper()
	w := serve(h, "POST", "/signin", url.Values{"token": {token}, tokenField: {(&Visit{console: c}).token()}}.Encode())
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return strings.Split(w.Header().Get("Set-Cookie"), ";")[0]
}

// TestStrangers: who has not signed in learns nothing of the gateway, from no page, no problem and no stream.
func TestStrangers(t *testing.T) {
	c := newSecretive(t, new([]string))
	guard, _ := guardOf(t, "alice")
	var refused []string
	guard.Refused = func(_ *http.Request, why *auth.Refusal) { refused = append(refused, why.Text) }
	h := c.Handler(Door{Guard: guard})
	form := (&Visit{console: c}).token()
	for _, test := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/", "", 401},
		{"GET", "/system", "", 401},
		{"GET", "/events?topic=runs", "", 401},
		{"HEAD", "/events", "", 401},
		{"GET", "/results/r_1/bytes", "", 401},
		{"GET", "/nothing", "", 401},
		{"POST", "/servers/one/restart", tokenField + "=" + form, 401},
		{"POST", "/servers/one/disable", tokenField + "=" + form, 401},
		{"POST", "/signin", "token=x", 403},
		{"POST", "/logout", "a=b", 403},
		{"POST", "/signin", "token=mcsh_x&" + tokenField + "=" + form, 401},
	} {
		w := serve(h, test.method, test.target, test.body)
		if w.Code != test.status || strings.Contains(w.Body.String(), "gateway-id") || strings.Contains(w.Body.String(), "/secret") {
			t.Errorf("%s %s: status %d, %s", test.method, test.target, w.Code, w.Body)
		}
	}
	if len(refused) != 1 {
		t.Errorf("%d tokens of a form were reported as refused: %q", len(refused), refused)
	}
}

// TestOperatorsOnly: callers do not see what servers say of others, and do not do what is the operator's; what operators do is said.
func TestOperatorsOnly(t *testing.T) {
	var acts []string
	c := newSecretive(t, &acts)
	guard, list := guardOf(t, "alice")
	caller, operator := c.Handler(Door{Guard: guard}), c.Handler(Door{})
	cookie := signedIn(t, c, caller, list[0])
	for path, words := range map[string][]string{"/servers": {"4\u202f711", "4\u202f712", "196 d"}, "/servers/one": {"words about callers", "4\u202f711", "4\u202f712", "196 d"}} {
		of, all := serve(caller, "GET", path, "", "Cookie", cookie), serve(operator, "GET", path, "")
		for _, word := range words {
			if of.Code != 200 || strings.Contains(of.Body.String(), word) {
				t.Errorf("a caller finds %q at %s: status %d, %s", word, path, of.Code, of.Body)
			}
			if !strings.Contains(all.Body.String(), word) {
				t.Errorf("the operator does not find %q at %s: %s", word, path, all.Body)
			}
		}
	}
	token := (&Visit{console: c, Who: Person{ID: c.sessionOf(cookie).person}}).token()
	for _, what := range []string{"restart", "disable", "enable"} {
		path := "/servers/one/" + what
		if w := serve(caller, "POST", path, "", "Cookie", cookie, tokenHeader, token); w.Code != 403 || len(acts) != 0 {
			t.Errorf("a caller: %s: status %d, %q", what, w.Code, acts)
		}
		if w := serve(operator, "POST", path, ""); w.Code != 403 || len(acts) != 0 {
			t.Errorf("without the word of the page: %s: status %d, %q", what, w.Code, acts)
		}
		if w := serve(operator, "POST", path, "", tokenHeader, (&Visit{console: c}).token()); w.Code != 200 || strings.Join(acts, "") != " "+path {
			t.Errorf("the operator: %s: status %d, %q", what, w.Code, acts)
		}
		acts = nil
	}
}

// sessionOf returns the sign-in of a cookie.
func (c *Console) sessionOf(cookie string) session {
	_, word, _ := strings.Cut(cookie, "=")
	s, _, _ := c.sessions.get(word)
	return s
}

// TestReadsOfOtherPages: no page of another origin, also of another port of this machine, makes a server read.
func TestReadsOfOtherPages(t *testing.T) {
	h := newSecretive(t, new([]string)).Handler(Door{})
	for site, want := range map[string]bool{"": true, "none": true, "same-origin": true, "same-site": false, "cross-site": false} {
		w := serve(h, "GET", "/resources/read?uri=x", "", "Sec-Fetch-Site", site)
		if got := strings.Contains(w.Body.String(), "was read"); w.Code != 200 || got != want {
			t.Errorf("%q: status %d, it was read: %t", site, w.Code, got)
		}
	}
}

// TestEndUser: the open streams of an identity end with its access, and the sign-ins of others stay.
func TestEndUser(t *testing.T) {
	c := newTestConsole(t)
	guard, list := guardOf(t, "alice", "bob")
	h := c.Handler(Door{Guard: guard})
	server := httptest.NewServer(h)
	defer server.Close()
	alice, bob := signedIn(t, c, h, list[0]), signedIn(t, c, h, list[1])
	ended := make(chan error, 1)
	req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/events?topic=runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	name := (Door{}).cookieName(&http.Request{Host: req.URL.Host}, sessionCookie)
	req.AddCookie(&http.Cookie{Name: name, Value: strings.SplitN(alice, "=", 2)[1]})
	res, err := server.Client().Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	defer res.Body.Close()
	go func() {
		buffer, err := make([]byte, 100), error(nil)
		for err == nil {
			_, err = res.Body.Read(buffer)
		}
		ended <- err
	}()
	c.EndUser(c.sessionOf(alice).person)
	<-ended
	if w := serve(h, "GET", "/", "", "Cookie", bob); w.Code != 200 {
		t.Errorf("that of another has ended: status %d", w.Code)
	}
}
