//go:build !race

package ui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/internal/oidctest"
	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// cookies returns the cookies of the console.
func cookies(p *uitest.Page) []*network.Cookie {
	return uitest.Call(p, network.GetCookies, network.GetCookiesParams{}).Cookies
}

// TestSignInWithToken: a person signs in with a token, is asked again when that goes, and logs out.
func TestSignInWithToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	first, second := uitest.Token(t, file, "alice", "--operator"), uitest.Token(t, file, "bob")
	g := uitest.Serve(t, "--tokens", file)
	p := uitest.Open(t, g.URL+"system")
	p.Allow("401")
	p.See("main", "Sign in")
	p.Axe()
	document(p, "sign-in.png", false)
	enter := func(token string) {
		p.Until(`document.readyState === "complete" && document.querySelector("#token")`)
		p.Do(chromedp.SendKeys("#token", token), chromedp.Click(`form[action="signin"] button`))
	}
	enter("mcsh_wrong")
	p.See("main", "does not know the token")
	enter(first)
	p.See("#system-state", "Sandbox") // the page that was asked for
	p.See(".person", "alice")
	p.See(".person", "operator")
	for _, c := range cookies(p) {
		if !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || strings.Contains(c.Value, first) {
			t.Errorf("the cookie %s is %+v", c.Name, c)
		}
	}
	p.Do(chromedp.Click(".person button"))
	p.See("main", "Sign in")
	if left := cookies(p); len(left) > 0 {
		t.Errorf("cookies are left: %v", left)
	}
	enter(second)
	p.See(".person", "bob")
	if err := os.WriteFile(file, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Go(g.URL + "system")
	p.See("main", "The one with which your MCP client calls this gateway")
}

// TestSignInAtIssuer: a person signs in at the issuer, with PKCE, and is the caller of the token.
func TestSignInAtIssuer(t *testing.T) {
	issuer := oidctest.New(t)
	g := uitest.Serve(t, "--oidc-issuer", issuer.URL, "--oidc-audience", "https://mcp.example.com/mcp", "--oidc-client", "console")
	p := uitest.Open(t, g.URL+"system")
	p.Allow("401")
	p.Allow("another origin: " + issuer.URL)
	p.See("main", "Sign in at "+issuer.URL)
	p.Do(chromedp.Click("a.button.primary"))
	p.See("#system-state", "Sandbox")
	p.See(".person", "console") // the issuer of the test signs everybody in
	p.Do(chromedp.Navigate(g.URL + "signin/callback?code=the-code&state=stolen"))
	p.See("main", "did not begin this sign-in")
}
