//go:build linux

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// scratch is the directory in which private ones are made.
type scratch string

// make returns a new directory that only this user can enter.
func (s scratch) make() (string, error) {
	dir, err := os.MkdirTemp(string(s), "")
	if err != nil {
		return "", fmt.Errorf("making a scratch directory: %w", err)
	}
	return dir, nil
}

// checkEmpty returns an error if anything is left that is not known.
func (s scratch) checkEmpty(known map[string]bool) error {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return fmt.Errorf("looking into the scratch directory: %w", err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
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
