package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Hosts are the names under which clients may reach a listener. A page that somebody else has written can make a browser
// send requests to any address, by giving a name of its own that address; the name tells. Addresses themselves and
// localhost tell nothing and are always allowed.
type Hosts struct {
	// Names are allowed too: whole ones, "*.example.com" for all below one, or "*" for any.
	Names []string
	// Short allows names without a dot, which only those who share a network with the listener can give it.
	Short bool
}

// Check refuses requests under another name than those allowed, and passes on all others.
func (h Hosts) Check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allow(r.Host) {
			text := fmt.Sprintf("%s is not a name of this gateway; if it is meant to be, start the gateway with --allow-host", shownUpTo(fmt.Sprintf("%q", r.Host), 200))
			http.Error(w, text, http.StatusForbidden)
			return
		}
		// Handlers below look at the listener's address to decide whether to look at the name. It has been looked at.
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, nil)))
	})
}

// allow reports whether a Host header is allowed. One that is not there is no browser's.
func (h Hosts) allow(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil || name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if h.Short && !strings.Contains(name, ".") {
		return true
	}
	for _, allowed := range h.Names {
		allowed = strings.ToLower(allowed)
		below, wild := strings.CutPrefix(allowed, "*")
		if allowed == name || wild && (below == "" || strings.HasPrefix(below, ".") && strings.HasSuffix(name, below)) {
			return true
		}
	}
	return false
}
