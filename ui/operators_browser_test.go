//go:build !race

package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// signIn signs a person in.
func signIn(p *uitest.Page, token string) {
	p.Allow("401")
	p.Until(`document.readyState === "complete" && document.querySelector("#token")`)
	p.Do(chromedp.SendKeys("#token", token), chromedp.Click(`form[action="signin"] button`))
	p.See(".person", "")
	p.Until(`document.querySelector(".person")`)
}

// TestOperatorsInPages: a page shows what operators alone may do to operators alone, and refuses it to others who know its address, with
// a page that says so. What others have run is not there for them.
func TestOperatorsInPages(t *testing.T) {
	c := serveCrew(t)
	ran := func(person string) string {
		result := c.Call(t, c.tokens[person], "execute_pipeline", `{"pipeline": [{"type": "tool", "server": "desk", "name": "desk_look"}]}`)
		report, _ := result.Meta["mcsh/report"].(map[string]any)
		return fmt.Sprintf("runs/%s", report["request"])
	}
	others, maxs := ran("root"), ran("max")
	const forbidden, absent = "Only operators may do that", "Not found"
	rows := []struct {
		page, control string   // that shows the control to operators; empty: it has none
		gets, posts   []string // that are refused
		says          string
	}{
		{"", ".figures .figure:nth-child(3)", nil, nil, ""},
		{"", `nav a[href="protocol"]`, []string{"protocol", "protocol?q=x"}, nil, forbidden},
		{"servers/desk", "#restart", nil, []string{"servers/desk/restart", "servers/desk/accept", "servers/nobody/restart"}, forbidden},
		{"logins", "#login-desk", nil, []string{"logins/desk/login", "logins/desk/logout"}, forbidden},
		{"pipelines", `a[href="pipelines-new"]`, []string{"pipelines-new", "pipelines-new?" + strings.Replace(others, "runs/", "run=", 1)}, []string{"pipelines-new/save"}, forbidden},
		{
			"pipelines/desk_report", `a[href$="/edit"]`, []string{"pipelines/desk_report/edit"}, []string{
				"pipelines/desk_report/save", "pipelines/desk_report/check", "pipelines/desk_report/remove", "pipelines/desk_report/adopt", "pipelines/desk_report/test",
			}, forbidden,
		},
		{"pipelines/desk_report", `form[hx-post$="/remove"]`, nil, nil, ""},
		{"pipelines/desk_report", `.hint:has(+ pre[aria-label="The file"])`, nil, nil, ""},
		{"runs", fmt.Sprintf(`a[href=%q]`, others), []string{others, others + "/result", others + "/output", "playground?run=" + others[5:], "playground/result/" + others[5:]}, []string{others + "/cancel"}, absent},
	}
	ask := func(p *uitest.Page, method, path string) (status int, title string) {
		answer := uitest.Value[[]any](p, fmt.Sprintf(`fetch(%q, {method: %q, headers: JSON.parse(document.body.getAttribute("hx-headers"))}).then(async (r) =>
			[r.status, new DOMParser().parseFromString(await r.text(), "text/html").querySelector("main h1")?.textContent || ""])`, path, method))
		return int(answer[0].(float64)), answer[1].(string)
	}
	for _, person := range []string{"root", "max"} {
		p := uitest.Open(t, c.URL)
		signIn(p, c.tokens[person])
		p.Allow("40") // answers 403 and 404
		for _, row := range rows {
			p.Go(c.URL + row.page)
			settle(p)
			if there := uitest.Value[bool](p, fmt.Sprintf("document.querySelector(%q) !== null", row.control)); there != (person == "root") {
				t.Errorf("%s sees %s in %q: %t", person, row.control, row.page, there)
			}
			if person == "root" {
				continue
			}
			for method, paths := range map[string][]string{"GET": row.gets, "POST": row.posts} {
				for _, path := range paths {
					if status, title := ask(p, method, path); status != 403 && status != 404 || title != row.says {
						t.Errorf("%s %s: status %d, %q, want %q", method, path, status, title, row.says)
					}
				}
			}
		}
		if person == "root" { // the gateway has no --console-results
			for path, want := range map[string]int{maxs: 200, maxs + "/output": 403, maxs + "/result": 403, "playground?run=" + maxs[5:]: 403, others + "/output": 200, "pipelines/desk_report@1": 404} {
				if status, title := ask(p, "GET", path); status != want {
					t.Errorf("an operator gets %s: %d, %q", path, status, title)
				}
			}
			continue
		}
		p.Go(c.URL + "protocol")
		p.See("main", forbidden)
		p.See("main", "you are signed in as max")
		looks(p, "refused")
	}
}
