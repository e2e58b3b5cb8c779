//go:build !race

package fetch_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/servers/fetch"
)

// TestHostileHTML has pages that are made to be slow or large to convert.
func TestHostileHTML(t *testing.T) {
	const quote = "<blockquote>"
	pages := map[string]string{
		"quotes":  strings.Repeat(quote, 400) + strings.Repeat("x<br>", 200_000),
		"lists":   strings.Repeat("<ul><li>", 200) + strings.Repeat("x<br>", 200_000),
		"divs":    strings.Repeat("<div>", 1_000_000),
		"stars":   strings.Repeat("*_[", 100_000),
		"links":   strings.Repeat("<a href=x>", 20_000),
		"bold":    strings.Repeat("<b>x</b>", 20_000),
		"foster":  "<table>" + strings.Repeat("x<tr>", 20_000),
		"unended": strings.Repeat("<!--", 200_000),
	}
	handlers := map[string]http.HandlerFunc{}
	for name, text := range pages {
		handlers["/"+name] = page("text/html", text)
	}
	base := serve(t, handlers)
	c := connect(t, fetch.Options{AllowPrivate: true, Timeout: 5 * time.Minute})
	for name, text := range pages {
		start := time.Now()
		r := c.Call(t, "fetch", args(base, `{"url":"BASE/`+name+`"}`))
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
		if len(r.Text) > 20*len(text) {
			t.Errorf("%s: %d bytes became %d", name, len(text), len(r.Text))
		}
		if r.Error && !strings.HasPrefix(r.Text, "BadContent: the page cannot be converted to Markdown: ") {
			t.Errorf("%s: got %.200s", name, r.Text)
		}
	}
}
