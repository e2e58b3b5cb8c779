package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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
