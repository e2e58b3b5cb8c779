//go:build linux

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// maxSpare is how many directories wait for a process at most.
const maxSpare = 4

// A scratch has private directories for processes, each of which finds its own empty. Some wait for the next one:
// making and removing a directory takes half as long as a small command.
type scratch struct {
	base string // where they are

	mu    sync.Mutex
	spare []string // those that wait
}

// take returns a directory that only this user can enter.
func (s *scratch) take() (dir string, err error) {
	s.mu.Lock()
	if n := len(s.spare); n > 0 {
		dir, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	s.mu.Unlock()
	if dir != "" {
		return dir, nil
	}
	if dir, err = os.MkdirTemp(s.base, ""); err != nil {
		return "", fmt.Errorf("making a scratch directory: %w", err)
	}
	return dir, nil
}

// leave clears a directory whose process is dead. One that cannot be cleared, or is one too many, is removed.
func (s *scratch) leave(dir string) {
	clean := clearDir(dir) == nil
	s.mu.Lock()
	if clean = clean && len(s.spare) < maxSpare; clean {
		s.spare = append(s.spare, dir)
	}
	s.mu.Unlock()
	if !clean {
		_ = os.RemoveAll(dir) // what stays is removed with the base directory
	}
}

func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return checkEmpty(dir)
}

// check returns an error if there is anything but directories that wait, and are empty.
func (s *scratch) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range s.spare {
		if err := checkEmpty(dir); err != nil {
			return err
		}
	}
	return checkEmpty(s.base, s.spare...)
}

// checkEmpty returns an error if there is anything in a directory but what is known.
func checkEmpty(dir string, known ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking into a scratch directory: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(known, filepath.Join(dir, e.Name())) {
			return errors.New("files of what has run are left")
		}
	}
	return nil
}

// diskUsed adds up the bytes of the files in dir, and the files. A file that vanishes meanwhile counts as nothing.
func diskUsed(dir string) (sum int64, files int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0
	}
	for _, e := range entries {
		if st, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil {
			sum += st.Size()
		}
	}
	return sum, len(entries)
}
