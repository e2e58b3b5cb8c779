package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// lockStep is how often a lock is tried that another process has.
const lockStep = 50 * time.Millisecond

// Rewrite changes a file as a whole: change gets what is in it, or nil where there is none, and returns what it is to
// hold, or nil where there is to be none. Readers see the one or the other. Two processes that rewrite files of one
// directory wait for each other, and the second waits no longer than ctx. A link stays one, and what it leads to is
// changed. A new file is the user's own: it may hold secrets. One that nobody may write stays as it is.
func Rewrite(ctx context.Context, path string, change func(old []byte) ([]byte, error)) error {
	path, err := follow(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of %s: %w", path, err)
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("waiting to write %s: %w", path, err)
	}
	defer unlock()
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(old)
	if err != nil || string(data) == string(old) && (data == nil) == (old == nil) {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%s is read-only: %w", path, fs.ErrPermission)
	}
	if data == nil {
		return os.Remove(path)
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithExistingPermissions())
}

// follow is the file that a path leads to, over links.
func follow(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if link, isLink := os.Readlink(path); isLink == nil {
		return "", fmt.Errorf("%s is a link to %s, which is not there", path, link)
	}
	return path, nil
}

// BackupOf is where the file is kept as it was before this gateway was written into it.
func BackupOf(path string) string { return path + ".before-mcsh" }

// Backup keeps a file, for the user alone.
func Backup(path string, data []byte) error {
	if err := renameio.WriteFile(BackupOf(path), data, 0o600); err != nil {
		return fmt.Errorf("making a backup of %s: %w", path, err)
	}
	return nil
}

// lock takes the lock of a directory, which leaves no file behind and ends with the process.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	handle, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockStep)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(handle.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = handle.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, handle.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(errors.New("another process is writing there"), handle.Close())
		}
	}
}
