package remote

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Shorter words of an address or a header are not hidden: they would be found in half of all messages.
const (
	minSecret  = 4 // of the query, the user and a header
	minSegment = 8 // of the path: most have a name there, such as mcp, and some a token
)

// anyAddress is an address within a text.
var anyAddress = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>\\]+`)

// A scrubber cuts out of texts what may be secret of one endpoint: all of its address but scheme and host, and what
// its headers say. Many servers are given their token in the path or the query, and some repeat it in their errors.
type scrubber struct {
	host  string
	words *strings.Replacer
}

func newScrubber(target *url.URL, headers http.Header) *scrubber {
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
	return &scrubber{host: target.Host, words: rpc.Hiding(s)}
}

type secretWords []string

func (s *secretWords) add(least int, words ...string) {
	for _, word := range words {
		if len(word) >= least {
			*s = append(*s, word)
		}
	}
}

// scrub returns a text without secrets. Addresses of other hosts stay: a server may name a page to sign in at.
func (s *scrubber) scrub(text string) string {
	return s.words.Replace(anyAddress.ReplaceAllStringFunc(text, func(found string) string {
		address := strings.TrimRight(found, ":;,.)]")
		u, err := url.Parse(address)
		switch {
		case err != nil:
			return rpc.Hidden
		case u.Host == s.host || u.User != nil:
			return place(u) + found[len(address):]
		}
		return found
	}))
}

// place is as much of an address as messages show.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host }
