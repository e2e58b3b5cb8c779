//go:build !race

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// Names as programs generate them: without a place to break.
var (
	longServer = "server-" + strings.Repeat("0123456789", 5)
	longTool   = "tool_" + strings.Repeat("abcdefghij", 9)
	longSaved  = "saved_" + strings.Repeat("x", 42)
	longWord   = strings.Repeat("Donaudampfschiff", 12)
)

// longNames returns the address of a server whose every name is long.
func longNames(t testing.TB) string {
	s := mcp.NewServer(&mcp.Implementation{Name: longServer, Version: "1"}, nil)
	schema := fmt.Sprintf(`{"type":"object","properties":{"%s":{"type":"string","description":"%[1]s","enum":["%[1]s","b"]},"n":{"type":"integer"}}}`, longWord)
	s.AddTool(&mcp.Tool{Name: longTool, Title: longWord, Description: longWord, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: longWord + " " + longWord}}}, nil
		})
	s.AddResource(&mcp.Resource{URI: "file:///" + longWord, Name: longWord, Description: longWord, MIMEType: "text/" + longWord}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///" + longWord, MIMEType: "text/plain", Text: longWord}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "prompt_" + longWord[:80], Title: longWord, Description: longWord, Arguments: []*mcp.PromptArgument{{Name: longWord, Description: longWord, Required: true}}}, nil)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// allPages starts a gateway that has something for each page, and returns the addresses of pages of every kind.
func allPages(t *testing.T) (g *uitest.Gateway, pages []string) {
	saved, config := t.TempDir(), filepath.Join(t.TempDir(), "servers.json")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config, fmt.Sprintf(`{"mcpServers": {"demo": {"builtin": "demo"}, "hostile": {"url": %q}, %q: {"url": %q}, "broken-%s": {"command": "/nowhere/%s"}}}`,
		hostileServer(t), longServer, longNames(t), longServer, longWord))
	write(filepath.Join(saved, longSaved+".json"), strings.Replace(report, "Orders with a state", longWord, 1))
	write(filepath.Join(saved, "broken.json"), fmt.Sprintf(`{"description": "%s", "pipeline": [{"type": "tool", "server": "demo", "name": "%s"}]}`, longWord, longTool))
	g = uitest.Serve(t, "--config", config, "--pipelines", saved, "--console-results")
	_, good := run(t, g, regions)
	_, failed := run(t, g, fmt.Sprintf(`[{"type": "tool", "server": "%s", "name": "%s"}]`, longServer, longTool))
	_, called := run(t, g, `[{"type": "tool", "server": "hostile", "name": "echo", "args": {"text": "`+longWord+`", "count": 2, "mode": "plain"}}]`)
	long := "tools/" + longServer + "/" + longTool
	return g, []string{
		"", "servers", "servers/hostile", "servers/" + longServer, "servers/broken-" + longServer, "tools", "tools?q=" + longWord, "tools/hostile/echo", long, "playground",
		"playground?run=" + good, "runs", "runs?q=nothing", "runs/" + good, "runs/" + good + "?stage=3", "runs/" + failed, "runs/" + called, "runs/" + called + "/result?view=text",
		"pipelines", "pipelines/" + longSaved, "pipelines/broken", "pipelines/" + longSaved + "/edit", "pipelines-new", "resources", "resources/read?uri=" +
			url.QueryEscape("mcsh://servers/"+longServer+"/file:///"+longWord), "prompts", "prompts/" + longServer + "/prompt_" + longWord[:80], "prompts/hostile/greet",
		"logins", "protocol", "system", "nothing/" + longWord,
	}
}

