package stages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
)

// A Spool keeps bytes until they are wanted: the first of them in memory, the rest in a file that has no name. The
// zero value is not usable; see [NewSpool]. It is not safe for concurrent use.
type Spool struct {
	head int64
	dir  string
	mem  bytes.Buffer
	file *os.File
	size int64
}

// NewSpool returns an empty spool that keeps head bytes in memory and the rest in dir, or in the system's temporary
// directory if dir is empty.
func NewSpool(head int64, dir string) *Spool {
	return &Spool{head: head, dir: dir}
}

// Write appends p. When the disk is full the error is LIMIT_EXCEEDED.
func (s *Spool) Write(p []byte) (int, error) {
	if s.file == nil {
		if int64(s.mem.Len()+len(p)) <= s.head {
			s.size += int64(len(p))
			return s.mem.Write(p)
		}
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, diskError(err)
}

// open makes the file and unlinks it at once, so that nothing is left behind however the process ends.
func (s *Spool) open() error {
	f, err := os.CreateTemp(s.dir, "mcsh-spool-*")
	if err != nil {
		return diskError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return diskError(err)
	}
	s.file = f
	return nil
}

// Size returns the number of bytes written.
func (s *Spool) Size() int64 { return s.size }

// Reader returns a reader of everything written so far, from the beginning. Several may be used one after another.
func (s *Spool) Reader() io.Reader {
	mem := bytes.NewReader(s.mem.Bytes())
	if s.file == nil {
		return mem
	}
	return io.MultiReader(mem, io.NewSectionReader(s.file, 0, s.size-int64(s.mem.Len())))
}

// Close frees memory and file. It may be called more than once.
func (s *Spool) Close() error {
	s.mem = bytes.Buffer{}
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Errorf(LimitExceeded, "free space in the temporary directory, or reduce the data earlier in the pipeline",
			"the disk is full: %w", err)
	}
	return err
}
