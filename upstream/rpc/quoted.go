package rpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// Valid is [json.Valid] for messages whose strings may have many megabytes: these are looked through here, eight bytes
// at a time, and the rest by encoding/json, which takes several times as long for a byte.
func Valid(b []byte) bool {
	var rest []byte // b with empty strings in the place of long ones
	kept := 0       // how much of b is in rest
	for i := 0; len(b)-i > longString; {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		start := i + j
		if i = checkString(b, start); i < 0 {
			return false // a quote begins a string, or stands where nothing may
		}
		if i-start > longString {
			rest = append(append(rest, b[kept:start]...), `""`...)
			kept = i
		}
	}
	if kept == 0 {
		return json.Valid(b)
	}
	return json.Valid(append(rest, b[kept:]...))
}

// longString is the length from which a string is worth being left out.
const longString = 4 << 10

// skipString returns the index after the string that starts at i, or -1 if it does not end.
func skipString(b []byte, i int) int { return afterString(b, i, false) }

// checkString is skipString for a string that must be valid. As with encoding/json, it need not be UTF-8.
func checkString(b []byte, i int) int { return afterString(b, i, true) }

// afterString reads words of eight bytes as long as all of their escapes are those of quotes and ends of lines, of which
// text in JSON is full, and has no branch for any of them.
func afterString(b []byte, i int, strict bool) int {
	i++
	escaped := uint64(0) // the first byte of the next word, if a backslash stands before it
	for i < len(b) {
		if i+wordSize <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quotes, slashes := equal(w, '"'), equal(w, '\\')
			behind := slashes<<8 | escaped
			odd := slashes & behind
			if strict {
				odd |= controls(w) | behind&^(quotes|equal(w, 'n'))
			}
			if odd == 0 {
				if end := quotes &^ behind; end != 0 {
					return i + bits.TrailingZeros64(end)/8 + 1
				}
				escaped = slashes >> 56
				i += wordSize
				continue
			}
			if escaped == 0 {
				i += bits.TrailingZeros64(quotes|slashes|controls(w)) / 8
			}
		}
		if escaped != 0 {
			i, escaped = i-1, 0
		}
		if b[i] == '"' {
			return i + 1
		}
		n := charLength(b[i:], strict)
		if n == 0 {
			return -1
		}
		i += n
	}
	return -1
}

// charLength returns how many bytes of a string stand for its first one, 0 if it may not be there.
func charLength(b []byte, strict bool) int {
	switch {
	case b[0] == '\\' && strict:
		return escape(b)
	case b[0] == '\\':
		return 2
	case b[0] < ' ' && strict:
		return 0
	}
	return 1
}

// escape returns the length of the escape that b begins with, 0 if it is none.
func escape(b []byte) int {
	switch {
	case len(b) < 2:
		return 0
	case b[1] != 'u':
		if bytes.IndexByte([]byte(`"\/bfnrt`), b[1]) < 0 {
			return 0
		}
		return 2
	case len(b) < 6:
		return 0
	}
	for _, c := range b[2:6] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0
		}
	}
	return 6
}

// wordSize is how many bytes are looked at together.
const wordSize = 8

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// equal sets the top bits of the bytes of w that are c.
func equal(w uint64, c byte) uint64 {
	w ^= uint64(c) * eachByte
	return ^(w&^topBits + ^uint64(topBits) | w) & topBits
}

// firstEqual is equal for the first of those bytes, and none where there is no such byte; it takes less. Above the first it
// may be wrong: bytes borrow there.
func firstEqual(w uint64, c byte) uint64 {
	w ^= uint64(c) * eachByte
	return (w - eachByte) &^ w & topBits
}

// controls sets the top bit of the first byte of w that is a control character, and none where there is no such byte.
// Above the first it may be wrong, likewise.
func controls(w uint64) uint64 { return (w - ' '*eachByte) &^ w & topBits }
