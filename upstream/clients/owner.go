package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrOwner is wrapped by the error of a file that would not be its owner's any more.
var ErrOwner = errors.New("the file belongs to another user or group, and would not any more")

// asRoot gives a new file to whom the file beside it belongs, or the directory where there is none: with sudo it would
// be root's, and its user could not read it.
func asRoot(f *os.File, beside string) error {
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
	return give(f, info)
}

// give makes a file belong to whom another one belongs.
func give(f *os.File, like fs.FileInfo) error {
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

// makeDir makes a directory and those above it, which belong to whom the one belongs that they are made in.
func makeDir(dir string) error {
	var made []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := len(made) - 1; i >= 0 && os.Geteuid() == 0; i-- {
		if err := giveDir(made[i]); err != nil {
			return err
		}
	}
	return nil
}

func giveDir(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Dir(dir))
	if err == nil {
		err = give(f, info)
	}
	return errors.Join(err, f.Close())
}
