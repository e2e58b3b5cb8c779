package ui

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mcsh-dev/mcsh/control"
)

// A Chooser is a page with the running gateways of a person.
type Chooser struct {
	base   string
	list   func(ctx context.Context) []Choice
	assets map[string]*asset
	page   *page
}

// A Choice is a gateway to open.
type Choice struct {
	control.Gateway
	Path    string // of its console
	Servers int
	Runs    int
	Err     string // it does not answer
}

// NewChooser makes a page of the gateways that list returns. The browser sees it at base.
func NewChooser(base string, list func(ctx context.Context) []Choice) (*Chooser, error) {
	assets, err := openAssets()
	if err != nil {
		return nil, err
	}
	c := &Chooser{base: base, list: list, assets: assets, page: &page{title: "Gateways", file: "chooser.html"}}
	c.page.parse(assets)
	return c, nil
}

// ServeHTTP implements [http.Handler]: the page is at /, its assets below /assets/.
func (c *Chooser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", (&Console{assets: c.assets}).serveAsset)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { c.Show(w, r, http.StatusOK, "") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.Show(w, r, http.StatusNotFound, fmt.Sprintf("%q is no page here.", r.URL.Path))
	})
	guarded(mux).ServeHTTP(w, r)
}

// Show answers with the page and a text above the gateways.
func (c *Chooser) Show(w http.ResponseWriter, r *http.Request, status int, text string) {
	v := &Visit{Request: r, Base: c.base, w: w}
	data := struct {
		Text string
		List []Choice
	}{text, c.list(r.Context())}
	v.write(status, c.page, "bare", &layout{Title: c.page.title, Base: c.base, Data: data})
}

// Closed answers requests without permission.
func (c *Chooser) Closed(w http.ResponseWriter, r *http.Request) {
	guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "This page is for the person who has started mcsh console. Its address opens one browser, once: start mcsh console again.", http.StatusForbidden)
	})).ServeHTTP(w, r)
}
