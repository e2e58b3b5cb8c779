//go:build !race

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/signintest"
	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// TestLogins: an operator signs in to a server at its real authorization server, the tool works, and out again. Who has begun a sign-in
// that nobody finishes can begin another one.
func TestLogins(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "box", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "hello", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello from the box"}}}, nil
		})
	address, issuer := signintest.Protect(t, signintest.Options{TTL: 3600, Rotate: true},
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	config := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"box": {"url": %q}}}`, address), 0o600); err != nil {
		t.Fatal(err)
	}
	g := uitest.Serve(t, "--config", config)
	call := func() (string, bool) {
		result := g.Call(t, "", "execute_pipeline", `{"pipeline": [{"type": "tool", "server": "box", "name": "hello"}]}`)
		return texts(result), result.IsError
	}
	if text, failed := call(); !failed || !strings.Contains(text, "sign") {
		t.Errorf("before the sign-in the tool answers %q", text)
	}
	p := uitest.Open(t, g.URL+"servers/box")
	p.See("#server", "signed out")
	click(p, `#server a[href="logins"]`)
	p.See("#login-list", "signed out")
	begin := func() string {
		was := uitest.Value[string](p, `document.querySelector(".begun a")?.href || ""`)
		click(p, "#login-box")
		p.Until(fmt.Sprintf(`(document.querySelector(".begun a")?.href || %q) !== %[1]q`, was))
		return uitest.Value[string](p, `document.querySelector(".begun a").href`)
	}
	begin()
	again := `(async () => { for (let i = 0; i < 17; i++) { // more than may wait
		const r = await fetch("logins/box/login", {method: "POST", headers: JSON.parse(document.body.getAttribute("hx-headers"))});
		if (!r.ok) return await r.text() }
	return "" })()`
	if text := uitest.Value[string](p, again); text != "" {
		t.Errorf("a sign-in does not begin again: %s", text)
	}
	p.See(".begun", "Come back here when you have signed in")
	looks(p, "logins-begun")
	other := uitest.Open(t, g.URL+"logins")
	other.Allow("") // its pages are those of the issuer
	other.Do(chromedp.Navigate(begin()))
	submit := func(selector string) {
		other.Until(fmt.Sprintf(`document.readyState === "complete" && document.querySelector(%q)`, selector))
		other.Do(chromedp.Click(selector))
	}
	other.See("body", "in your name")
	submit("form button")
	other.Until(`document.querySelector("[name=login]")`)
	other.Do(chromedp.SendKeys("[name=login]", "alice"), chromedp.SendKeys("[name=password]", "any"))
	submit("form [type=submit]")
	other.Until(`!document.querySelector("[name=login]") && document.querySelector("form [type=submit]")`) // what the server may do
	submit("form [type=submit]")
	other.See("body", "You are signed in to box")
	p.See("#login-list", "signed in")
	p.See("#login-list", issuer)
	p.Until(`!document.querySelector(".begun")`) // it has ended
	looks(p, "logins-signed-in")
	if text, failed := call(); failed || !strings.Contains(text, "hello from the box") {
		t.Errorf("after the sign-in the tool answers %q", text)
	}
	confirm(p, "#logout-box")
	p.See("#notes", "Signed out of box")
	p.Until(`/not signed in|signed out/.test(document.querySelector("#login-list").innerText)`)
	if text, failed := call(); !failed || strings.Contains(text, "hello from the box") {
		t.Errorf("after the sign-out the tool answers %q", text)
	}
}
