package preview

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable reports whether r may be printed as it is: no control characters, nothing invisible, nothing that
// changes the direction of text.
func printable(r rune) bool {
	return r == ' ' || r != utf8.RuneError && unicode.IsPrint(r)
}

// quote spells s as a JSON string, which is also how jq spells it. Characters that are not printable are escaped, so
// that nothing is lost and nothing acts on a terminal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		b.WriteString(spellRune(r))
	}
	b.WriteByte('"')
	return b.String()
}

// quoteCut spells at most limit characters of s.
func quoteCut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return quote(s)
	}
	q := quote(string([]rune(s)[:limit]))
	return q[:len(q)-1] + `…"`
}

func spellRune(r rune) string {
	switch {
	case r == '"':
		return `\"`
	case r == '\\':
		return `\\`
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == utf8.RuneError || printable(r):
		return string(r)
	case r > 0xffff:
		hi, lo := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// isName reports whether a key needs no quotes behind a dot in jq.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// segment is the jq spelling of one key.
func segment(key string) string {
	if isName(key) {
		return "." + key
	}
	return "." + quote(key)
}

// join puts a relative path behind an absolute one; the root is ".".
func join(path, seg string) string {
	if path == "." && strings.HasPrefix(seg, ".") {
		return seg
	}
	return path + seg
}

// clean makes a line of text harmless: escape sequences of terminals, control characters and what is invisible are
// left out, tabs become spaces, bytes that are not UTF-8 become U+FFFD.
func clean(line []byte) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		if n := escapeSequence(line[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		i += n
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError || printable(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeSequence returns the length of the ANSI escape sequence that b begins with: CSI, OSC or one letter.
func escapeSequence(b []byte) int {
	if len(b) < 2 || b[0] != 0x1b {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case ']':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 || b[i] == 0x1b {
				return i + 1
			}
		}
		return len(b)
	}
	return 2
}

// cut shortens s to at most limit characters, with a mark at the end when it was longer.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	if limit <= 0 {
		return ""
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	if n < 1000 {
		return count(n, "byte")
	}
	f, unit := float64(n)/1e3, "kB"
	for _, next := range []string{"MB", "GB", "TB"} {
		if f < 999.5 {
			break
		}
		f, unit = f/1e3, next
	}
	if f < 9.95 {
		return fmt.Sprintf("%.1f%s", f, unit)
	}
	return fmt.Sprintf("%.0f%s", f, unit)
}

// count is a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
