package upstream

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// unquoteLine returns a JSON string, which is valid, as text that ends with a newline unless it is empty. It writes over
// the string: text is never longer than its quoted form, whose last quote makes room for the newline. A result of 50 MB
// is not copied so.
func unquoteLine(quoted []byte) []byte {
	if !utf8.Valid(quoted) {
		return line(rpc.Text(quoted)) // what is no UTF-8 becomes longer
	}
	rest := quoted[1 : len(quoted)-1]
	out := quoted[:0]
	for {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			break
		}
		out = append(out, rest[:i]...)
		var char rune
		char, rest = escaped(rest[i:])
		out = utf8.AppendRune(out, char)
	}
	out = append(out, rest...)
	if len(out) == 0 || out[len(out)-1] == '\n' {
		return out
	}
	return append(out, '\n')
}

// escapes are the characters behind a backslash.
var escapes = map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

// escaped returns the character of the escape that b begins with, and what follows it. Half of a surrogate pair is the
// replacement character.
func escaped(b []byte) (rune, []byte) {
	if b[1] != 'u' {
		return escapes[b[1]], b[2:]
	}
	char := unit16(b)
	if !utf16.IsSurrogate(char) {
		return char, b[6:]
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(char, unit16(b[6:])); pair != utf8.RuneError {
			return pair, b[12:]
		}
	}
	return utf8.RuneError, b[6:]
}

// unit16 is the number of an escape with four digits.
func unit16(b []byte) rune {
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
