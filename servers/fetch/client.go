package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcsh-dev/mcsh/internal/publicip"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

const (
	maxRedirects        = 10
	maxResponseHeaders  = 256 << 10
	dialTimeout         = 10 * time.Second
	idleTimeout         = 15 * time.Second // short, since there is no Close
	idleConnections     = 64
	idleConnectionsHost = 8
)

// Kinds of failure beside those of the tool package.
const (
	addressRefused = "AddressRefused" // the host is not a public one
	networkError   = "NetworkError"   // no answer, or a broken one
	httpStatus     = "HttpStatus"     // an answer with a status of 400 and above
	badContent     = "BadContent"     // an answer that cannot be shown
)

// errTooSlow is the cause of this server's own deadline.
var errTooSlow = errors.New("the time limit is reached")

// newClient makes a client without proxy and cookies that connects only to public addresses and the allowed hosts.
func newClient(o Options, allowed hosts) *http.Client {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout, Resolver: o.Resolver}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		if !o.AllowPrivate && !allowed.match(host) {
			d.Control = publicip.Only
		}
		return d.DialContext(ctx, network, addr)
	}
	return &http.Client{
		CheckRedirect: redirect,
		Transport: &http.Transport{
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxResponseHeaders,
			MaxIdleConns:           idleConnections,
			MaxIdleConnsPerHost:    idleConnectionsHost,
			IdleConnTimeout:        idleTimeout,
		},
	}
}

// redirect decides whether req follows the requests in via.
func redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &tool.Error{Kind: tool.LimitExceeded, Msg: fmt.Sprintf("there are more than %d redirects, the last one to %.200q", maxRedirects, req.URL.Redacted())}
	}
	if err := checkURL(req.URL); err != nil {
		return fmt.Errorf("the server redirects to a place that is refused: %w", err)
	}
	req.Header.Del("Referer") // the previous URL may hold secrets of its own server
	for _, v := range via {
		if origin(v.URL) != origin(req.URL) {
			// The caller's headers were meant for the first server and may hold secrets in any name.
			req.Header = http.Header{"User-Agent": {userAgent}, "Accept": {accept}, "Content-Type": req.Header["Content-Type"]}
			break
		}
	}
	return nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + canonicalHost(u.Host) }

// explain adds a kind and a hint to an error of the HTTP client or of reading a body.
func (s *server) explain(ctx context.Context, err error) error {
	if t, ok := errors.AsType[*tool.Error](err); ok {
		return t
	}
	place := "the server"
	if u, ok := errors.AsType[*url.Error](err); ok {
		if at, perr := url.Parse(u.URL); perr == nil {
			place = fmt.Sprintf("%.200q", at.Host)
		}
		err = u.Err
	}
	if r, ok := errors.AsType[*publicip.Refused](err); ok {
		return &tool.Error{
			Kind: addressRefused, Msg: fmt.Sprintf("%s is not reached: %v", place, r),
			Hint: "only public addresses are, unless the operator allows the host",
		}
	}
	if ctx.Err() != nil {
		if context.Cause(ctx) == errTooSlow {
			return &tool.Error{Kind: tool.Timeout, Msg: fmt.Sprintf("no complete answer from %s within %v", place, s.timeout), Hint: "try again later or ask for less"}
		}
		return ctx.Err()
	}
	return &tool.Error{Kind: networkError, Msg: fmt.Sprintf("requesting from %s: %v", place, err)}
}
