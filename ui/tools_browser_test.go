//go:build !race

package ui_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// look takes pictures of a page as people see it, if somebody wants to look at them.
func look(p *uitest.Page, name string) {
	shoot(p, name+"-light.png", uitest.View{Width: 1440, Height: 900, Whole: true})
	shoot(p, name+"-dark.png", uitest.View{Width: 1440, Height: 900, Dark: true, Whole: true})
	shoot(p, name+"-narrow.png", uitest.View{Width: 360, Height: 740, Whole: true})
	p.Set(uitest.View{Width: 1440, Height: 900})
}

// harmless fails if a text of a stranger has run, or has become an element.
func harmless(t *testing.T, p *uitest.Page) {
	t.Helper()
	if uitest.Value[bool](p, `Boolean(window.hacked) || document.querySelector("main img[src=x], main script, main svg[onload]") !== null`) {
		t.Error("a hostile text has become a part of the page")
	}
}

// enter writes a text into a field in place of what is there.
func enter(p *uitest.Page, selector, text string) {
	choose(p, selector, "")
	p.Do(chromedp.SendKeys(selector, text))
}

// choose sets the value of a field.
func choose(p *uitest.Page, selector, value string) {
	p.Until(fmt.Sprintf("document.querySelector(%q)", selector))
	uitest.Value[string](p, fmt.Sprintf("document.querySelector(%q).value = %q", selector, value))
}

// click clicks an element that is there once the page has settled: before that it hears nothing, and when the page begins to follow
// the gateway's events, it asks for its parts again and replaces them.
func click(p *uitest.Page, selector string) {
	p.Until(fmt.Sprintf(`document.querySelector(%q) && !document.querySelector(".htmx-added, .htmx-request") &&
		[...document.querySelectorAll("[data-topic]")].every((e) => e.asked)`, selector))
	p.Do(chromedp.Click(selector))
}

// TestToolPages: somebody searches a tool, sees its mistakes at their fields, calls it, and looks at the result in each view.
func TestToolPages(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"tools")
	p.See("#tool-list", "picture")
	p.See("#tool-list", "evil_text")
	look(p, "tools")
	p.Axe()
	enter(p, "[data-search]", "say again")
	p.Until(`document.querySelector("#tool-list li code")?.innerText === "echo"`)
	p.Until(`location.search.includes("say")`)
	harmless(t, p)
	look(p, "tools-search")
	enter(p, "[data-search]", "zzzzqqqq")
	p.See("#tool-list", "No tool has these words")
	look(p, "tools-none")

	p.Go(g.URL + "tools/hostile/echo")
	p.See("main", "Says it again")
	harmless(t, p)
	p.Axe()
	look(p, "tool")
	enter(p, `[name="a/count"]`, "many")
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelector('[name="a/count"]').getAttribute("aria-invalid") === "true"`)
	p.See("#tool-call", "whole number")
	enter(p, `[name="a/count"]`, "99")
	enter(p, `[name="a/text"]`, evil)
	choose(p, `[name="a/mode"]`, `"loud"`)
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelector('[name="a/count"]').closest(".field").querySelector(".wrong")?.innerText.includes("10")`) // the schema's own bound
	p.Axe()
	look(p, "tool-wrong")
	enter(p, `[name="a/count"]`, "3")
	enter(p, `[name="a/near/x"]`, "1.5")
	enter(p, `[name="a/tags"]`, "one\ntwo")
	click(p, "#tool-call .switch button:nth-child(2)")
	p.Until(`JSON.parse(document.querySelector("#args-json")?.value || "{}").near?.x === 1.5`)
	click(p, "#tool-call .switch button:nth-child(1)")
	p.Until(`document.querySelector('[name="a/tags"]')?.value.trim() === "one\ntwo"`)
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelectorAll("#output tbody tr").length === 2`)
	harmless(t, p)
	p.Axe()
	look(p, "tool-table")
	for _, view := range []string{"tree", "preview", "text"} {
		click(p, fmt.Sprintf(`#output [hx-get*="view=%s"]`, view))
		p.Until(fmt.Sprintf(`document.querySelector("#output [aria-current]")?.innerText.toLowerCase() === %q`, view))
		if view == "tree" {
			click(p, "#output .nodes summary")
			p.See("#output", "said")
			look(p, "tool-tree")
		}
		harmless(t, p)
		p.Axe()
	}
}

// TestToolEffect: a call of a tool that may change something is asked about first, by the keyboard, too.
func TestToolEffect(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"tools/hostile/wipe")
	p.Do(chromedp.Focus("#tool-call button[type=submit]"), chromedp.KeyEvent("\r"))
	p.Until(`document.querySelector("#sure").open`)
	p.See("#sure-text", "may change something")
	p.Axe()
	p.Do(chromedp.KeyEvent("\r")) // "Cancel" has the focus
	p.Until(`!document.querySelector("#sure").open`)
	if uitest.Value[bool](p, `Boolean(document.querySelector(".call-end"))`) {
		t.Error("the tool was called though nobody has said yes")
	}
	click(p, "#tool-call button[type=submit]")
	click(p, `#sure button[value="yes"]`)
	p.See("#output", "wiped")
}

