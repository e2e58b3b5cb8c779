package toolhive

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A status is what ToolHive's word for the status of a workload means. The zero value is a server that is used.
type status struct {
	absent bool   // not a server
	why    string // it cannot be used now: list_all_tools and errors say so
	hint   string // and what to do about it
}

// statuses are those that ToolHive gives. The server of a running workload may not answer, and that of an "unhealthy" one
// may: the pool tries both, and every status that is not here.
var statuses = map[string]status{
	"starting":        {why: "ToolHive is still starting it", hint: "try again in some seconds"},
	"auth_retrying":   {why: "ToolHive is renewing its sign-in at the server", hint: "try again in a minute"},
	"unauthenticated": {why: "ToolHive is no longer signed in at the server", hint: "somebody has to sign in again: thv restart NAME"},
	"error":           {why: "ToolHive could not start it", hint: "see thv logs NAME, then thv restart NAME"},
	"policy_stopped":  {why: "a policy of ToolHive has stopped it", hint: "ask whoever runs ToolHive"},
	"stopped":         {absent: true},
	"stopping":        {absent: true},
	"removing":        {absent: true},
}

func statusOf(w Workload) status {
	s := statuses[w.Status]
	s.hint = strings.ReplaceAll(s.hint, "NAME", w.Name)
	if s.why != "" && w.StatusContext != "" {
		s.why += ": " + shorten(w.StatusContext, 300)
	}
	s.absent = s.absent || w.TransportType == inspector
	return s
}

func shorten(text string, limit int) string {
	return texts.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), limit)
}

// The transports of a proxy.
const (
	speaksSSE  = "sse"
	speaksHTTP = "streamable-http"
)

// protocolOf says what the proxy of a workload speaks. Older releases leave the mode out; then the transport of the
// server says it, except for stdio, where the address shows it.
func protocolOf(w Workload, path string) string {
	kind := cmp.Or(w.ProxyMode, w.TransportType, "stdio")
	switch {
	case kind != "stdio":
		return kind
	case strings.HasSuffix(strings.TrimRight(path, "/"), "/sse"):
		return speaksSSE
	}
	return speaksHTTP
}

// addressOf returns the address that reaches a workload, and whether the older SSE transport is spoken there.
// ToolHive always says that its proxies listen on loopback. If its API is on another host, the proxies are there too.
func addressOf(w Workload, apiHost string) (address string, sse bool, err error) {
	if w.URL == "" {
		return "", false, fmt.Errorf("ToolHive gives no address for it")
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil:
		return "", false, fmt.Errorf("the address that ToolHive gives cannot be read")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", false, fmt.Errorf("the address that ToolHive gives is not an HTTP address")
	case u.User != nil:
		return "", false, fmt.Errorf("the address that ToolHive gives contains a password")
	case u.Port() == "" || u.Port() == "0":
		return "", false, fmt.Errorf("ToolHive gives no port for it yet")
	}
	kind := protocolOf(w, u.Path)
	if kind != speaksSSE && kind != speaksHTTP {
		return "", false, fmt.Errorf("its proxy speaks %q, and only %s and %s are known here", shorten(kind, 40), speaksHTTP, speaksSSE)
	}
	u.Fragment, u.RawFragment = "", "" // the workload's name
	if apiHost != "" && !isLoopback(apiHost) && (isLoopback(u.Hostname()) || u.Hostname() == "localhost") {
		u.Host = net.JoinHostPort(apiHost, u.Port())
	}
	return u.String(), kind == speaksSSE, nil
}

// An entry is a server of the list.
type entry struct {
	upstream.Server
	up     bool
	missed bool // the last list had it not, or not up
}

func byName(a, b entry) int { return cmp.Compare(a.Name, b.Name) }

// entry makes a server of a workload, which an API at an address lists.
func (o *Options) entry(w Workload, a address) entry {
	e := entry{Server: upstream.Server{Name: w.Name, Identity: w.Package, Where: "ToolHive", Found: true}}
	headers := http.Header{}
	for _, h := range o.Headers {
		if matches(h.Workload, w.Name) {
			maps.Copy(headers, h.Header)
			for _, values := range h.Header {
				e.Secrets = append(e.Secrets, values...)
			}
		}
	}
	s := statusOf(w)
	url, sse, err := addressOf(w, a.host())
	switch {
	case s.why != "":
	case len(headers) > 0 && !a.certain(): // any program could list this name to get them
		s.why = "its headers are not sent to a workload of a ToolHive whose owner is not certain"
		s.hint = "give the address of ToolHive's API with --toolhive"
	case err != nil:
		s.why, s.hint = err.Error(), "see thv list; thv restart "+w.Name+" may help"
	}
	if s.why != "" {
		e.Version, e.Dial = s.why, upstream.Down(s.why, s.hint)
		return e
	}
	if w.TransportType == "stdio" {
		e.Protocol = upstream.OlderFirst
	}
	e.up = true
	e.Version = fmt.Sprintln(url, sse, w.TransportType, w.Created)
	e.Dial = upstream.HTTP(upstream.Endpoint{
		URL: url, Headers: headers, Proxy: o.Proxy, LegacySSE: sse,
		Where: "ToolHive's workload " + w.Name,
	})
	return e
}
