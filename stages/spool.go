package stages

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A spool keeps bytes until they are wanted: the first of them in memory, the rest in a file that has no name. All
// spools of a run share a limit. Bytes that find no room in the memory of the process go to the file as well. It is not safe
// for concurrent use.
type spool struct {
	r    *Run
	mem  bytes.Buffer
	file *os.File
	size int64
}

func (r *Run) newSpool() *spool { return &spool{r: r} }

// Write appends p. When the run has spooled too much, or the disk is full, the error is LIMIT_EXCEEDED.
func (s *spool) Write(p []byte) (int, error) {
	limits := s.r.deps.Limits
	if s.r.spooled.Add(int64(len(p))) > limits.Spool {
		s.r.spooled.Add(-int64(len(p)))
		return 0, ofRun(OverLimit("spool", "reduce the data before the stage that has to wait for all of it",
			"the data that waits for a later stage is more than %s", texts.Bytes(limits.Spool)))
	}
	if s.file == nil {
		if int64(s.mem.Len()+len(p)) <= limits.SpoolHead && s.r.spools.Grow(int64(len(p))) == nil {
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
func (s *spool) open() error {
	f, err := os.CreateTemp(s.r.deps.Limits.SpoolDir, "mcsh-spool-*")
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

// Reader returns a reader of everything written so far, from the beginning. Several may be used one after another.
func (s *spool) Reader() io.Reader {
	mem := bytes.NewReader(s.mem.Bytes())
	if s.file == nil {
		return mem
	}
	return io.MultiReader(mem, io.NewSectionReader(s.file, 0, s.size-int64(s.mem.Len())))
}

// Close frees memory and file. It may be called more than once.
func (s *spool) Close() error {
	s.r.spooled.Add(-s.size)
	_ = s.r.spools.Grow(-int64(s.mem.Len()))
	s.mem, s.size = bytes.Buffer{}, 0
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

func diskError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the path is the host's, and nothing to agents
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return ofRun(Errorf(LimitExceeded, "free space in the temporary directory, or reduce the data earlier in the pipeline",
			"the disk for temporary files is full"))
	}
	return err
}
