package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// statusHints are the hints for an answer, by its status.
var statusHints = map[int]string{
	http.StatusUnauthorized:          `the server wants sign-in: set "headers": {"Authorization": "Bearer ${TOKEN}"} for it`,
	http.StatusForbidden:             "check the token's rights; a server on this machine may accept one host name only, localhost or 127.0.0.1",
	http.StatusNotFound:              "check the path of url: most servers answer at /mcp",
	http.StatusMethodNotAllowed:      `check the path of url, or set "type": "sse" if this is a server of the older SSE transport`,
	http.StatusBadRequest:            `check the path of url, or set "type": "sse" if this is a server of the older SSE transport`,
	http.StatusTooManyRequests:       "wait, or lower concurrency for this server",
	http.StatusRequestEntityTooLarge: "pass less in one call: the server does not take so much",
	http.StatusProxyAuthRequired:     "check the proxy's user and password",
}

// Explain explains a failure. The SDK reports an answer without a result like a lost connection.
func (t *Transport) Explain(err error) (msg, hint string) {
	if errors.Unwrap(err) == io.EOF && strings.HasPrefix(err.Error(), `calling "`) {
		err = fmt.Errorf("%w: it has neither a result nor an error", rpc.ErrBroken)
	}
	msg, hint = t.client.Explain(err)
	if found := t.found.Load(); found != nil {
		hint = "there is an MCP server at " + *found + ": write that as url" + at(t.Where)
	}
	return msg, hint
}

// Explain explains a failure of HTTP. Both texts may be empty.
func (t *client) Explain(err error) (msg, hint string) {
	host := t.target.Host
	var status *statusError
	var dns *net.DNSError
	var redirect *redirectError
	var signIn *signInError
	switch text := err.Error(); {
	case errors.As(err, &status) && status.signIn != "":
		return status.signIn, "no tool signs in: a person runs the command" + at(t.Where)
	case errors.As(err, &status):
		hint = statusHints[status.status]
		if _, ok := t.auth.(*person); ok && status.status == http.StatusUnauthorized {
			hint = "the server wants sign-in: " + loginCommand(t.Name) + `, or set "headers": {"Authorization": "Bearer ${TOKEN}"} for the server`
		}
		if status.sessionLost {
			hint = "the server has lost its session, and the next call begins another; where several processes share the address, they need session affinity"
		}
		if status.known {
			hint = "the server answers, but not this call: see its logs"
		}
		if hint == "" && status.status >= 500 {
			hint = "the server or a proxy in front of it has a problem: see its logs, or try again later"
		}
		if hint == "" {
			hint = "see the server's logs"
		}
		return status.Error(), hint + at(t.Where)
	case errors.As(err, &redirect):
		return redirect.Error(), "if that is where the server is now, set url to an address there" + at(t.Where)
	case errors.As(err, &signIn):
		return t.explainSignIn(signIn)
	case errors.Is(err, rpc.ErrBroken):
		return host + " answers, but not with MCP: " + texts.Cut(text, 300), "check the path of url: most servers answer at /mcp" + at(t.Where)
	case errors.As(err, &dns):
		return fmt.Sprintf("there is no host named %q", dns.Name), "check the host of url" + at(t.Where)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens on " + host, "start the server, or check the host and port of url" + at(t.Where)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return host + " speaks http, not https", "write url with http://" + at(t.Where)
	case strings.Contains(text, "malformed HTTP response"):
		return host + " does not answer with HTTP", "check the port, or write url with https://" + at(t.Where)
	case strings.Contains(text, "x509: "):
		_, cert, _ := strings.Cut(text, "x509: ")
		return "the certificate of " + host + " is not accepted: " + texts.Cut(cert, 300), "check the host name and the certificate" + at(t.Where)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "terminated without response"), errors.Is(err, syscall.EPIPE):
		return host + " closed the connection before it answered", "see the server's logs: it may have crashed or been restarted"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer from " + origin(t.target), "see whether the server runs and the address is right" + at(t.Where)
	}
	return "", "see whether the server runs and the address is right" + at(t.Where)
}

// explainSignIn explains a sign-in that has failed without a refusal of the request.
func (t *client) explainSignIn(err error) (msg, hint string) {
	text := texts.Cut(rpc.WithoutRequest(t.Hide(err.Error())), 500)
	if _, ok := t.auth.(*person); ok {
		return text, "try again later, or " + loginCommand(t.Name) + at(t.Where)
	}
	return "signing in failed: " + text, "check oauth: issuer, clientId and clientSecret" + at(t.Where)
}
