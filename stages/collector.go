package stages

import (
	"bytes"
	"encoding/json"
	"io"
)

// collector writes results as one JSON array or as lines.
type collector struct {
	out  io.Writer
	form form
	n    int
	buf  []byte
	open bool // raw results so far do not end with a line
}

// add writes one result. Each write is whole, so that a reader sees an element as soon as it is there.
func (c *collector) add(s *slot) error {
	result := s.out.buf.Bytes()
	if c.form.raw && !s.value {
		if len(result) > 0 {
			c.open = !bytes.HasSuffix(result, []byte("\n"))
		}
		_, err := c.out.Write(result)
		return err
	}
	c.buf = c.buf[:0]
	if c.open {
		c.buf, c.open = append(c.buf, '\n'), false
	}
	if s.value {
		c.append(result)
	} else {
		for _, v := range values(result) {
			c.append(v)
		}
	}
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.out.Write(c.buf)
	return err
}

func (c *collector) append(v json.RawMessage) {
	switch {
	case c.form.lines:
		c.buf = append(append(c.buf, oneLine(v)...), '\n')
	case c.n == 0:
		c.buf = append(append(c.buf, '['), v...)
	default:
		c.buf = append(append(c.buf, ',', '\n'), v...)
	}
	c.n++
}

// end closes the array.
func (c *collector) end() error {
	end := "]\n"
	switch {
	case c.form.lines:
		return nil
	case c.n == 0:
		end = "[]\n"
	}
	_, err := io.WriteString(c.out, end)
	return err
}
