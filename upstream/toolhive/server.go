package toolhive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
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
	"policy_stopped":  {why: "a policy of ToolHive has stopped it", hint: "ask the operator of ToolHive"},
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

// Bounds of a list of workloads.
const (
	maxWorkloads = 10_000
	maxEntry     = 64 << 10 // bytes of one
	maxName      = 256      // bytes
	maxFlaws     = 10       // that are named
)

// A Workload is a server as ToolHive lists it. Only the name is always there.
type Workload struct {
	Name          string            `json:"name"`
	Package       string            `json:"package"` // the image, or "remote"
	URL           string            `json:"url"`     // of ToolHive's proxy before the server, empty while there is none
	TransportType string            `json:"transport_type"`
	ProxyMode     string            `json:"proxy_mode"` // what the proxy speaks; older releases leave it out
	Status        string            `json:"status"`
	StatusContext string            `json:"status_context"` // the reason for the status
	Created       string            `json:"created_at"`
	Group         string            `json:"group"`
	Labels        map[string]string `json:"labels"`
}

// inspector is the transport of a web page for people, which ToolHive runs like a server.
const inspector = "inspector"

// parseList reads an answer of the API: {"workloads": [...]}, or null for an empty list. It ignores unknown members; a
// workload that cannot be read is a flaw, and the others count. The list is sorted by name, because the API has no
// order, and names are unique.
func parseList(data []byte) (list []Workload, flaws []string, err error) {
	entries, err := entriesOf(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the list of workloads: %w", err)
	}
	for i, entry := range entries {
		w, err := parseWorkload(entry)
		if err == nil {
			list = append(list, w)
		} else if len(flaws) < maxFlaws {
			flaws = append(flaws, fmt.Sprintf("workload %d: %v", i+1, err))
		}
	}
	slices.SortFunc(list, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Created, b.Created), cmp.Compare(a.URL, b.URL))
	})
	return slices.CompactFunc(list, func(a, b Workload) bool { return a.Name == b.Name }), flaws, nil
}

// entriesOf splits the list up to its greatest length: an entry takes more memory than it has bytes.
func entriesOf(data []byte) (entries []json.RawMessage, err error) {
	var answer struct{ Workloads json.RawMessage }
	switch err := json.Unmarshal(data, &answer); {
	case err != nil:
		return nil, err
	case answer.Workloads == nil:
		return nil, errors.New("the member workloads is missing")
	case string(answer.Workloads) == "null":
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(answer.Workloads))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.New("workloads is not an array")
	}
	for dec.More() {
		if len(entries) == maxWorkloads {
			return nil, fmt.Errorf("it has more than %d", maxWorkloads)
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, err
		}
		entries = append(entries, one)
	}
	return entries, nil
}

func parseWorkload(raw json.RawMessage) (Workload, error) {
	var w Workload
	if len(raw) > maxEntry {
		return w, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxEntry)
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return w, err
	}
	switch {
	case w.Name == "":
		return w, fmt.Errorf("it has no name")
	case len(w.Name) > maxName:
		return w, fmt.Errorf("its name is longer than %d bytes", maxName)
	case upstream.IsReserved(w.Name):
		return w, fmt.Errorf("its name %q is reserved", w.Name)
	}
	return w, nil
}

// A Filter picks workloads by globs, where * is any run of characters, ? one, and [a-z] one of a set. One that begins
// with ! leaves out what it matches. An empty list picks everything that is not left out.
type Filter struct {
	Groups []string // of ToolHive
	Names  []string // of workloads
	Labels []string // KEY=GLOB, or KEY for any value
}

// check refuses globs that cannot be read.
func (f Filter) check() error {
	for _, pattern := range slices.Concat(f.Groups, f.Names, f.Labels) {
		glob := strings.TrimPrefix(pattern, "!")
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("%q is not a glob such as git* or !test-*", pattern)
		}
	}
	return nil
}

// match reports whether the filter picks a workload.
func (f Filter) match(w Workload) bool {
	return picks(f.Groups, func(glob string) bool { return matches(glob, w.Group) }) &&
		picks(f.Names, func(glob string) bool { return matches(glob, w.Name) }) &&
		picks(f.Labels, func(glob string) bool {
			key, glob, valued := strings.Cut(glob, "=")
			value, there := w.Labels[key]
			return there && (!valued || matches(glob, value))
		})
}

// picks applies a list of globs; is reports whether one matches.
func picks(list []string, is func(glob string) bool) bool {
	wanted, picked := false, false
	for _, pattern := range list {
		glob, not := strings.CutPrefix(pattern, "!")
		if not && is(glob) {
			return false
		}
		wanted = wanted || !not
		picked = picked || !not && is(glob)
	}
	return picked || !wanted
}

// matches compares a text with a glob that was checked. Names are opaque, so / is a character like others.
func matches(glob, text string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && ok
}
