package main

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/pending"
)

// pagesPath begins the paths of the pages of sign-ins on a listener that serves other things, too.
const pagesPath = "/oauth"

// newSignIns returns the sign-ins of a gateway. The caller closes them.
func (p *program) newSignIns(s settings, l *listenFlags) *signIns {
	store, _ := p.openLogins(s) // whoever opens the configuration reports it
	o := pending.Options{Store: store}
	if l.hasPages() {
		o.Public = strings.TrimSuffix(l.auth.public, "/") + pagesPath
	}
	return &signIns{SignIns: pending.New(o), store: store}
}

// hasPages reports whether browsers reach the gateway.
func (l *listenFlags) hasPages() bool { return l.address != "" && l.auth.public != "" }

// alone reports whether only the person at this machine reaches the gateway with a client: then that person also opens the pages
// that the client is asked to show. A gateway with a public address, with another name, or behind a proxy has other callers; the
// pages of one that is the program of a container are not reached.
func (l *listenFlags) alone() bool {
	if _, inside := containerAddress(); inside && os.Getppid() <= 1 || l.contained || l.runtime { // its client is outside
		return false
	}
	host, _, err := net.SplitHostPort(l.address)
	return l.address == "" || err == nil && isLoopback(host) && !l.auth.enabled() && l.auth.public == "" && len(l.hosts)+len(l.proxies) == 0
}

// withPages adds the pages of sign-ins to the paths of h, if there is an address for browsers. A proxy may leave the path of that
// address out.
func (l *listenFlags) withPages(pages http.Handler, h http.Handler) http.Handler {
	public, err := url.Parse(l.auth.public)
	if !l.hasPages() || pages == nil || err != nil {
		return h
	}
	below := strings.TrimSuffix(public.Path, "/") + pagesPath + "/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pagesPath+"/") || strings.HasPrefix(r.URL.Path, below) {
			pages.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
