package stages

import (
	"bytes"
	"encoding/json"
	"io"
)

// collector writes the results of items.
type collector struct {
	form form
	list valueList
	open bool // raw results so far do not end with a line
}

// add writes one result, at the latest with the next flush of the list.
func (c *collector) add(s *slot) error {
	result := s.out.buf.Bytes()
	if c.form.raw && !s.value {
		if len(result) > 0 {
			c.open = !bytes.HasSuffix(result, []byte("\n"))
		}
		return c.list.write(result)
	}
	if c.open {
		c.list.buf, c.open = append(c.list.buf, '\n'), false
	}
	if s.value {
		return c.list.add(result)
	}
	for _, v := range values(result) {
		if err := c.list.add(v); err != nil {
			return err
		}
	}
	return nil
}

// valueList writes values as one JSON array or as lines. A value is written at the latest with the next flush.
type valueList struct {
	out   io.Writer
	lines bool
	n     int64
	buf   []byte
}

// listChunk is how much is written at a time.
const listChunk = 32 << 10

func (l *valueList) add(v json.RawMessage) error {
	switch {
	case l.lines:
		l.buf = append(append(l.buf, oneLine(v)...), '\n')
	case l.n == 0:
		l.buf = append(append(l.buf, '['), v...)
	default:
		l.buf = append(append(l.buf, ',', '\n'), v...)
	}
	l.n++
	if len(l.buf) >= listChunk {
		return l.flush()
	}
	return nil
}

// write adds bytes as they are. Many are not copied.
func (l *valueList) write(p []byte) error {
	if len(l.buf)+len(p) >= listChunk {
		if err := l.flush(); err != nil {
			return err
		}
	}
	if len(p) >= listChunk {
		_, err := l.out.Write(p)
		return err
	}
	l.buf = append(l.buf, p...)
	return nil
}

func (l *valueList) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	_, err := l.out.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// end closes the array.
func (l *valueList) end() error {
	if !l.lines {
		if l.n == 0 {
			l.buf = append(l.buf, '[')
		}
		l.buf = append(l.buf, "]\n"...)
	}
	return l.flush()
}
