package config

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands in messages for what was cut out of them.
const Hidden = "***"

// Shorter words are not hidden: they would be found in half of all messages.
const (
	leastSecret = 4  // of what is certainly meant to be secret
	leastValue  = 8  // of a variable of the environment whose name does not tell, and of parts of a header
	leastLine   = 16 // of one line of many
)

// telling matches names of settings that hold secrets.
var telling = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|\bpass\b|_pass$|^pass$|auth|cred|bearer|cookie|session|dsn|connection.?string|private|signature`)

// IsTelling reports whether a name, of a variable, a header, a flag or a parameter, says that its value is a secret.
func IsTelling(name string) bool { return telling.MatchString(name) }

// public are the variables that say who and where the user is. Their values stand in every path.
var public = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PWD", "TMPDIR", "HOSTNAME"}

// ordinary matches values that tell nothing, whatever their name.
var ordinary = regexp.MustCompile(`(?i)^(\d{1,5}|true|false|null|none|auto|info|debug|error|warn|warning|http|https|stdio|json|text|localhost|127\.0\.0\.1|development|production|bearer|basic|application/json|text/event-stream)$`)

// SecretsIn returns the words of arguments, or of addresses among them, that no message may show.
func SecretsIn(args ...string) []string {
	var s secrets
	s.ofArguments(args)
	return s.words()
}

// secrets are the words of one server that no message may show.
type secrets []string

// add adds words that are secret whatever they are.
func (s *secrets) add(words ...string) { s.atLeast(leastSecret, words...) }

func (s *secrets) atLeast(least int, words ...string) {
	for _, word := range words {
		if word = strings.TrimSpace(word); len(word) < least || ordinary.MatchString(word) || slices.Contains(*s, word) {
			continue
		}
		*s = append(*s, word)
		if strings.ContainsRune(word, '\n') {
			s.atLeast(leastLine, strings.Split(word, "\n")...)
		}
	}
}

// ofVariable adds what came out of the environment.
func (s *secrets) ofVariable(name, value string) {
	if !slices.Contains(public, name) {
		s.add(value)
	}
}

// ofSpec adds what the members of an entry hold.
func (s *secrets) ofSpec(p *spec) {
	for _, value := range p.Headers {
		s.add(value)
		s.atLeast(leastValue, strings.Fields(value)...) // the token after Bearer
	}
	for name, value := range p.Env {
		switch {
		case IsTelling(name):
			s.add(value)
		case !slices.Contains(public, name):
			s.atLeast(leastValue, value)
		}
		s.ofAddress(value)
	}
	s.ofArguments(p.Args)
	s.ofAddress(p.URL)
	for name, value := range p.With {
		var text string
		if IsTelling(name) && json.Unmarshal(value, &text) == nil {
			s.add(text)
		}
	}
	for name, value := range p.Options {
		var text string
		if IsTelling(name) && json.Unmarshal(value, &text) == nil {
			s.add(text)
		}
	}
}

// ofArguments adds the values of telling flags: --token X, --token=X, and NAME=X after -e or by itself.
func (s *secrets) ofArguments(args []string) {
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case assigned && IsTelling(name):
			s.add(value)
		case strings.HasPrefix(arg, "-") && !assigned && IsTelling(arg) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			s.add(args[i+1])
		}
		if name, value, ok := strings.Cut(arg, ":"); ok && IsTelling(name) && !strings.HasPrefix(value, "//") {
			s.add(value) // a header, as mcp-remote takes it
			s.atLeast(leastValue, strings.Fields(value)...)
		}
		s.ofAddress(arg)
	}
}

// isToken matches the part of a path that is no name: many servers are given their token there.
var isToken = regexp.MustCompile(`^[\w=.~%+-]*\d[\w=.~%+-]*$`)

// leastToken is how long such a part is at least.
const leastToken = 16

// ofAddress adds the user, the query, and what may be a token in the path of an address.
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
		if isToken.MatchString(part) {
			s.atLeast(leastToken, part)
		}
	}
	for name, values := range u.Query() {
		least := leastValue
		if IsTelling(name) {
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

// hide cuts the secrets out of a text.
func (s secrets) hide(text string) string {
	var pairs []string
	for _, word := range s.words() {
		pairs = append(pairs, word, Hidden)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
