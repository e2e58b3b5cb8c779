package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// ErrChanged is wrapped by the error of a file that another program has changed during the edit.
var ErrChanged = errors.New("another program has changed the file in the meantime; it was left as it is")

// Rewrite replaces the content of a file: change gets the old content, nil if there is no file, and returns the new one,
// nil to remove the file. Readers see the old or the new content. Two processes that rewrite files of one directory wait
// for each other, the second no longer than ctx. A link stays, and its target is changed. A new file is private to the
// user, because it may hold secrets; an existing one keeps its owner and mode. A file that is read-only, or that another
// program changes meanwhile, stays as it is.
func Rewrite(ctx context.Context, path string, change func(old []byte) ([]byte, error)) error {
	path, err := follow(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("making the directory of %s: %w", path, err)
	}
	lock, err := flock.Acquire(ctx, func() (*os.File, error) { return os.Open(dir) }, func() (fs.FileInfo, error) { return os.Stat(dir) })
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		err = errors.New("another process is writing there")
	}
	if err != nil {
		return fmt.Errorf("waiting to write %s: %w", path, err)
	}
	defer lock.Close() // which unlocks it
	old, err := namedfile.Read(path, MaxFile)
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
	if data != nil {
		return replace(path, old, data)
	}
	if err := unchanged(path, old); err != nil {
		return err
	}
	return os.Remove(path)
}

// follow resolves the links of a path.
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

// replace writes a file, which keeps its owner and its mode.
func replace(path string, old, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(0o600), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err == nil:
		if err = setOwner(f.File, info); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		err = inheritOwner(f.File, path)
	}
	if err == nil {
		err = f.Sync() // so that the check and the rename are quick
	}
	if err == nil {
		err = unchanged(path, old)
	}
	if err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// unchanged checks that a file still holds what was read: clients write theirs without a lock.
func unchanged(path string, old []byte) error {
	now, err := namedfile.Read(path, MaxFile)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return err
	}
	if gone != (old == nil) || string(now) != string(old) {
		return fmt.Errorf("%s: %w", path, ErrChanged)
	}
	return nil
}

// ErrOwner is wrapped by the error of a file whose owner would change.
var ErrOwner = errors.New("the file belongs to another user or group, and would change its owner")

// inheritOwner gives a new file the owner of the file beside it, or else of the directory: with sudo it would belong to
// root, and its user could not read it.
func inheritOwner(f *os.File, beside string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(beside)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(beside))
	}
	if err != nil {
		return err
	}
	return setOwner(f, info)
}

// setOwner gives a file the owner of another one.
func setOwner(f *os.File, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	want, _ := like.Sys().(*syscall.Stat_t)
	have, _ := info.Sys().(*syscall.Stat_t)
	if want == nil || have == nil || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("%w: %w", ErrOwner, err)
	}
	return nil
}

// makeDir makes a directory and missing ones above it, with the owner of the directory in which they are made.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
		return nil
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // another process may make it, too
		return err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(inheritOwner(f, filepath.Dir(dir)), f.Close())
}
