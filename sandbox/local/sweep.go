//go:build linux

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratchName begins the names of scratch directories.
const scratchName = "mcsh-worker-"

// scratchTries bounds how often a new scratch directory may be swept away by another process before it is locked.
const scratchTries = 10

// A claim is a scratch directory that is in use: this process holds a lock on it, which ends with the process however
// that ends. So a sweep can tell the directory of a killed process from one in use.
type claim struct {
	dir  string
	lock *os.File
}

// makeScratch makes a scratch directory in base and claims it.
func makeScratch(base string) (*claim, error) {
	for range scratchTries {
		dir, err := os.MkdirTemp(base, scratchName)
		if err != nil {
			return nil, fmt.Errorf("making the worker's scratch directory: %w", err)
		}
		if c := lock(dir); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("making the worker's scratch directory: another process removes what is made in %s", base)
}

// lock claims a directory, unless it is another's or gone.
func lock(dir string) *claim {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil && isStill(dir, f) {
		return &claim{dir, f}
	}
	f.Close()
	return nil
}

// isStill says whether f is what dir names. Somebody may have removed it before it was locked.
func isStill(dir string, f *os.File) bool {
	there, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(here, there)
}

// release removes the directory and then gives up the claim.
func (c *claim) release() {
	_ = os.RemoveAll(c.dir) // what stays is swept by the next gateway
	c.lock.Close()
}

// sweep removes the scratch directories in base that gateways of this user have left when they were killed.
func sweep(base string) {
	if base == "" {
		base = os.TempDir()
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return // what cannot be listed cannot be swept; making a directory there will tell
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchName) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || int(st.Uid) != os.Getuid() {
			continue
		}
		if c := lock(dir); c != nil {
			c.release()
		}
	}
}