// TestEveryPage: with long names no page is wider than a window of 360 pixels, in the light and in the dark, which has enough contrast.
// Each control is reached by the keyboard, shows the focus, and keeps it when its part comes anew.
func TestEveryPage(t *testing.T) {
	g, pages := allPages(t)
	p := uitest.Open(t, g.URL+"tools")
	p.Allow("404")
	p.See("#tool-list", longTool)
	p.Until(`!document.querySelector("#tool-list [data-topic]")`)
	for _, path := range pages {
		t.Run(strings.Map(func(c rune) rune {
			if c == '/' {
				return ':'
			}
			return c
		}, path[:min(len(path), 30)]), func(t *testing.T) {
			p.Set(uitest.View{Width: 360, Height: 740})
			p.Go(g.URL + path)
			settle(p)
			narrow(t, p, path, "light")
			p.Set(uitest.View{Width: 360, Height: 740, Dark: true})
			narrow(t, p, path, "dark")
			p.Axe()
			p.Set(uitest.View{Width: 1440, Height: 900})
			narrow(t, p, path, "wide")
			tabThrough(t, p, path)
			keepsFocus(t, p, path)
		})
	}
	p.Go(g.URL) // the editor must not ask whether it may be left
}

// settle waits until nothing more is loaded.
func settle(p *uitest.Page) {
	p.Until(`document.readyState === "complete" && !document.querySelector(".htmx-request, [hx-trigger=load]") && [...document.querySelectorAll("mcsh-editor")].every((e) => e.shadowRoot)`)
}

// sticking lists the elements that stick out of the window, unless something that can be scrolled holds them or an ellipsis says it.
const sticking = `[...document.querySelectorAll("main *, header *")].filter((e) => {
  const r = e.getBoundingClientRect();
  if (r.width === 0 || Math.max(r.right, r.left + (e.clientWidth && !e.matches("input, select") && e.scrollWidth)) <= innerWidth + 1 || e.closest("dialog, .skip, svg, [hidden]")) return false;
  for (let a = e; a; a = a.parentElement) {
    const style = getComputedStyle(a);
    if (style.overflowX === "auto" || style.overflowX === "scroll" || style.textOverflow === "ellipsis") return false;
  }
  return true;
}).slice(0, 3).map((e) => e.outerHTML.slice(0, 160))`

// narrow fails if the page is wider than the window.
func narrow(t *testing.T, p *uitest.Page, path, look string) {
	t.Helper()
	if wide := uitest.Value[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		t.Errorf("%s, %s: the page is %d pixels wider than the window: %q", path, look, wide, uitest.Value[[]string](p, sticking))
	} else if out := uitest.Value[[]string](p, sticking); len(out) > 0 {
		t.Errorf("%s, %s: elements stick out of the window: %q", path, look, out)
	}
	if dir := os.Getenv("UITEST_SHOTS"); dir != "" {
		name := strings.NewReplacer("/", "_", "?", "_").Replace(path[:min(len(path), 40)])
		size := map[string]uitest.View{"light": {Width: 360, Height: 740, Whole: true}, "dark": {Width: 360, Height: 740, Dark: true, Whole: true}, "wide": {Width: 1440, Height: 900}}
		p.Screenshot(filepath.Join(dir, "every-"+name+"-"+look+".png"), size[look])
	}
}

// reachable marks the controls that a person can use, and says how many there are.
const reachable = `(() => { const seen = (e) => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0;
  window.controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, mcsh-editor, [tabindex='0']")]
    .filter((e) => !e.disabled && e.type !== "hidden" && (seen(e) || e.matches(".skip")) && !e.closest("dialog"));
  window.reached = new Set(); document.activeElement?.blur(); return controls.length })()`

// step notes the control that has the focus, and says whether that can be seen. "out": the focus has left the page.
const step = `(async () => { let e = document.activeElement; if (!e || e === document.body) return "out";
  const inside = e.shadowRoot?.activeElement, again = reached.has(e) && !inside, box = e.getBoundingClientRect(); reached.add(e);
  const seen = () => { const style = getComputedStyle(inside?.closest(".cm-editor") || e); return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 };
  for (let i = 0; i < 200 && !seen(); i++) await new Promise((done) => setTimeout(done, 20)); // the editor shows it a little later
  if (!seen()) return "unseen " + e.outerHTML.slice(0, 160);
  if (box.right < 0 || box.width === 0) return "hidden " + e.outerHTML.slice(0, 160);
  return again ? "again" : inside ? "editor" : "" })()`

