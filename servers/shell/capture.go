package shell

import (
	"fmt"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A capture keeps the beginning and the end of what is written to it, each half of max.
type capture struct {
	max        int
	head, tail []byte
	total      int64
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	take := min(n, c.max-c.max/2-len(c.head))
	c.head = append(c.head, p[:take]...)
	half := c.max / 2
	p = p[max(take, n-half):]
	if c.tail = append(c.tail, p...); len(c.tail) > 2*half {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-half:]...)
	}
	return n, nil
}

// end returns what is kept of the end.
func (c *capture) end() []byte { return c.tail[max(0, len(c.tail)-c.max/2):] }

// omitted returns the number of bytes that are not kept.
func (c *capture) omitted() int64 { return c.total - int64(len(c.head)+len(c.end())) }

// add appends what another capture was given. If both keep as much, what the other has not kept lies between the halves of c, too.
func (c *capture) add(other *capture) {
	_, _ = c.Write(other.head) // never fails
	c.total += other.omitted()
	_, _ = c.Write(other.end()) // never fails
}

// text returns what is kept, with a line in place of what is not.
func (c *capture) text() string {
	text := append([]byte{}, c.head...)
	if n := c.omitted(); n > 0 {
		text = fmt.Appendf(text, "\n[... %d bytes left out ...]\n", n)
	}
	valid, _ := texts.Valid(append(text, c.end()...))
	return valid
}
