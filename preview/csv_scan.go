package preview

import (
	"bufio"
	"errors"
	"io"
)

// csvEnd tells how a field ends.
type csvEnd uint8

const (
	csvDone  csvEnd = iota // there was no field
	csvField               // more fields of the row follow
	csvRow
)

// csvReader reads one field after another (RFC 4180; a quote within an unquoted field stands for itself). Its memory
// does not grow with the size of fields.
type csvReader struct {
	r         *bufio.Reader
	separator byte
	field     []byte // at most maxToken bytes of the field
	size      int64
	inside    bool // the row has begun
	spans     bool // the row has a line feed in a field
	open      bool // the data has ended inside quotes
}

func newCSVReader(r *bufio.Reader, separator byte) *csvReader {
	return &csvReader{r: r, separator: separator, field: make([]byte, 0, maxToken)}
}

func (c *csvReader) put(b byte) {
	if len(c.field) < maxToken {
		c.field = append(c.field, b)
	}
	c.size++
}

// next reads one field. At the end of the data it returns the unfinished one.
func (c *csvReader) next() (csvEnd, error) {
	c.field, c.size = c.field[:0], 0
	quoted := false
	for start := true; ; start = false {
		b, err := c.r.ReadByte()
		switch {
		case err != nil:
			return c.end(quoted, err)
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
			c.inside = true
			return csvField, nil
		case b == '\n':
			if n := len(c.field); n > 0 && c.field[n-1] == '\r' && int64(n) == c.size {
				c.field, c.size = c.field[:n-1], c.size-1
			}
			c.inside = false
			return csvRow, nil
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

func (c *csvReader) end(quoted bool, err error) (csvEnd, error) {
	if !errors.Is(err, io.EOF) {
		return csvDone, err
	}
	c.open = c.open || quoted
	if c.size == 0 && !c.inside && !quoted {
		return csvDone, nil
	}
	c.inside = false
	return csvRow, nil
}
