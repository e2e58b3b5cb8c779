package signin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/publicip"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxAnswer    = 1 << 20          // bytes of an answer
	maxHead      = 64 << 10         // bytes of its header
	answerWait   = 30 * time.Second // of one request, with its answer
	dialWait     = 10 * time.Second
	idleWait     = 30 * time.Second
	maxRedirects = 3
)

// Options are those of a client for the requests of sign-ins with one server.
type Options struct {
	Server     string                                // address of the MCP server
	Trusted    []string                              // addresses that the operator has configured
	Proxy      func(*http.Request) (*url.URL, error) // nil: none
	Own, Other *tls.Config                           // for the server, and for other hosts; nil: the system's
}

// NewHTTP makes a client for the requests of sign-ins with one server. It sends them by https, or to this machine, and to
// hosts that the configuration does not name only if their addresses are public, or if the configured address of the server
// is in such a network itself. It follows redirects of requests that carry no secret, and bounds the size and the time of
// answers. Certificates are always checked.
func NewHTTP(o Options) *http.Client {
	g := &guard{proxy: o.Proxy, known: map[string]bool{}}
	for i, address := range append([]string{o.Server}, o.Trusted...) {
		u, err := url.Parse(address)
		if err != nil || address == "" {
			continue // nobody is reached by it
		}
		if i == 0 {
			g.server = hostOf(u)
		}
		g.known[hostOf(u)] = true
	}
	g.own, g.other = g.transport(o.Own, nil), g.transport(o.Other, nil)
	g.ownProxied, g.otherProxied = g.transport(o.Own, o.Proxy), g.transport(o.Other, o.Proxy)
	return &http.Client{Transport: g, Timeout: answerWait, CheckRedirect: redirect}
}

// redirect follows requests that have neither a body nor credentials.
func redirect(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return fmt.Errorf("there are more than %d redirects", maxRedirects)
	}
	req.Header.Del("Referer")
	return nil
}

// A guard sends the requests of sign-ins where they may go.
type guard struct {
	proxy  func(*http.Request) (*url.URL, error)
	server string          // host of the MCP server
	known  map[string]bool // hosts that may have any address: the server's and those of the operator

	resolver                             *net.Resolver // nil: the system's
	own, other, ownProxied, otherProxied *http.Transport
}

// transport makes a transport. A proxy connects by itself: only addresses in the request are checked then.
func (g *guard) transport(config *tls.Config, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.InsecureSkipVerify = false
	dial := g.dial
	if proxy != nil {
		dial = (&net.Dialer{Timeout: dialWait}).DialContext
	}
	return &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: dialWait, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: maxHead, IdleConnTimeout: idleWait, MaxIdleConnsPerHost: 2,
	}
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req.URL); err != nil {
		return nil, err
	}
	direct, proxied := g.other, g.otherProxied
	if hostOf(req.URL) == g.server {
		direct, proxied = g.own, g.ownProxied
	}
	by := direct
	if g.proxy != nil {
		through, err := g.proxy(req)
		if err != nil {
			return nil, err
		}
		if through != nil {
			by = proxied
		}
	}
	resp, err := by.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// check refuses an address that is not https, or that names a host that is not public.
