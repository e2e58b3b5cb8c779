//go:build !race

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// A crew is a gateway with people: root, an operator; max, a caller of all servers; ann, who is limited to the group open; and olga, an
// operator who is limited to it, too. The names of all that ann must not know of begin with "vault".
type crew struct {
	*uitest.Gateway
	tokens map[string]string
}

// shop returns the address of a server with a tool, a resource, a template and a prompt, whose names begin with a word.
func shop(t testing.TB, word string) string {
	s := mcp.NewServer(&mcp.Implementation{Name: word, Version: "1"}, &mcp.ServerOptions{Instructions: "The instructions of " + word})
	s.AddTool(&mcp.Tool{Name: word + "_look", Description: "Looks at " + word, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `[{"of": "` + word + `"}]`}}}, nil
		})
	uri := "file:///" + word
	s.AddResource(&mcp.Resource{URI: uri, Name: word + "_note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: "the note of " + word}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///" + word + "/{path}", Name: word + "_files"}, nil)
	s.AddPrompt(&mcp.Prompt{Name: word + "_ask"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "ask " + word}}}}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// serveCrew starts a gateway with two servers that work and one that does not, with saved pipelines, and with a run of each person.
func serveCrew(t testing.TB) *crew {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("servers.json", fmt.Sprintf(`{"mcpServers": {"desk": {"url": %q}, "vault": {"url": %q}, "vault-broken": {"command": "/vault/nowhere"}},
		"groups": {"open": ["desk"], "all": ["*"]}}`, shop(t, "desk"), shop(t, "vault")))
	saved := func(name, server string) {
		write("saved/"+name+".json", fmt.Sprintf(`{"description": "Of %s", "pipeline": [{"type": "tool", "server": "%[1]s", "name": "%[1]s_look"}]}`, server))
	}
	saved("desk_report", "desk")
	saved("vault_report", "vault")
	write("saved/vault_no_json.json", `{"pipeline": [{"type": "tool", "server": "vault", "name": `)
	write("saved/vault_by_another.json", `{"description": "Of vault", "pipeline": [{"type": "tool", "server": "pipelines", "name": "vault_report"}]}`)
	tokens := filepath.Join(dir, "tokens")
	c := &crew{tokens: map[string]string{
		"root": uitest.Token(t, tokens, "root", "--operator", "--groups", "*"), "max": uitest.Token(t, tokens, "max", "--groups", "*"),
		"ann": uitest.Token(t, tokens, "ann", "--groups", "open"), "olga": uitest.Token(t, tokens, "olga", "--operator", "--groups", "open"),
	}}
	c.Gateway = uitest.Serve(t, "--config", config, "--tokens", tokens, "--pipelines", filepath.Join(dir, "saved"))
	for person, server := range map[string]string{"root": "vault", "max": "vault", "ann": "desk", "olga": "desk"} {
		c.Call(t, c.tokens[person], "execute_pipeline", fmt.Sprintf(`{"pipeline": [{"type": "tool", "server": "%s", "name": "%[1]s_look"}]}`, server))
	}
	return c
}

var links = regexp.MustCompile(`(?:href|hx-get|src|data-picture)="([^"#]+)`)

// walk asks for every page that a link of a page leads to, from the first one, and returns what they hold.
func walk(t *testing.T, v *uitest.Visitor) map[string]string {
	pages, queue := map[string]string{}, []string{"", "playground?run=q_none", "events-none"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if _, known := pages[path]; known {
			continue
		}
		if len(pages) > 400 {
			t.Fatal("the pages never end")
		}
		_, pages[path] = v.Get(t, path)
		for _, m := range links.FindAllStringSubmatch(pages[path], -1) {
			if to := html.UnescapeString(m[1]); !strings.HasPrefix(to, "assets/") && !strings.Contains(to, "://") && !strings.HasPrefix(to, "/") {
				queue = append(queue, strings.TrimPrefix(to, "./"))
			}
		}
	}
	return pages
}

