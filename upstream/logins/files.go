package logins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// Permissions of other users, who may have none.
const others = 0o077

// checkOwn refuses a file or directory that other users own or can use.
func checkOwn(path string, info fs.FileInfo) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (id %d): remove it, or name another directory with --state", path, s.Uid)
	}
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("%s can be used by others (mode %#o): take their permissions away with chmod go= %s, and sign in again if others may have read it", path, mode, path)
	}
	return nil
}

// makeDir makes a directory, or checks the one that is there.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkDir(dir)
}

// checkDir checks that a directory is one of this user that others cannot use.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory, or is a link: remove it, or name another directory with --state", dir)
	}
	return checkOwn(dir, info)
}

// openOwn opens a regular file of this user that others cannot use.
func openOwn(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600) // it may be a pipe
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link, and links are not followed here: remove it", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file: remove it", path)
	default:
		err = checkOwn(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readFile reads at most maxFile bytes of an open file.
func readFile(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("it is larger than 4 MiB" + anew)
	}
	return data, err
}

// lockFile takes the lock of a file of its own, and waits for it no longer than ctx. It makes the directory.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := flock.Acquire(ctx, func() (*os.File, error) { return openOwn(path, os.O_RDWR|os.O_CREATE) },
		func() (fs.FileInfo, error) { return os.Lstat(path) })
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// replaceFile replaces a file whole, and returns when the disk has it. The caller has the lock of its writers.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := removeDrafts(dir, "."+filepath.Base(path)); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	step("written")
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	step("renamed")
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Sync()
}

// removeDrafts removes what writers left that were killed.
func removeDrafts(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