func (g *guard) check(u *url.URL) error {
	if err := checkAddress(u); err != nil {
		return err
	}
	if g.known[hostOf(u)] {
		return nil
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return g.allows(addr)
	}
	if isLoopback(u.Hostname()) {
		return g.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return nil
}

// dial connects to a host that may have the address that its name resolves to.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialWait, Resolver: g.resolver}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !g.known[strings.ToLower(host)] {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return g.allows(to.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// allows refuses an address that is not public, unless the configuration has the server on this machine, or at an address
// of the same kind of private network. The addresses that the server's name resolves to do not count: its owner chooses
// them. Nobody reaches the link-local network, where clouds offer their secrets.
func (g *guard) allows(addr netip.Addr) error {
	kind := publicip.Special(addr)
	switch {
	case kind == "", kind != "link-local" && isLoopback(g.server):
		return nil
	case kind == "private" || kind == "carrier-grade NAT":
		if own, err := netip.ParseAddr(g.server); err == nil && publicip.Special(own) == kind {
			return nil
		}
		return fmt.Errorf("%w: if the sign-in belongs there, set oauth.issuer or oauth.authServerMetadataUrl",
			&publicip.Refused{What: kind})
	}
	return &publicip.Refused{What: kind}
}

func hostOf(u *url.URL) string { return strings.ToLower(u.Hostname()) }

// checkAddress refuses an address that secrets must not go to.
func checkAddress(u *url.URL) error {
	switch {
	case u.User != nil || u.Fragment != "":
		return errors.New("an address of a sign-in has no user and no fragment")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("an address of a sign-in begins with https:// and a host")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return fmt.Errorf("%s is not https: a sign-in sends no secret in the clear", origin(u))
	}
	return nil
}

// isLoopback reports whether a host is this machine, by its name or address alone.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// origin is the part of an address that messages show.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// maxWords bounds the words of a server that an error repeats, in bytes.
const maxWords = 300

// errAbsent is wrapped by the error of a document that is not there.
var errAbsent = errors.New("there is no such document")

// getJSON reads a document. An answer that is no JSON by its type is the page of a server that answers everything with one.
func getJSON(ctx context.Context, c *http.Client, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the address of a document is malformed")
	}
	req.Header.Set("Accept", "application/json")
	status, media, body, err := do(c, req)
	switch {
	case err != nil:
		return err
	case status/100 == 4 && status != http.StatusTooManyRequests:
		return fmt.Errorf("%s: %w: %d %s", shown(req.URL), errAbsent, status, http.StatusText(status))
	case status != http.StatusOK:
		return fmt.Errorf("%s: %d %s", shown(req.URL), status, http.StatusText(status))
	case media != "application/json" && !strings.HasSuffix(media, "+json"):
		return fmt.Errorf("%s: %w: it is of type %.60q, not JSON", shown(req.URL), errAbsent, media)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: the document is not as the specification says", shown(req.URL))
	}
	return nil
}

// shown is an address in a message: without its query.
func shown(u *url.URL) string { return texts.Cut(origin(u)+u.EscapedPath(), maxWords) }

// do sends a request and reads the answer whole. Its error does not show the address, which may hold secrets.
func do(c *http.Client, req *http.Request) (status int, media string, body []byte, err error) {
	resp, err := c.Do(req)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		body, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		return 0, "", nil, withoutAddress(req.URL, err)
	}
	media, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type")) // a malformed one is none
	return resp.StatusCode, media, body, nil
}

// withoutAddress replaces the address in an error of the HTTP client by its origin.
func withoutAddress(u *url.URL, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		err = fmt.Errorf("no whole answer in time: %w", err)
	}
	return fmt.Errorf("%s: %w", origin(u), err)
}

// A Refusal is an error that an authorization server has answered with.
type Refusal struct {
	Code  string // such as access_denied
	Words string // of the server, for people
}

// Error implements error.
func (r *Refusal) Error() string {
	text := "the authorization server refuses: " + r.Code
	if r.Words != "" {
		text += ": " + r.Words
	}
	return text
}

// refusalOf makes a refusal. The words of the server do not repeat the secrets.
func refusalOf(code, words string, secrets ...string) *Refusal {
	return &Refusal{Code: plain(code, 60, secrets), Words: plain(words, maxWords, secrets)}
}

// plain returns text of a server for a message: one line, cut, without secrets.
func plain(text string, most int, secrets []string) string {
	var words []string
	for _, secret := range secrets {
		if len(secret) >= 4 {
			words = append(words, secret)
		}
	}
	text = rpc.NewHider(words).Hide(texts.Cut(text, 4*most))
	fields := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 })
	return texts.Cut(strings.Join(fields, " "), most)
}

// refusalIn finds the refusal in an answer; nil: there is none. Some servers refuse with the status 200.
func refusalIn(u *url.URL, status int, body []byte, secrets ...string) error {
	var said struct {
		Code   string `json:"error"`
		Words  string `json:"error_description"`
		Access string `json:"access_token"`
	}
	err := json.Unmarshal(body, &said)
	switch {
	case status == http.StatusOK && (err != nil || said.Code == "" || said.Access != ""):
		return nil
	case err != nil || said.Code == "":
		return fmt.Errorf("%s: %d %s", origin(u), status, http.StatusText(status))
	}
	return refusalOf(said.Code, said.Words, secrets...)
}
