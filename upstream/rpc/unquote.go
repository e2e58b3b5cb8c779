package rpc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// UnquoteLine returns a JSON string, which is valid, as text that ends with a newline unless it is empty. It writes over
// the string: text is never longer than its quoted form, whose last quote makes room for the newline. A result of 50 MB
// is not copied so.
func UnquoteLine(quoted []byte) []byte {
	if !utf8.Valid(quoted) {
		return endLine([]byte(Text(quoted))) // what is no UTF-8 becomes longer
	}
	to, from, end := 0, 1, len(quoted)-1
	for from < end {
		k := wordSize
		if from-to >= wordSize && from+wordSize <= end { // what is written has been read
			word := binary.LittleEndian.Uint64(quoted[from:])
			binary.LittleEndian.PutUint64(quoted[to:], word)
			k = firstSlash(word)
		} else {
			if k = bytes.IndexByte(quoted[from:end], '\\'); k < 0 {
				k = end - from
			}
			copy(quoted[to:], quoted[from:from+k])
		}
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
	return endLine(quoted[:to])
}

func endLine(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(text, '\n')
}

// firstSlash returns how many bytes of a word stand before its first backslash.
func firstSlash(word uint64) int { return bits.TrailingZeros64(firstEqual(word, '\\')) / 8 }

// plainEscapes are the characters behind a backslash, by what stands there.
var plainEscapes = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

// decodeEscape returns the character of the escape with four digits that b begins with, or with two of them, and their
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

// unit16 is the number of an escape with four digits.
func unit16(b []byte) rune {
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
