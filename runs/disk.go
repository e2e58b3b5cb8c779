package runs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
)

const (
	chunkSize     = 64 << 10
	segmentChunks = 1024
)

// disk stores chunks of bytes in files without names, so none remains however the process ends. Chunks are encrypted with
// a key that only this process has, so the rest of them on the medium is unreadable.
type disk struct {
	dir   string
	block cipher.Block
	spare sync.Pool // of *[chunkSize]byte

	mu       sync.Mutex // held also while a file is created, which is rare: waiting callers need that file
	segments []*segment // guarded by mu
	written  uint64     // chunks so far, guarded by mu
}

// segment is a file with room for segmentChunks chunks.
type segment struct {
	file *os.File
	free []int64 // offsets, guarded by the disk's mu
	used int     // guarded by the disk's mu
}

// chunk is chunkSize bytes of a segment. The counter of its encryption begins with number, which is never reused.
type chunk struct {
	in     *segment
	at     int64
	number uint64
}

func newDisk(dir string) *disk {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it does not fail
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has the right length
	}
	return &disk{dir: dir, block: block}
}

// take returns a free chunk.
func (d *disk) take() (chunk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.segments, func(s *segment) bool { return len(s.free) > 0 })
	if i < 0 {
		if err := d.grow(); err != nil {
			return chunk{}, err
		}
		i = len(d.segments) - 1
	}
	s := d.segments[i]
	at := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.used++
	d.written++
	return chunk{s, at, d.written}, nil
}

// grow adds a segment and unlinks its file at once.
func (d *disk) grow() error {
	f, err := os.CreateTemp(d.dir, "mcsh-runs-*")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return err
	}
	s := &segment{file: f}
	for i := segmentChunks - 1; i >= 0; i-- {
		s.free = append(s.free, int64(i)*chunkSize)
	}
	d.segments = append(d.segments, s)
	return nil
}

// give frees chunks. It returns the files without chunks in use, which the caller closes.
func (d *disk) give(chunks []chunk) (done []*os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range chunks {
		c.in.free = append(c.in.free, c.at)
		c.in.used--
	}
	d.segments = slices.DeleteFunc(d.segments, func(s *segment) bool {
		if s.used == 0 {
			done = append(done, s.file)
		}
		return s.used == 0
	})
	return done
}

// close closes all files. Later reads fail.
func (d *disk) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.segments {
		s.file.Close()
	}
}

// write writes p to the beginning of a chunk.
func (d *disk) write(c chunk, p []byte) error {
	buf, ok := d.spare.Get().(*[chunkSize]byte)
	if !ok {
		buf = new([chunkSize]byte)
	}
	defer d.spare.Put(buf)
	d.stream(c, 0).XORKeyStream(buf[:], p)
	_, err := c.in.file.WriteAt(buf[:len(p)], c.at)
	return err
}

// read reads len(p) bytes of a chunk, from off on.
func (d *disk) read(c chunk, p []byte, off int64) error {
	if _, err := c.in.file.ReadAt(p, c.at+off); err != nil {
		return fmt.Errorf("reading what a run produced: %w", err)
	}
	d.stream(c, off).XORKeyStream(p, p)
	return nil
}

// stream is the key stream of a chunk from off on.
func (d *disk) stream(c chunk, off int64) cipher.Stream {
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[:], c.number)
	binary.BigEndian.PutUint64(counter[8:], uint64(off/aes.BlockSize))
	s := cipher.NewCTR(d.block, counter[:])
	var skip [aes.BlockSize]byte
	s.XORKeyStream(skip[:off%aes.BlockSize], skip[:off%aes.BlockSize])
	return s
}