// TestBigResult: of twenty megabytes the page has a window, in each view.
func TestBigResult(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"tools/hostile/big")
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelectorAll("#output tbody tr").length === 100`)
	click(p, `#output .pager button:last-child`)
	p.Until(`document.querySelector("#output tbody td").innerText === "100"`)
	for _, view := range []string{"tree", "text", "preview"} {
		click(p, fmt.Sprintf(`#output [hx-get*="view=%s"]`, view))
		p.Until(fmt.Sprintf(`document.querySelector("#output [aria-current]")?.innerText.toLowerCase() === %q`, view))
		if n := uitest.Value[int](p, `document.querySelector("main").innerHTML.length`); n > 1<<20 {
			t.Errorf("the view %s has %d characters", view, n)
		}
	}
	click(p, `#output [hx-get*="view=tree"]`)
	click(p, "#output .tree > div:last-child button")
	p.Until(`document.querySelectorAll("#output .nodes > li").length === 200`)
}

// TestPicture: a picture is shown as a blob.
func TestPicture(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"tools/demo/picture")
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelector("#output img")?.src.startsWith("blob:") && document.querySelector("#output img").naturalWidth > 0`)
	p.Axe()
	look(p, "tool-picture")
}

// TestOrders: a list in an object is a table; the pages of servers count the call.
func TestOrders(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"tools/demo/list_orders")
	enter(p, `[name="a/limit"]`, "20")
	click(p, "#tool-call button[type=submit]")
	p.Until(`document.querySelectorAll("#output tbody tr").length === 20`)
	p.See("#output", "orders")
	p.See("#returns", "orders")
	document(p, "tool.png", false)
	p.Go(g.URL + "servers")
	p.Until(`document.querySelector("#server-list [data-label=calls]")?.innerText === "1"`)
	document(p, "servers.png", true)
}

// TestServerPages: each server with its state; one restarts.
func TestServerPages(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"tools/hostile/echo") // it starts the servers
	p.Go(g.URL + "tools")
	p.See("#tool-list", "evil_text")
	p.Go(g.URL + "servers")
	p.See("#server-list", "failed")
	p.Until(`[...document.querySelectorAll("#server-list tr")].some((r) => r.innerText.includes("hostile") && r.innerText.includes("ready"))`)
	p.Axe()
	harmless(t, p)
	look(p, "servers")
	p.Go(g.URL + "servers/hostile")
	p.See("#server", "http")
	p.Axe()
	look(p, "server")
	click(p, "#restart")
	click(p, `#sure button[value="yes"]`)
	p.See("#notes", "starts anew")
	p.See("#server", "ready")
	p.Go(g.URL + "servers/a-server-with-quite-a-long-name-that-somebody-has-generated")
	p.See("#server", "/nowhere")
	p.Axe()
	look(p, "server-failed")
}

// TestOfferPages: resources and prompts of a hostile server.
func TestOfferPages(t *testing.T) {
	g := serveHostile(t)
	p := uitest.Open(t, g.URL+"resources")
	look(p, "resources-empty")
	p.Go(g.URL + "tools/hostile/echo")
	p.Go(g.URL + "resources")
	p.Until(`document.querySelector("#resource-list")?.innerText.includes("file:///evil") || location.reload()`)
	p.Axe()
	harmless(t, p)
	look(p, "resources")
	click(p, `#resource-list a[href*="evil"]`)
	p.See("main pre", "onerror")
	harmless(t, p)
	p.Axe()
	look(p, "resource")
	p.Go(g.URL + "prompts")
	p.Axe()
	look(p, "prompts")
	click(p, "#prompt-list a")
	p.See("#prompt", "required")
	click(p, "#prompt button.primary")
	p.See("#prompt", "It is required.")
	enter(p, "#prompt textarea", "Ann")
	click(p, "#prompt button.primary")
	p.See("#prompt", "Greet Ann")
	harmless(t, p)
	p.Axe()
	look(p, "prompt")
}

// TestLoginsAndProtocol: the servers that a person may sign in to, and the messages while somebody looks.
func TestLoginsAndProtocol(t *testing.T) {
	g := serveHostile(t, "--console-results")
	p := uitest.Open(t, g.URL+"logins")
	p.See("#logins", "hostile")
	p.Axe()
	look(p, "logins")
	p.Go(g.URL + "protocol")
	p.See("#messages", "Nothing has been said yet")
	p.Axe()
	look(p, "protocol-empty")
	other := uitest.Open(t, g.URL+"tools/hostile/evil_text")
	click(other, "#tool-call button[type=submit]")
	other.See("#output", "onerror")
	p.See("#messages", "tools/call")
	enter(p, "#protocol-filter [name=q]", "onerror")
	p.Until(`document.querySelectorAll("#messages details").length > 0`)
	click(p, "[data-pause]")
	click(p, "#messages summary")
	p.See("#messages pre", "hacked")
	harmless(t, p)
	p.Axe()
	p.Until(`[...document.querySelectorAll("#messages time")].every((t) => /^\d\d:\d\d:\d\d\D\d{3}$/.test(t.textContent) && t.scrollWidth <= t.clientWidth)`)
	look(p, "protocol")
}
