package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Hosts are the host names that a listener accepts. They stop DNS rebinding: a hostile page gives its own name the address of
// the listener, and the browser then sends that name in the Host header. IP addresses and localhost are always allowed.
type Hosts struct {
	// Names may be whole, "*.example.com" for all below one, or "*" for any.
	Names []string
	// Short allows names without a dot, which only the listener's own network can resolve.
	Short bool
}

// Check refuses requests with another host name.
func (h Hosts) Check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.allow(r.Host) {
			text := fmt.Sprintf("%s is not a name of this gateway; if it is meant to be, start the gateway with --allow-host", shownUpTo(fmt.Sprintf("%q", r.Host), 200))
			http.Error(w, text, http.StatusForbidden)
			return
		}
		// The SDK checks the name again if it sees a loopback listener.
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, nil)))
	})
}

// rebinds reports whether the SDK refuses the host name of a request, which no [Hosts.Check] has allowed.
func rebinds(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(local.String()) && !isLoopback(r.Host)
}

// isLoopback reports whether an address is one of this machine, with a port or without.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// allow reports whether a Host header is allowed. No browser leaves it out.
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
