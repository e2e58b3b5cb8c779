package remote

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Shorter words of an address or a header are not hidden: half of all messages contain them.
const (
	minSecret  = 4 // of the query, the user and a header
	minSegment = 8 // of the path: most are names such as mcp, and some are tokens
)

// anyAddress matches an address within a text.
var anyAddress = lazy.Regexp(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>\\]+`)

// An addressHider hides what may be secret of one endpoint: all of its address but scheme and host, and the values of
// its headers. Many servers get their token in the path or the query, and some repeat it in their errors.
type addressHider struct {
	host  string
	words *rpc.Hider
}

func newAddressHider(target *url.URL, headers http.Header) *addressHider {
	var s secretWords
	s.add(minSegment, target.Path, target.EscapedPath())
	s.add(minSegment, strings.Split(target.Path, "/")...)
	s.add(minSegment, strings.Split(target.EscapedPath(), "/")...)
	s.add(minSecret, target.RawQuery, target.Fragment)
	for _, pair := range strings.Split(target.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		plain, _ := url.QueryUnescape(value)
		s.add(minSecret, value, plain)
	}
	if target.User != nil {
		password, _ := target.User.Password()
		s.add(minSecret, target.User.Username(), password, target.User.String())
	}
	for _, values := range headers {
		s.add(minSecret, values...)
		for _, value := range values {
			s.add(minSegment, strings.Fields(value)...) // the token after Bearer
		}
	}
	return &addressHider{host: target.Host, words: rpc.NewHider(s)}
}

type secretWords []string

func (s *secretWords) add(least int, words ...string) {
	for _, word := range words {
		if len(word) >= least {
			*s = append(*s, word)
		}
	}
}

// hide returns a text without secrets. Addresses of other hosts stay: a server may name a page to sign in at.
func (s *addressHider) hide(text string) string {
	return rpc.Bounded(text, s.bounded)
}

func (s *addressHider) bounded(text string) string {
	return s.words.Hide(anyAddress().ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ":;,.)]")
		u, err := url.Parse(address)
		switch {
		case err != nil:
			return rpc.Hidden
		case u.Host == s.host || u.User != nil:
			return origin(u) + found[len(address):]
		}
		return found
	}))
}

// origin is the part of an address that messages show.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
