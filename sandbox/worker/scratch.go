//go:build linux

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// scratch hands out private directories.
type scratch struct {
	mu   sync.Mutex
	base string // where they are made
	own  bool   // base was made here
}

// make returns a new directory that only this user can enter.
func (s *scratch) make() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == "" {
		dir, err := os.MkdirTemp("", "mcsh-worker-")
		if err != nil {
			return "", fmt.Errorf("making a scratch directory: %w", err)
		}
		s.base, s.own = dir, true
	}
	dir, err := os.MkdirTemp(s.base, "")
	if err != nil {
		return "", fmt.Errorf("making a scratch directory: %w", err)
	}
	return dir, nil
}

// remove ends everything that was made here.
func (s *scratch) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own {
		_ = os.RemoveAll(s.base) // nobody is left to tell
	}
}

// diskUsed adds up the files in dir. A file that vanishes meanwhile counts as nothing.
func diskUsed(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var sum int64
	for _, e := range entries {
		if st, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil {
			sum += st.Size()
		}
	}
	return sum
}
