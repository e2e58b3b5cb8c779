package preview

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// printable reports whether r may be printed as it is. Control and invisible characters may not, nor may those that
// change the direction of text.
func printable(r rune) bool {
	return r == ' ' || r != utf8.RuneError && unicode.IsPrint(r)
}

// quote writes s as a string of JSON and jq. It escapes characters that are not printable: none is lost and none acts on
// a terminal.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		b.WriteString(escapeRune(r))
	}
	b.WriteByte('"')
	return b.String()
}

// quoteCut quotes at most limit characters of s.
func quoteCut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return quote(s)
	}
	q := quote(string([]rune(s)[:limit]))
	return q[:len(q)-1] + `…"`
}

func escapeRune(r rune) string {
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

var nameText = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isName reports whether a key needs no quotes after a dot in jq.
func isName(s string) bool { return nameText().MatchString(s) }

// segment is the jq path of one key.
func segment(key string) string {
	if isName(key) {
		return "." + key
	}
	return "." + quote(key)
}

// escapeSequence matches what acts on a terminal: CSI, OSC or one character.
var escapeSequence = lazy.Regexp(`(?s)\x1b(?:\[[^@-~]*[@-~]?|\][^\x07\x1b]*[\x07\x1b]?|.)`)

// clean makes a line of text harmless: it removes escape sequences of terminals, control characters and invisible ones;
// tabs become spaces, and bytes that are not UTF-8 become U+FFFD.
func clean(line []byte) string {
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = escapeSequence().ReplaceAllLiteral(line, nil)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r == utf8.RuneError || printable(r):
			return r
		}
		return -1
	}, string(line))
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	if n < 1000 {
		return texts.Count(n, "byte")
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
