package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// longestName is the length of a name: clients and models take 64 characters of A-Z, a-z, 0-9, _ and - in any name.
const longestName = 64

// inNames reports whether clients take a character in a name.
func inNames(c rune) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// fitted returns a name that clients take. A name that does not fit, or that other parts could give too, is made to fit and
// gets a hash of its parts at its end.
func fitted(name string, unclear bool, parts ...string) string {
	fits := strings.Map(func(c rune) rune {
		if inNames(c) {
			return c
		}
		return '_'
	}, name)
	if fits == name && len(name) <= longestName && !unclear {
		return name
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	hash := "_" + hex.EncodeToString(sum[:4])
	return fits[:min(len(fits), longestName-len(hash))] + hash
}

// The placeholders of a [NameRule].
const (
	serverPart = "{server}"
	toolPart   = "{tool}"
)

// A NameRule makes the names by which clients call tools of servers. The zero rule is [DefaultNames].
type NameRule struct {
	text      string
	separator string // between the server and the tool; empty: the parts of a name may be unclear
}

// DefaultNames is the rule for names like github__create_issue.
const DefaultNames = serverPart + "__" + toolPart

// longestLiteral bounds the characters of a rule beside its placeholders.
const longestLiteral = 24

// ParseNameRule reads a rule: text with {tool} and, unless only one server has such tools, {server}.
func ParseNameRule(text string) (NameRule, error) {
	literal := strings.Replace(strings.Replace(text, toolPart, "", 1), serverPart, "", 1)
	switch {
	case !strings.Contains(text, toolPart):
		return NameRule{}, fmt.Errorf("the rule %q has no %s", shown(text), toolPart)
	case strings.ContainsFunc(literal, func(c rune) bool { return !inNames(c) }):
		return NameRule{}, fmt.Errorf("the rule %q has more than %s and %s once each and the characters A-Z a-z 0-9 _ -", shown(text), serverPart, toolPart)
	case len(literal) > longestLiteral:
		return NameRule{}, fmt.Errorf("the rule %q has %d characters beside its placeholders, more than %d", shown(text), len(literal), longestLiteral)
	}
	r := NameRule{text: text}
	if _, rest, ok := strings.Cut(text, serverPart); ok {
		r.separator, _, _ = strings.Cut(rest, toolPart)
		if !strings.Contains(rest, toolPart) {
			r.separator = ""
		}
	}
	return r, nil
}

// name returns the name of a tool. With a separator, no two tools have the same name unless a hash repeats.
func (r NameRule) name(server, tool string) string {
	if r.text == "" {
		r, _ = ParseNameRule(DefaultNames)
	}
	unclear := r.separator != "" && strings.Contains(server+r.separator[:len(r.separator)-1], r.separator)
	return fitted(strings.NewReplacer(serverPart, server, toolPart, tool).Replace(r.text), unclear, server, tool)
}
