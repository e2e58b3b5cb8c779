package gateway

import (
	"strconv"
	"strings"
	"unicode"
)

// Plain escapes what servers put into names and descriptions to look like something else: control characters,
// commands for terminals, marks that turn the direction of text. White space stays within a line as it is; line breaks
// stay only where lines is set.
func Plain(text string, lines bool) string {
	clean := strings.IndexFunc(text, func(c rune) bool { return !keeps(c, lines) }) < 0
	if clean {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if keeps(c, lines) {
			b.WriteRune(c)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
	}
	return b.String()
}

func keeps(c rune, lines bool) bool {
	return unicode.IsPrint(c) || c == '\t' || lines && c == '\n'
}
