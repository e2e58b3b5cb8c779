package main

import (
	"bytes"
	"fmt"
	"io"
)

// blockSize is how much of a stream differs; then it repeats.
const blockSize = 4 << 20

// records makes a block of JSON lines.
func records(size int64) []byte {
	levels := []string{"info", "warn", "error", "debug"}
	var b bytes.Buffer
	for i := 0; int64(b.Len()) < min(size, blockSize); i++ {
		fmt.Fprintf(&b, `{"id":%d,"level":"%s","user":"user%d","ms":%d,"path":"/api/v1/items/%d","at":"2026-05-01T03:%02d:%02dZ"}`+"\n",
			i, levels[i%len(levels)], i*7%1000, i*13%997, i*31%5000, i/60%60, i%60)
	}
	return b.Bytes()
}

// A feed is a stream of JSON that is never held as a whole.
type feed struct {
	block      []byte
	head, tail string
	blocks     int64
	size       int64
}

// newFeed makes a feed of at least size bytes: JSON lines, or one array.
func newFeed(size int64, array bool) feed {
	f := feed{block: records(size)}
	f.blocks = (size + int64(len(f.block)) - 1) / int64(len(f.block))
	if array {
		f.block = bytes.ReplaceAll(f.block, []byte("}\n"), []byte("},\n"))
		f.head, f.tail = "[", `{"id":-1}]`
	}
	f.size = int64(len(f.head)+len(f.tail)) + f.blocks*int64(len(f.block))
	return f
}

// reader returns the stream from its beginning.
func (f feed) reader() io.Reader {
	list := []io.Reader{bytes.NewReader([]byte(f.head))}
	for range f.blocks {
		list = append(list, bytes.NewReader(f.block))
	}
	return io.MultiReader(append(list, bytes.NewReader([]byte(f.tail)))...)
}
