package gateway

import (
	"strconv"
	"strings"
	"unicode"
)

// fence begins each line that quotes a tool, a server, a command or data, so that no reader takes it for the gateway's.
const fence = "  | "

// lineEnds are the characters that some readers take for the end of a line.
const lineEnds = "\n\v\f\r\u0085\u2028\u2029"

// Fenced puts each line of a foreign text behind the fence.
func Fenced(text string) string { return fence + fencedRest(text) }

// fencedRest fences all lines but the first, which follows words of ours.
func fencedRest(text string) string {
	lines := strings.Map(func(c rune) rune {
		if strings.ContainsRune(lineEnds, c) {
			return '\n'
		}
		return c
	}, strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.ReplaceAll(lines, "\n", "\n"+fence) + "\n"
}

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
	return unicode.IsPrint(c) || c == '\t' || lines && c == '\n'
}
