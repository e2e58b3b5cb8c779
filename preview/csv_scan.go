package preview

import (
	"bufio"
	"errors"
	"io"
)

// csvReader reads fields of rows (RFC 4180; a quote within an unquoted field stands for itself). Its memory does not grow
// with the size of fields and rows.
type csvReader struct {
	r         *bufio.Reader
	separator byte
	field     []byte // at most maxToken bytes of the field
	size      int64
	spans     bool  // the row has a line feed in a field
	spanning  int64 // rows that have one
	open      bool  // the data has ended inside quotes
}

func newCSVReader(r *bufio.Reader, separator byte) *csvReader {
	return &csvReader{r: r, separator: separator, field: make([]byte, 0, maxToken)}
}

// row reads the next row that is not blank, gives its fields to use, and returns their number. After the last row it
// returns io.EOF.
func (c *csvReader) row(use func(i int, field []byte, size int64)) (n int, err error) {
	for more := true; more; n++ {
		more, err = c.next()
		switch {
		case err != nil && (n == 0 && c.size == 0 || !errors.Is(err, io.EOF)):
			return 0, err
		case n == 0 && c.size == 0 && !more: // a blank line
			n, more = -1, true
			continue
		}
		use(n, c.field, c.size)
	}
	if c.spans {
		c.spanning++
	}
	c.spans = false
	return n, nil
}

func (c *csvReader) put(b byte) {
	if len(c.field) < maxToken {
		c.field = append(c.field, b)
	}
	c.size++
}

// next reads one field and reports whether the row goes on.
func (c *csvReader) next() (more bool, err error) {
	c.field, c.size = c.field[:0], 0
	quoted := false
	for start := true; ; start = false {
		b, err := c.r.ReadByte()
		switch {
		case err != nil:
			c.open = c.open || quoted
			return false, err
		case quoted && b == '"':
			if quoted = c.doubled(); quoted {
				c.put('"')
			}
		case quoted:
			c.spans = c.spans || b == '\n'
			c.put(b)
		case b == '"' && start:
			quoted = true
		case b == c.separator:
			return true, nil
		case b == '\n':
			if n := len(c.field); n > 0 && c.field[n-1] == '\r' && int64(n) == c.size {
				c.field, c.size = c.field[:n-1], c.size-1
			}
			return false, nil
		default:
			c.put(b)
		}
	}
}

// doubled reports whether a second quote follows one within quotes, and reads it.
func (c *csvReader) doubled() bool {
	b, err := c.r.ReadByte()
	if err != nil {
		return false // the next read returns the error
	}
	if b == '"' {
		return true
	}
	_ = c.r.UnreadByte() // after a successful read it cannot fail
	return false
}
