package texts

import (
	"strconv"
	"strings"
	"unicode"
)

// Plain escapes the characters with which a server's text could pose as another text: control characters, terminal commands,
// direction marks. Invalid UTF-8 becomes U+FFFD. White space within a line stays; line breaks stay only if lines is set.
func Plain(text string, lines bool) string {
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\uFFFD") {
		if keeps(c, lines) {
			b.WriteRune(c)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
	}
	return b.String()
}

func keeps(c rune, lines bool) bool {
	return unicode.IsPrint(c) || unicode.Is(unicode.Zs, c) || c == '\t' || lines && c == '\n'
}