// TestGroupsInPages: a person who is limited to a group walks through all pages and finds nothing of the servers of others; an answer
// about such a server is the one about a server that is not there. An operator who is limited is none.
func TestGroupsInPages(t *testing.T) {
	c := serveCrew(t)
	for person, want := range map[string]struct{ vault, desk bool }{"root": {true, true}, "max": {true, true}, "ann": {false, true}, "olga": {false, true}} {
		found, of := 0, 0
		pages := walk(t, c.Visit(t, c.tokens[person]))
		for path, page := range pages {
			if strings.Contains(page, "vault") {
				found++
			}
			if strings.Contains(page, "desk") {
				of++
			}
			if strings.Contains(page, "vault") && !want.vault {
				i := strings.Index(page, "vault")
				t.Errorf("%s finds a server of others at %q: %s", person, path, page[max(0, i-200):min(len(page), i+200)])
			}
		}
		if want.vault && found < 12 || want.desk && of < 12 {
			t.Errorf("%s walks through %d pages: %d of vault, %d of desk", person, len(pages), found, of)
		}
		if _, there := pages["system"]; there == !want.vault {
			t.Errorf("%s has a way to the page System: %t", person, there)
		}
	}
	ann := c.Visit(t, c.tokens["ann"])
	for _, test := range []struct {
		path string
		form url.Values // nil: the page is asked for
	}{
		{"servers/vault", nil},
		{"servers/vault/restart", url.Values{}},
		{"servers/vault/accept", url.Values{"tool": {"vault_look"}}},
		{"tools/vault/vault_look", nil},
		{"tools/vault/vault_look/call", url.Values{}},
		{"tools?server=vault", nil},
		{"tools?q=vault", nil},
		{"resources?q=vault", nil},
		{"resources/read?uri=" + url.QueryEscape("mcsh://servers/vault/file:///vault"), nil},
		{"prompts/vault/vault_ask", nil},
		{"prompts/vault/vault_ask/get", url.Values{}},
		{"logins/vault/login", url.Values{}},
		{"logins/vault/logout", url.Values{}},
		{"pipelines/vault_report", nil},
		{"pipelines/vault_report/edit", nil},
		{"pipelines/vault_report/run", url.Values{}},
		{"pipelines/vault_by_another", nil},
		{"pipelines/vault_no_json", nil},
		{"pipelines/desk_report/check", url.Values{"text": {`{"pipeline": [{"type": "tool", "server": "vault", "name": "vault_lok"}]}`}}},
		{"protocol?server=vault", nil},
		{"system", nil},
		{"runs?q=vault", nil},
		{"runs?tool=vault", nil},
		{"playground/check", url.Values{"text": {`[{"type": "tool", "server": "vault", "name": "vault_look"}]`}}},
		{"playground/check", url.Values{"text": {`[{"type": "tool", "server": "vualt", "name": "vault_look"}]`}}},
		{"playground/check", url.Values{"text": {`[{"type": "tool", "server": "pipelines", "name": "vault_report"}]`}}},
		{"playground/plan", url.Values{"pipeline": {`[{"type": "tool", "server": "vault", "name": "vault_look"}]`}}},
		{"playground/run", url.Values{"pipeline": {`[{"type": "tool", "server": "vault", "name": "vault_look"}]`}}},
		{"playground/complete", url.Values{"text": {`[{"type": "tool", "server": "`}, "before": {`[{"type": "tool", "server": "`}}},
		{"playground/complete", url.Values{"text": {`[{"type": "tool", "server": "vault", "name": "`}, "before": {`[{"type": "tool", "server": "vault", "name": "`}}},
	} {
		other := strings.NewReplacer("vault", "cabin", "vualt", "cabni") // a name that nothing has
		ask := func(path string, form url.Values) string {
			if form == nil {
				status, page := ann.Get(t, path)
				return fmt.Sprint(status, page)
			}
			status, page := ann.Post(t, path, form)
			return fmt.Sprint(status, page)
		}
		form := url.Values(nil)
		if test.form != nil {
			form = url.Values{}
			for name, values := range test.form {
				form[name] = []string{other.Replace(values[0])}
			}
		}
		lines := func(text string) []string { return strings.Split(text, "\n") }
		if diff := cmp.Diff(lines(ask(other.Replace(test.path), form)), lines(other.Replace(ask(test.path, test.form)))); diff != "" {
			t.Errorf("%s %v: the answer differs from that about a server that is not there (+):\n%s", test.path, test.form, diff)
		}
	}
}

// TestPersonOfGroup: a person who is limited to a group signs in, finds a tool, calls it, and sees the run.
func TestPersonOfGroup(t *testing.T) {
	c := serveCrew(t)
	p := uitest.Open(t, c.URL)
	p.Allow("401")
	p.Until(`document.readyState === "complete" && document.querySelector("#token")`)
	p.Do(chromedp.SendKeys("#token", c.tokens["ann"]), chromedp.Click(`form[action="signin"] button`))
	p.See(".person", "ann")
	p.See("#start-runs", "desk/desk_look")
	if list := uitest.Value[string](p, `[...document.querySelectorAll("nav > a")].map((a) => a.innerText).join()`); strings.Contains(list, "System") || strings.Contains(list, "Protocol") || !strings.Contains(list, "Playground") {
		t.Errorf("the menu has %s", list)
	}
	p.Go(c.URL + "tools/desk/desk_look")
	click(p, "#tool-call button[type=submit]")
	p.See("#output", "desk")
	click(p, ".call-end a")
	p.See("#run", "desk/desk_look")
	p.Allow("403")
	p.Go(c.URL + "system")
	p.See("main", "This page is about all servers")
}
