package workspace

import (
	"fmt"
	"strings"
)

// byteSet is a set of bytes, as a bracket expression of a pattern describes it.
type byteSet [256]bool

// posix are the named classes of POSIX in the C locale, as ranges.
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

// parseClass parses what follows the "[" of a bracket expression and returns the bytes that it matches and how much
// of s it takes, or -1 if it is malformed. It follows git's matcher, odd cases included: a "]" that comes first is
// literal, a backslash quotes, a range that runs backwards is empty.
func parseClass(s string) (set byteSet, n int) {
	i := 0
	negate := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negate {
		i++
	}
	last := -1 // the byte before, where a range can begin
	for first := true; ; first = false {
		if i >= len(s) {
			return set, -1
		}
		c := s[i]
		switch {
		case c == ']' && !first:
			return set.finished(negate), i + 1
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
			if width == 0 { // not closed: a plain bracket
				width, last = 1, '['
				set['['] = true
			} else {
				last = -1
			}
			set.addAll(ranges)
			i += width - 1
		default:
			last = int(c)
			set[c] = true
		}
		i++
	}
}

// finished inverts the set if it is negated, and takes out what no class matches.
func (s byteSet) finished(negate bool) byteSet {
	if negate {
		s.invert()
	}
	s['/'] = false
	return s
}

// addAll adds ranges, written as pairs of their first and last byte.
func (s *byteSet) addAll(ranges string) {
	for r := 0; r < len(ranges); r += 2 {
		s.add(ranges[r], ranges[r+1])
	}
}

// namedClass reads a "[:name:]" at the beginning of s. A width of 0 means that it is none; false, that the name is
// unknown.
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

func (s *byteSet) add(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s[c] = true
	}
}

func (s *byteSet) invert() {
	for c := range s {
		s[c] = !s[c]
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
