package rpc

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a valid JSON string. It overwrites the string: text is never longer than its quoted form.
// So a result of 50 MB is not copied.
func Unquote(quoted []byte) []byte {
	if !utf8.Valid(quoted) {
		return []byte(Text(quoted)) // invalid UTF-8 becomes longer
	}
	to, from, end := 0, 1, len(quoted)-1
	for from < end {
		k := bytes.IndexByte(quoted[from:end], '\\')
		if k < 0 {
			k = end - from
		}
		copy(quoted[to:], quoted[from:from+k])
		to, from = to+k, from+k
		if from == end || quoted[from] != '\\' {
			continue
		}
		if plain := plainEscapes[quoted[from+1]]; plain != 0 {
			quoted[to] = plain
			to, from = to+1, from+2
			continue
		}
		char, n := decodeEscape(quoted[from:])
		to, from = len(utf8.AppendRune(quoted[:to], char)), from+n
	}
	return quoted[:to]
}

// plainEscapes maps the character after a backslash to the one that it stands for.
var plainEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

// decodeEscape returns the character of the escape, or pair of escapes, with four digits at the beginning of b, and its
// length. Half of a surrogate pair is the replacement character.
func decodeEscape(b []byte) (rune, int) {
	char := unit16(b)
	if !utf16.IsSurrogate(char) {
		return char, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(char, unit16(b[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

// unit16 is the number in an escape with four digits.
func unit16(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 32) // they are hexadecimal: the string is valid
	return rune(n)
}
