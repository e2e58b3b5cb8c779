package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// directoryName is that of the control directory in the state directory.
const directoryName = "control"

// Ends of names in the directory, after the id of a gateway.
const (
	newEnd    = ".new" // of a socket until it is ready
	socketEnd = ".sock"
	lockEnd   = ".lock"
)

// claimWait bounds the wait for the lock of a new id, which others take for a moment when they look at it.
const claimWait = 10 * time.Second

// maxAddress is the longest address of a Unix socket on the systems that have the shortest.
const maxAddress = 103

// A directory holds the sockets of a user's gateways. It is open, and was checked.
type directory struct {
	path string
	root *os.Root
	file *os.File
}

// openDirectory opens and checks the directory in a state directory.
func openDirectory(state string) (*directory, error) {
	path := filepath.Join(state, directoryName)
	at, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if at.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a link, which could lead to a directory of somebody else", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path, root: root}
	if d.file, err = root.Open("."); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	info, err := d.file.Stat()
	if err == nil {
		err = private(path, info)
	}
	if err == nil && !os.SameFile(at, info) {
		err = fmt.Errorf("%s was replaced while it was opened", path)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// private returns an error for a file that others own or may use.
func private(path string, info fs.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch mode := info.Mode().Perm(); {
	case int(owner) != os.Geteuid():
		return failed(0, "", "%s belongs to user %d, and this is user %d", path, owner, os.Geteuid())
	case mode&0o077 != 0:
		return failed(0, "", "%s is open to others (mode %04o): chmod go= %s", path, mode, path)
	}
	return nil
}

// Close closes the directory.
func (d *directory) Close() error { return errors.Join(d.file.Close(), d.root.Close()) }

// address returns the address of a socket in the directory.
func (d *directory) address(socket string) (string, error) {
	open := filepath.Join("/proc/self/fd", strconv.Itoa(int(d.file.Fd())))
	if through, err := os.Stat(open); err == nil {
		if info, err := d.file.Stat(); err == nil && os.SameFile(info, through) {
			return filepath.Join(open, socket), nil
		}
	}
	path := filepath.Join(d.path, socket)
	if len(path) > maxAddress {
		return "", fmt.Errorf("the path of the socket %s has %d bytes, and %d is the most here: name a shorter state directory",
			path, len(path), maxAddress)
	}
	return path, nil
}

// claim makes the lock of an id and takes it. It belongs to the caller until it is closed. Others may find the lock before
// it is taken, and remove it as that of a dead gateway: then claim makes another one.
func (d *directory) claim(id string) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), claimWait, fmt.Errorf("another process has the lock of %s", id))
	defer cancel()
	return flock.Acquire(ctx, func() (*os.File, error) {
		return d.root.OpenFile(id+lockEnd, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	}, d.lockOf(id))
}

// lockOf returns a function that describes the lock of an id.
func (d *directory) lockOf(id string) func() (fs.FileInfo, error) {
	return func() (fs.FileInfo, error) { return d.root.Lstat(id + lockEnd) }
}

// remove removes the files of an id, whose lock the caller owns. The lock comes last: a socket never stands without it.
func (d *directory) remove(id string) error {
	for _, end := range []string{newEnd, socketEnd, lockEnd} {
		if err := d.root.Remove(id + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ended reports whether the gateway with an id in a state directory has ended.
func ended(state, id string) bool {
	dir, err := openDirectory(state)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close()
	lives, err := dir.lives(id)
	return !lives && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// living returns the ids of the gateways that live, and removes what the others have left.
func (d *directory) living() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	var errs []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), lockEnd)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		switch lives, err := d.lives(id); {
		case err != nil && !errors.Is(err, fs.ErrNotExist): // it may have ended by now
			errs = append(errs, err)
		case lives:
			ids = append(ids, id)
		}
	}
	return ids, errors.Join(errs...)
}

// lives reports whether the process that made a lock lives. If it does not, its files are removed.
func (d *directory) lives(id string) (bool, error) {
	f, err := d.root.OpenFile(id+lockEnd, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if taken, err := flock.Try(f); err != nil || !taken {
		return err == nil, err
	}
	if own, err := flock.Named(f, d.lockOf(id)); err != nil || !own {
		return false, err
	}
	return false, d.remove(id)
}
