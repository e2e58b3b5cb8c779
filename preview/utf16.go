package preview

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// utf16Encoding returns the encoding of UTF-16 data, which has a byte order mark or ASCII characters with zeros between
// them, and nil for other data. Its decoder makes U+FFFD of half a surrogate pair and of half a character at the end.
func utf16Encoding(head []byte) encoding.Encoding {
	little, big := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	if len(head) < 4 {
		return nil
	}
	switch [2]byte(head) {
	case [2]byte{0xff, 0xfe}:
		return little
	case [2]byte{0xfe, 0xff}:
		return big
	}
	var zeros [2]int
	part := head[:min(len(head), 200)&^1]
	for i, b := range part {
		if b == 0 {
			zeros[i%2]++
		} else if b >= utf8.RuneSelf {
			return nil
		}
	}
	switch zeros {
	case [2]int{0, len(part) / 2}:
		return little
	case [2]int{len(part) / 2, 0}:
		return big
	}
	return nil
}
