package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// byteSet is the set of bytes that a bracket expression matches.
type byteSet [256]bool

// posix are the named classes of POSIX in the C locale, as pairs of the first and last byte of a range.
var posix = map[string]string{
	"alnum":  "09AZaz",
	"alpha":  "AZaz",
	"blank":  "  \t\t",
	"cntrl":  "\x00\x1f\x7f\x7f",
	"digit":  "09",
	"graph":  "!~",
	"lower":  "az",
	"print":  " ~",
	"punct":  "!/:@[`{~",
	"space":  "  \t\r",
	"upper":  "AZ",
	"xdigit": "09AFaf",
}

// parseClass parses a bracket expression after its "[". It returns the bytes that it matches and its length in s, or -1 if
// it is malformed. It follows git's matcher, odd cases included: a first "]" is literal, a backslash quotes, a backward
// range is empty.
func parseClass(s string) (set byteSet, n int) {
	i := 0
	negate := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negate {
		i++
	}
	last := -1 // the previous byte if it can begin a range
	for first := true; ; first = false {
		if i >= len(s) {
			return set, -1
		}
		c := s[i]
		switch {
		case c == ']' && !first:
			set.finish(negate)
			return set, i + 1
		case c == '\\':
			if i++; i == len(s) {
				return set, -1
			}
			last = int(s[i])
			set[last] = true
		case c == '-' && last >= 0 && i+1 < len(s) && s[i+1] != ']':
			if i++; s[i] == '\\' {
				i++
			}
			if i == len(s) {
				return set, -1
			}
			set.add(byte(last), s[i])
			last = -1
		case c == '[' && strings.HasPrefix(s[i+1:], ":"):
			ranges, width, ok := namedClass(s[i:])
			if !ok {
				return set, -1
			}
			last = -1
			if width == 0 { // not closed: a plain bracket
				width, last = 1, '['
				set['['] = true
			}
			for r := range slices.Chunk([]byte(ranges), 2) {
				set.add(r[0], r[1])
			}
			i += width - 1
		default:
			last = int(c)
			set[c] = true
		}
		i++
	}
}

// namedClass reads a "[:name:]" at the beginning of s. The width is 0 if there is none; ok is false if the name is unknown.
func namedClass(s string) (ranges string, width int, ok bool) {
	end := strings.IndexByte(s[2:], ']')
	if end < 0 {
		return "", 0, false
	}
	name, closed := strings.CutSuffix(s[2:2+end], ":")
	if !closed {
		return "", 0, true
	}
	ranges, ok = posix[name]
	return ranges, len("[:") + end + len("]"), ok
}

// finish inverts a negated set, and removes "/", which no class matches.
func (s *byteSet) finish(negate bool) {
	for c := range s {
		s[c] = s[c] != negate && c != '/'
	}
}

func (s *byteSet) add(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s[c] = true
	}
}

// writeClass writes set as a character class; it returns false if the set is empty.
func writeClass(b *strings.Builder, set byteSet) bool {
	var ranges strings.Builder
	for c := 0; c < len(set); c++ {
		if !set[c] {
			continue
		}
		from := c
		for c+1 < len(set) && set[c+1] {
			c++
		}
		fmt.Fprintf(&ranges, `\x{%x}-\x{%x}`, from, c)
	}
	if ranges.Len() == 0 {
		return false
	}
	b.WriteString("[" + ranges.String() + "]")
	return true
}
