package sandbox

import (
	"bytes"
	"sync"
)

// StderrHeadMax is how many bytes of what a worker says are kept: the beginning, where the cause stands.
const StderrHeadMax = 4 << 10

// StderrHead keeps the beginning of what a worker, or what holds it, writes to standard error, for the error of a worker that
// is lost. It takes everything and never fails; its methods may be called concurrently.
type StderrHead struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements [io.Writer].
func (s *StderrHead) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(b[:min(len(b), StderrHeadMax-s.buf.Len())])
	return len(b), nil
}

// String returns what is kept, as text.
func (s *StderrHead) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.ToValidUTF8(bytes.TrimSpace(s.buf.Bytes()), []byte("?")))
}