// tabThrough reaches each control of a page with the tab key.
func tabThrough(t *testing.T, p *uitest.Page, path string) {
	t.Helper()
	n := uitest.Value[int](p, reachable)
	for range n + 10 {
		p.Do(chromedp.KeyEvent("\t"))
		switch state := uitest.Value[string](p, step); {
		case state == "editor":
			p.Do(chromedp.KeyEvent("\x1b")) // and the next tab leaves it
			continue
		case strings.HasPrefix(state, "unseen"), strings.HasPrefix(state, "hidden"):
			t.Errorf("%s: the focus is %s", path, state)
			continue
		case state == "":
			continue
		}
		break
	}
	// Parts that came anew meanwhile have other elements.
	left := uitest.Value[[]string](p, `controls.filter((e) => e.isConnected && !reached.has(e)).slice(0, 4).map((e) => e.outerHTML.slice(0, 160))`)
	if len(left) > 0 {
		t.Errorf("%s: the keyboard does not reach %q", path, left)
	}
}

// keepsFocus has each part that follows the gateway come anew while its last control has the focus, and while it is scrolled.
func keepsFocus(t *testing.T, p *uitest.Page, path string) {
	t.Helper()
	lost := uitest.Value[[]string](p, `(async () => { const lost = [];
  for (const id of [...document.querySelectorAll("[data-topic][id]")].map((e) => e.id)) {
    const part = document.getElementById(id), all = part ? [...part.querySelectorAll("a[href], button, select, summary, [tabindex='0']")].filter((e) => e.checkVisibility()) : [];
    const last = all.at(-1); if (!last) continue;
    last.focus(); const text = last.textContent;
    await new Promise((done) => { document.addEventListener("htmx:afterSettle", done, {once: true}); htmx.trigger(part, "live"); setTimeout(done, 20000); });
    const now = document.activeElement;
    if (now === document.body || now.tagName !== last.tagName || (now.textContent !== text && !now.matches(".scroll, pre"))) lost.push(id + ": " + last.outerHTML.slice(0, 120) + " became " + now.outerHTML.slice(0, 60));
  }
  return lost })()`)
	for _, what := range lost {
		t.Errorf("%s: the focus is lost in %s", path, what)
	}
}

// TestKeys: what the list of keys promises.
func TestKeys(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"runs?state=failed")
	focused := func(selector string) {
		t.Helper()
		p.Until(fmt.Sprintf("document.activeElement.matches(%q)", selector))
	}
	press := func(keys string) { p.Do(chromedp.KeyEvent(keys)) }
	settle(p)
	press("\t")
	focused(".skip")
	press("\r")
	focused("main")
	p.Until(`location.search === "?state=failed"`)
	press("?")
	p.Until(`document.querySelector("#keys").open`)
	focused("#keys button")
	press("\x1b")
	p.Until(`!document.querySelector("#keys").open`)
	uitest.Call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "/", Code: "Slash"}) // a page that takes the key gets no character
	focused("[data-search]")
	press("gs") // it is text there
	p.Until(`document.querySelector("[data-search]").value === "gs"`)
	uitest.Value[bool](p, `(document.activeElement.blur(), true)`)
	press("t")
	p.Until(`document.documentElement.dataset.theme`)
	for key, path := range map[string]string{"s": "servers", "t": "tools", "p": "playground", "r": "runs", "l": "pipelines", "i": "logins", "y": "system", "h": ""} {
		settle(p)
		uitest.Value[bool](p, `(document.activeElement.blur(), true)`)
		press("g" + key)
		p.Until(fmt.Sprintf(`location.pathname === "/%s"`, path))
	}
	p.Set(uitest.View{Width: 360, Height: 740})
	settle(p)
	p.Do(chromedp.Focus("[data-menu]"), chromedp.KeyEvent("\r"))
	p.Until(`document.querySelector("[data-menu]").getAttribute("aria-expanded") === "true" && document.querySelector("#menu").checkVisibility()`)
	press("\t")
	focused("#menu a")
	press("\x1b")
	p.Until(`!document.querySelector("#menu").checkVisibility()`)
	focused("[data-menu]")
}
