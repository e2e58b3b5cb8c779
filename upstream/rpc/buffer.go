package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

const (
	fileFrom = 1 << 20  // bytes of a message; a longer one is collected in a file
	headSize = 16 << 10 // bytes of a long message that stay in memory

	// collectFrom is the size of a message before which unused memory is freed, in bytes: else the message would take
	// memory beside the last one of that size.
	collectFrom = 8 << 20
)

// A Buffer collects a message of unknown length. A long one goes to a file without a name until it is complete, so that
// it takes memory once, and no more than its size: a buffer that grows leaves twice that behind. All of it counts as
// memory from the beginning, in the file too, which bounds the disk. If no file can be made, it grows in memory. The
// zero value collects without counting. It is not safe for concurrent use.
type Buffer struct {
	lease   *memory.Lease
	counted int64 // bytes taken from lease
	mem     []byte
	file    *os.File
	filed   int  // bytes in file
	inMem   bool // no file can be made
}

// NewBuffer returns an empty buffer that counts its bytes in lease.
func NewBuffer(lease *memory.Lease) Buffer { return Buffer{lease: lease} }

// Len is how many bytes were added.
func (b *Buffer) Len() int { return len(b.mem) + b.filed }

// Counted is how many bytes the buffer has taken from its lease.
func (b *Buffer) Counted() int64 { return b.counted }

// Write adds a part. Its error is a [*memory.Full], or that of a file that cannot be read back. After an error nothing may
// be added, Bytes may not be called, and the buffer must be closed; Len and Head still work.
func (b *Buffer) Write(part []byte) (int, error) {
	if b.file == nil && !b.inMem && len(b.mem)+len(part) > fileFrom {
		b.open()
	}
	if b.file == nil {
		return len(part), b.grow(part)
	}
	if err := b.count(int64(len(part))); err != nil {
		return 0, err
	}
	n, err := b.file.Write(part)
	if b.filed += n; err == nil {
		return n, nil
	}
	_ = b.count(-int64(len(part) - n))
	return len(part), b.toMemory(part[n:]) // the disk is full
}

// grow adds a part in memory.
func (b *Buffer) grow(part []byte) error {
	if had, need := cap(b.mem), len(b.mem)+len(part); need > had {
		if need = max(need, 2*had); !b.inMem {
			need = min(need, fileFrom) // the rest goes to the file
		}
		if err := b.count(int64(need)); err != nil {
			return err
		}
		b.mem = append(make([]byte, 0, need), b.mem...)
		_ = b.count(-int64(had))
	}
	b.mem = append(b.mem, part...)
	return nil
}

func (b *Buffer) count(n int64) error {
	err := b.lease.Grow(n)
	if err == nil {
		b.counted += n
	}
	return err
}

// open makes the file, unlinks it at once, so that no file remains however the process ends, and moves the bytes in
// memory there, except the head.
func (b *Buffer) open() {
	b.inMem = true
	f, err := os.CreateTemp("", "mcsh-message-*")
	if err != nil {
		return
	}
	head := bytes.Clone(b.mem[:min(len(b.mem), headSize)])
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(b.mem[len(head):])
	}
	if err != nil {
		f.Close()
		return
	}
	b.file, b.filed, b.inMem = f, len(b.mem)-len(head), false
	_ = b.count(int64(b.filed + cap(head) - cap(b.mem))) // less than before
	b.mem = head
}

// toMemory moves the content of the file to memory, and adds a part.
func (b *Buffer) toMemory(part []byte) error {
	whole, err := b.Bytes()
	if err != nil {
		return err
	}
	b.mem, b.inMem = whole, true
	return b.grow(part)
}

// Head is the beginning of the message, at most n bytes. n may be up to 16 KiB.
func (b *Buffer) Head(n int) []byte { return b.mem[:min(len(b.mem), n)] }

// Bytes returns the message, which the caller owns, and empties the buffer. It may be called once.
func (b *Buffer) Bytes() ([]byte, error) {
	if b.file == nil {
		return b.mem, nil
	}
	defer b.Close()
	n := b.Len()
	if n > collectFrom {
		b.lease.Collect()
	}
	whole := append(make([]byte, 0, n), b.mem...)
	if _, err := io.ReadFull(io.NewSectionReader(b.file, 0, int64(b.filed)), whole[len(whole):n]); err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // agents need not see paths of the host
		}
		return nil, fmt.Errorf("reading a message of %d bytes from its temporary file: %w", n, err)
	}
	_ = b.count(int64(len(b.mem) - cap(b.mem)))
	b.mem, b.filed = nil, 0
	return whole[:n], nil
}

// Close closes the file. It may be called more than once.
func (b *Buffer) Close() {
	if b.file != nil {
		b.file.Close()
		b.file = nil
	}
}
