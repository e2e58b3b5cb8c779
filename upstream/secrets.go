package upstream

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Shorter words of an address or a header are not hidden: they would be found in half of all messages.
const (
	minSecret  = 4 // of the query, the user and a header
	minSegment = 8 // of the path: most have a name there, such as mcp, and some a token
)

// hidden stands in a message for what was cut out of it.
const hidden = "***"

// requestLine is what net/http and net/url put before an error: the method and the whole address.
var requestLine = regexp.MustCompile(`\b(?:[A-Z][a-z]+|parse) "[^"\s]*://(?:[^"\\]|\\.)*": `)

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
	slices.SortFunc(s, func(a, b string) int { return len(b) - len(a) }) // the longest first, so that none is cut in two
	pairs := make([]string, 0, 2*len(s))
	for _, word := range s {
		pairs = append(pairs, word, hidden)
	}
	return &scrubber{host: target.Host, words: strings.NewReplacer(pairs...)}
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
			return hidden
		case u.Host == s.host || u.User != nil:
			return place(u) + found[len(address):]
		}
		return found
	}))
}

// withoutRequest strips the method and the address that net/http puts before errors.
func withoutRequest(text string) string { return requestLine.ReplaceAllString(text, "") }

// place is as much of an address as messages show.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host }

// scrubbed is a text that came over a transport without the secrets that the transport knows of.
func scrubbed(t mcp.Transport, text string) string {
	if h, ok := t.(*httpTransport); ok {
		return h.trip.secrets.scrub(text)
	}
	return text
}
