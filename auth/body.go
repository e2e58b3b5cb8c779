package auth

import (
	"io"
	"time"
)

// lately is how old an answer may be to who the sender of a request is when its body has come. The bodies of most come at
// once; a call that begins behind the end of its caller would not be cancelled with the others.
const lately = 10 * time.Millisecond

// body is that of a request that was let in before it had come. What comes late is nobody's any more if the token has gone
// or run out meanwhile: its reader gets the refusal in the place of the end.
type body struct {
	io.ReadCloser
	asked time.Time
	again func() *Refusal // asks once more; nil: the token is still good
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && time.Since(b.asked) > lately {
		if refusal := b.again(); refusal != nil {
			return n, refusal
		}
	}
	return n, err
}
