package config

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// Hidden replaces secrets in messages.
const Hidden = "***"

// Shorter words are not hidden: half of all messages contain them.
const (
	leastSecret = 4  // of a value that is certainly a secret
	leastValue  = 8  // of a variable whose name does not say so, and of parts of a header
	leastLine   = 16 // of one line of a longer value
)

// secretName matches names of settings that hold secrets.
var secretName = lazy.Regexp(`(?i)key|token|secret|passw|pwd|\bpass\b|_pass$|^pass$|auth|cred|bearer|cookie|session|dsn|connection.?string|private|signature`)

// IsSecretName reports whether the name of a variable, a header, a flag or a parameter says that its value is a secret.
func IsSecretName(name string) bool { return secretName().MatchString(name) }

// public are the variables that say who and where the user is. Every path contains their values.
var public = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PWD", "TMPDIR", "HOSTNAME"}

// ordinary matches values that are never secret under any name.
var ordinary = lazy.Regexp(`(?i)^(\d{1,5}|true|false|null|none|auto|info|debug|error|warn|warning|http|https|stdio|json|text|localhost|127\.0\.0\.1|development|production|bearer|basic|application/json|text/event-stream)$`)

// SecretsIn returns the words of arguments, or of addresses among them, that no message may show.
func SecretsIn(args ...string) []string {
	var s secrets
	s.ofArguments(args)
	return s.words()
}

// secrets are the words of one server that no message may show.
type secrets []string

// add adds words that are secret even if they look ordinary.
func (s *secrets) add(words ...string) { s.atLeast(leastSecret, words...) }

func (s *secrets) atLeast(least int, words ...string) {
	for _, word := range words {
		if word = strings.TrimSpace(word); len(word) < least || ordinary().MatchString(word) || slices.Contains(*s, word) {
			continue
		}
		*s = append(*s, word)
		if strings.ContainsRune(word, '\n') {
			s.atLeast(leastLine, strings.Split(word, "\n")...)
		}
	}
}

// ofSpec adds the secrets in the members of an entry.
func (s *secrets) ofSpec(p *spec) {
	for _, value := range p.Headers {
		s.add(value)
		s.atLeast(leastValue, strings.Fields(value)...) // the token after Bearer
	}
	for name, value := range p.Env {
		switch {
		case IsSecretName(name):
			s.add(value)
		case !slices.Contains(public, name):
			s.atLeast(leastValue, value)
		}
		s.ofAddress(value)
	}
	s.ofArguments(p.Args)
	s.ofAddress(p.URL)
	for _, members := range []map[string]json.RawMessage{p.With, p.Options} {
		for name, value := range members {
			var text string
			if IsSecretName(name) && json.Unmarshal(value, &text) == nil {
				s.add(text)
			}
		}
	}
}

// ofArguments adds the values of flags for secrets: --token X, --token=X, and NAME=X after -e or by itself.
func (s *secrets) ofArguments(args []string) {
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case assigned && IsSecretName(name):
			s.add(value)
		case strings.HasPrefix(arg, "-") && !assigned && IsSecretName(arg) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			s.add(args[i+1])
		}
		if name, value, ok := strings.Cut(arg, ":"); ok && IsSecretName(name) && !strings.HasPrefix(value, "//") {
			s.add(value) // a header, as mcp-remote takes it
			s.atLeast(leastValue, strings.Fields(value)...)
		}
		s.ofAddress(arg)
	}
}

// isToken matches a part of a path that may be a token: many servers get theirs there.
var isToken = lazy.Regexp(`^[\w=.~%+-]*\d[\w=.~%+-]*$`)

// leastToken is the least length of such a part.
const leastToken = 16

// ofAddress adds the user, the query, and possible tokens in the path of an address.
func (s *secrets) ofAddress(text string) {
	if !strings.Contains(text, "://") {
		return
	}
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	if u.User != nil {
		password, _ := u.User.Password()
		s.add(u.User.String(), password)
		if password == "" {
			s.add(u.User.Username())
		}
	}
	for _, part := range strings.Split(u.Path, "/") {
		if isToken().MatchString(part) {
			s.atLeast(leastToken, part)
		}
	}
	for name, values := range u.Query() {
		least := leastValue
		if IsSecretName(name) {
			least = leastSecret
		}
		s.atLeast(least, values...)
	}
}

// words are all secrets, in the forms in which messages may have them, the longest first.
func (s secrets) words() []string {
	var all []string
	for _, word := range s {
		quoted, _ := json.Marshal(word) // a string can always be encoded
		for _, form := range []string{word, string(quoted[1 : len(quoted)-1]), url.QueryEscape(word), url.PathEscape(word)} {
			if !slices.Contains(all, form) {
				all = append(all, form)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// hide removes the secrets from a text.
func (s secrets) hide(text string) string {
	var pairs []string
	for _, word := range s.words() {
		pairs = append(pairs, word, Hidden)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
