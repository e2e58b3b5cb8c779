package toolhive

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// A standing is what becomes of a workload with some status.
type standing struct {
	part part
	why  string // of one that is down: what list_all_tools and errors say
	hint string // and what to do about it
}

// part is whether a workload takes part.
type part int

const (
	use    part = iota // it is a server
	down               // it is a server that cannot be reached now
	absent             // it is no server: somebody has stopped it
)

// standings says what becomes of each status that ToolHive gives. That a workload runs does not say that its server
// answers, and "unhealthy" not that it does not: both are tried, and the pool finds out.
var standings = map[string]standing{
	"running":   {part: use},
	"unhealthy": {part: use},
	"unknown":   {part: use},
	"starting":  {down, "ToolHive is still starting it", "try again in some seconds"},
	"auth_retrying": {
		down, "ToolHive is renewing its sign-in at the server",
		"try again in a minute",
	},
	"unauthenticated": {
		down, "ToolHive is not signed in at the server any more",
		"somebody has to sign in again: thv restart NAME",
	},
	"error":          {down, "ToolHive could not start it", "see thv logs NAME, then thv restart NAME"},
	"policy_stopped": {down, "a policy of ToolHive has stopped it", "ask whoever runs ToolHive"},
	"stopped":        {part: absent},
	"stopping":       {part: absent},
	"removing":       {part: absent},
}

// standingOf judges a workload. A status that is not known is tried.
func standingOf(w Workload) standing {
	s := standings[w.Status]
	s.hint = strings.ReplaceAll(s.hint, "NAME", w.Name)
	if s.part == down && w.StatusContext != "" {
		s.why += ": " + shorten(w.StatusContext, 300)
	}
	return s
}

func shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}

// What a proxy speaks.
const (
	speaksSSE  = "sse"
	speaksHTTP = "streamable-http"
	speaksPipe = "stdio" // what the server speaks behind the proxy: no word about the proxy
)

// protocolOf says what the proxy of a workload speaks: its mode, or else the server's transport, or else what the
// path of its address shows.
func protocolOf(w Workload, u *url.URL) string {
	kind := w.ProxyMode
	if kind == "" || kind == speaksPipe {
		kind = w.TransportType
	}
	if kind != "" && kind != speaksPipe {
		return kind
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
		return speaksSSE
	}
	return speaksHTTP
}

// addressOf returns the address that reaches a workload, and whether the older SSE transport is spoken there.
// ToolHive always says that its proxies listen on loopback. Where its API was found on another host, that is where
// they are.
func addressOf(w Workload, apiHost string) (address string, sse bool, err error) {
	if w.URL == "" {
		return "", false, fmt.Errorf("ToolHive gives no address for it")
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("the address that ToolHive gives cannot be read")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", false, fmt.Errorf("the address that ToolHive gives is not one of HTTP")
	case u.User != nil:
		return "", false, fmt.Errorf("the address that ToolHive gives holds a password")
	case u.Port() == "0":
		return "", false, fmt.Errorf("ToolHive gives no port for it yet")
	}
	kind := protocolOf(w, u)
	if !slices.Contains([]string{speaksSSE, speaksHTTP}, kind) {
		return "", false, fmt.Errorf("its proxy speaks %q, and only %s and %s are known here", shorten(kind, 40), speaksHTTP, speaksSSE)
	}
	u.Fragment, u.RawFragment = "", "" // ToolHive's note of the workload's name
	if apiHost != "" && !isLoopback(apiHost) && isLoopback(u.Hostname()) {
		u.Host = hostPort(apiHost, u.Port())
	}
	return u.String(), kind == speaksSSE, nil
}

func hostPort(host, port string) string {
	if port != "" {
		return net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// isLoopback reports whether a host, without its port, is this machine and nothing else.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
