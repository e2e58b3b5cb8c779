package uitest

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// A Visitor asks a console for pages, as a browser that shows none of them.
type Visitor struct {
	g      *Gateway
	client *http.Client
	token  string // of forms
}

var formToken = regexp.MustCompile(`(?:name="console-token" value=|"X-Console-Token": )"([^"]+)"`)

// Visit signs in to the console of a gateway with a token; empty: nobody authenticates there.
func (g *Gateway) Visit(t testing.TB, token string) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &Visitor{g: g, client: &http.Client{Jar: jar}}
	v.know(t)
	if token != "" {
		if status, page := v.Post(t, "signin", url.Values{"token": {token}}); status != http.StatusOK {
			t.Fatalf("signing in: status %d\n%s", status, page)
		}
		v.know(t)
	}
	return v
}

// know takes the token of forms from the first page.
func (v *Visitor) know(t testing.TB) {
	t.Helper()
	_, page := v.Get(t, "")
	found := formToken.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no token for forms:\n%s", page)
	}
	v.token = found[1]
}

// Get asks for a page by its address below the console.
func (v *Visitor) Get(t testing.TB, path string) (status int, page string) {
	t.Helper()
	return v.ask(t, http.MethodGet, path, nil)
}

// Post sends a form, with the token that forms have.
func (v *Visitor) Post(t testing.TB, path string, form url.Values) (status int, page string) {
	t.Helper()
	return v.ask(t, http.MethodPost, path, form)
}

func (v *Visitor) ask(t testing.TB, method, path string, form url.Values) (status int, page string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, v.g.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Console-Token", v.token)
	}
	answer, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return answer.StatusCode, string(text)
}
