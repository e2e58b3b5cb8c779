package preview

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Order returns the byte order of UTF-16, nil if the data is none: a byte order mark, or ASCII characters with
// zeros between them.
func utf16Order(head []byte) binary.ByteOrder {
	if len(head) < 4 {
		return nil
	}
	switch [2]byte(head) {
	case [2]byte{0xff, 0xfe}:
		return binary.LittleEndian
	case [2]byte{0xfe, 0xff}:
		return binary.BigEndian
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
	switch half := len(part) / 2; {
	case zeros[1] == half && zeros[0] == 0:
		return binary.LittleEndian
	case zeros[0] == half && zeros[1] == 0:
		return binary.BigEndian
	}
	return nil
}

// utf16Reader reads UTF-16 as UTF-8. Halves of pairs become U+FFFD, and so does half a character at the end.
type utf16Reader struct {
	src   *bufio.Reader
	order binary.ByteOrder
	begun bool
	rest  []byte
	buf   [utf8.UTFMax]byte
}

func newUTF16Reader(src io.Reader, order binary.ByteOrder) *utf16Reader {
	return &utf16Reader{src: bufio.NewReader(src), order: order}
}

// Read reads at least one character.
func (u *utf16Reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(u.rest) == 0 {
			if n > 0 && u.src.Buffered() < 4 {
				return n, nil
			}
			r, err := u.next()
			if err != nil {
				return n, err
			}
			u.rest = utf8.AppendRune(u.buf[:0], r)
		}
		c := copy(p[n:], u.rest)
		u.rest, n = u.rest[c:], n+c
	}
	return n, nil
}

func (u *utf16Reader) next() (rune, error) {
	unit, err := u.unit()
	if err != nil {
		return 0, err
	}
	if !u.begun {
		u.begun = true
		if unit == 0xfeff {
			return u.next()
		}
	}
	if !utf16.IsSurrogate(unit) {
		return unit, nil
	}
	if low, _ := u.src.Peek(2); len(low) == 2 {
		if r := utf16.DecodeRune(unit, rune(u.order.Uint16(low))); r != utf8.RuneError {
			_, err := u.src.Discard(2)
			return r, err
		}
	}
	return utf8.RuneError, nil
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	n, err := io.ReadFull(u.src, b[:])
	if n == 1 {
		return utf8.RuneError, nil // the next read says why
	}
	if err != nil {
		return 0, err
	}
	return rune(u.order.Uint16(b[:])), nil
}
