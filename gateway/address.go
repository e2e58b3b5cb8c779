package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of proxies that may name the address of a client.
type Proxies []netip.Prefix

// ParseProxies reads networks, such as 10.0.0.0/8, and single addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var p Proxies
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || prefix.Masked() != prefix || strings.Contains(text, "%") {
			return nil, fmt.Errorf("%q is not an address or a network such as 10.0.0.0/8", text)
		}
		p = append(p, prefix)
	}
	return p, nil
}

func (p Proxies) trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

// mostHops bounds the proxies that client follows back.
const mostHops = 32

// client returns the address of a request's client, and whether a proxy has named it: the last address in X-Forwarded-For
// or Forwarded that is not a trusted proxy's. A proxy writes one of the headers and may pass on the other as the client
// wrote it. So if they contradict each other, or one is malformed, client returns the address of the proxy.
func (p Proxies) client(r *http.Request) (from netip.Addr, forwarded bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	direct := peer.Addr().Unmap().WithZone("")
	if !p.trust(direct) {
		return direct, false
	}
	from = direct
	for _, hops := range [][]string{commas(r.Header["X-Forwarded-For"]), forwardedFor(r.Header["Forwarded"])} {
		if hops == nil {
			continue
		}
		last, ok := p.last(hops)
		if !ok || forwarded && last != from {
			return direct, false
		}
		from, forwarded = last, true
	}
	return from, forwarded
}

// last returns the last address that is not a trusted proxy's, or the first address if all are.
func (p Proxies) last(hops []string) (netip.Addr, bool) {
	var a netip.Addr
	for i := len(hops) - 1; i >= 0 && i >= len(hops)-mostHops; i-- {
		var ok bool
		if a, ok = parseHop(hops[i]); !ok {
			return netip.Addr{}, false
		}
		if !p.trust(a) {
			return a, true
		}
	}
	return a, a.IsValid()
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap().WithZone(""), err == nil
}

// commas splits the lines of a header at their commas.
func commas(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	return strings.Split(strings.Join(lines, ","), ",")
}

// forwardedFor returns the "for" of each element of the header Forwarded (RFC 7239). An element without one is "".
func forwardedFor(lines []string) []string {
	hops := commas(lines)
	for i, element := range hops {
		hops[i] = ""
		for pair := range strings.SplitSeq(element, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				hops[i] = strings.Trim(value, `"`)
			}
		}
	}
	return hops
}

// addressHeader carries the address of a client to the handlers of its calls, since the SDK passes them only the headers.
// mark overwrites a value from the client.
const addressHeader = "Mcsh-Client-Address"

// An origin is what the bounds of one caller apply to: an identity, or an address if callers have none. It is not a session,
// because anonymous callers open sessions at will.
type origin struct {
	key   string
	named bool // the caller is authenticated; else it is an address
	local bool // this machine: only the bounds of the process apply
}

// owner names the caller for the sandbox, which counts its runs; empty for this machine.
func (o origin) owner() string {
	if o.local {
		return ""
	}
	return o.key
}

// localAddress is the value of addressHeader for this machine.
const localAddress = "local"

// mark sets the addressHeader of a request.
func (p Proxies) mark(r *http.Request) {
	from, forwarded := p.client(r)
	text := localAddress
	if !from.IsValid() || forwarded || !from.IsLoopback() {
		text = NetworkOf(from)
	}
	r.Header.Set(addressHeader, text)
}

// NetworkOf returns the network that counts as one address: in IPv6 the /64 of a subscriber.
func NetworkOf(a netip.Addr) string {
	if !a.Is6() {
		return a.String()
	}
	prefix, _ := a.Prefix(64)
	return prefix.String()
}

// originOf returns the origin of a marked request.
func originOf(h http.Header, user string) origin {
	if user != "" {
		return origin{key: callerUser + user, named: true}
	}
	address := h.Get(addressHeader)
	return origin{key: "address " + address, local: address == localAddress}
}
