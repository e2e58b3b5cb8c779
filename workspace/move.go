package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// moveTree renames an entry to a place where nothing is, also to another file system: then it is copied first, and
// copied is called before the copy gets its name.
func (d *Dir) moveTree(ctx context.Context, from, to string, copied func(fs.FileInfo) error) error {
	err := d.renameNew(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if err := d.copyTree(ctx, from, to, copied); err != nil {
		return err
	}
	step("remove")
	return d.root.RemoveAll(from)
}

// renameNew renames an entry if nothing has the new name. Only other programs can make an entry of that name in between.
func (d *Dir) renameNew(from, to string) error {
	if _, err := d.root.Lstat(to); err == nil {
		return Errorf(AlreadyExists, "", "%s exists", quote(to))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Rename(from, to)
}

// copyTree copies an entry with all that is in it beside to, and gives it that name when it is complete. copied may make
// another copy.
func (d *Dir) copyTree(ctx context.Context, from, to string, copied func(fs.FileInfo) error) error {
	part := path.Join(path.Dir(to), partPrefix+rand.Text())
	outer, err := d.notePart(part)
	if err != nil {
		return err
	}
	err = d.copyEntry(ctx, from, part)
	if err == nil && copied != nil {
		var info fs.FileInfo
		if info, err = d.root.Lstat(part); err == nil {
			err = copied(info)
		}
	}
	if err == nil {
		step("copied")
		err = d.root.Rename(part, to)
	}
	if err != nil {
		err = errors.Join(err, d.root.RemoveAll(part))
	}
	if outer {
		d.removePart()
	}
	return err
}

// partName is the file with the names of copies that are being made beside their places, so that the next writer can remove
// those of a killed process. A NUL follows each. The name of every copy begins with partPrefix.
const (
	partName   = own + "/part"
	partPrefix = ".mcsh-"
)

// maxParts is more than the names of a copy and of one that is made meanwhile take.
const maxParts = 4 * maxPath

// notePart adds a name to partName, on the disk before the copy is there. It makes no draft: that may need a copy to get its
// name. It reports whether the name is the first.
func (d *Dir) notePart(part string) (first bool, err error) {
	if err := d.unlinked(partName); err != nil {
		return false, err
	}
	f, err := d.root.OpenFile(partName, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if _, err := io.WriteString(f, part+"\x00"); err != nil {
		return false, err
	}
	d.syncDir(own)
	return info.Size() == 0, f.Sync()
}

// removePart removes incomplete copies. It ignores errors: the next writer tries again.
func (d *Dir) removePart() {
	text, err := d.record(partName, maxParts)
	if err != nil {
		return
	}
	for part := range strings.SplitSeq(string(text), "\x00") {
		if at, err := d.resolve(part); err == nil && at == part && strings.HasPrefix(path.Base(part), partPrefix) && d.root.RemoveAll(part) != nil {
			return
		}
	}
	_ = d.root.Remove(partName)
}

// maxCopyLevels bounds the cost of a copy, each level of which is looked up from the root.
const maxCopyLevels = 1000

func (d *Dir) copyEntry(ctx context.Context, from, to string) error {
	if ctx.Err() != nil {
		return &inputError{context.Cause(ctx)}
	}
	if strings.Count(from, "/") > maxCopyLevels {
		return Errorf(InvalidArgument, "move what is in it first", "%s is more than %d levels deep, and cannot be moved to another file system", quote(from), maxCopyLevels)
	}
	info, err := d.root.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := d.root.Readlink(from)
		if err != nil {
			return err
		}
		return d.root.Symlink(link, to)
	case info.IsDir():
		return d.copyDir(ctx, from, to, info)
	case info.Mode().IsRegular():
		return d.copyFile(ctx, from, to, info)
	}
	return Errorf(InvalidArgument, "", "%s is a %s, which cannot be moved to another file system", quote(from), special(info.Mode()))
}

func (d *Dir) copyDir(ctx context.Context, from, to string, info fs.FileInfo) error {
	if err := d.root.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := fs.ReadDir(d.root.FS(), from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := d.copyEntry(ctx, from+"/"+e.Name(), to+"/"+e.Name()); err != nil {
			return err
		}
	}
	return d.root.Chmod(to, info.Mode().Perm())
}

func (d *Dir) copyFile(ctx context.Context, from, to string, info fs.FileInfo) error {
	in, err := d.open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := d.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer out.Close()
	for err != io.EOF {
		if ctx.Err() != nil {
			return &inputError{context.Cause(ctx)}
		}
		if _, err = io.CopyN(out, in, 16<<20); err != nil && err != io.EOF {
			return err
		}
	}
	if err := keepOwner(out, info); err != nil {
		return err
	}
	if err := out.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return d.root.Chtimes(to, info.ModTime(), info.ModTime())
}
