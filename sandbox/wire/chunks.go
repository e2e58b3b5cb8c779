package wire

import (
	"encoding/binary"
	"io"
)

const (
	chunkHeader = 4
	maxChunk    = 64 << 10
)

// A ChunkWriter writes streams one after another to one connection, in chunks, see the package's "Chunks".
type ChunkWriter struct {
	w   io.Writer
	buf []byte
}

// NewChunkWriter returns a writer to w.
func NewChunkWriter(w io.Writer) *ChunkWriter {
	return &ChunkWriter{w, make([]byte, chunkHeader+maxChunk)}
}

// Write writes a part of the present stream.
func (c *ChunkWriter) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		n := copy(c.buf[chunkHeader:], p[sent:])
		if err := c.send(n); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// End ends the present stream. The next Write begins another one.
func (c *ChunkWriter) End() error { return c.send(0) }

// send writes a chunk at once: what passes it on would pass on its length alone.
func (c *ChunkWriter) send(n int) error {
	binary.BigEndian.PutUint32(c.buf, uint32(n))
	_, err := c.w.Write(c.buf[:chunkHeader+n])
	return err
}

// A ChunkReader reads what a [ChunkWriter] has written.
type ChunkReader struct {
	r    io.Reader
	left int // bytes of the chunk that were not read yet
}

// NewChunkReader returns a reader of r, which should be buffered.
func NewChunkReader(r io.Reader) *ChunkReader { return &ChunkReader{r: r} }

// Read reads from the present stream. io.EOF is its end, after which the next one begins; the end of the connection is
// another error.
func (c *ChunkReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		var header [chunkHeader]byte
		if _, err := io.ReadFull(c.r, header[:]); err != nil {
			return 0, NoEOF(err)
		}
		length := binary.BigEndian.Uint32(header[:])
		if length == 0 {
			return 0, io.EOF
		}
		if length > maxChunk {
			return 0, protocolError("a chunk of %d bytes", length)
		}
		c.left = int(length)
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, NoEOF(err)
}
