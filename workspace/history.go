package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// records is the directory of a History: a directory for each file with its versions, and logs of moves and deletions.
const records = ".filesystem"

// HistoryOptions configure a History. The zero value keeps deleted files, and no versions.
type HistoryOptions struct {
	Versions     bool  // keep every version of every file
	KeepVersions int   // at most so many versions of one file, the newest; 0: all
	KeepBytes    int64 // at most so many bytes of old versions of one file; 0: all
}

// A History changes the files of a Dir so that nothing is lost: deleted files go to the trash, moves are recorded, and, if
// asked for, every version is kept. All its methods may be called concurrently, also by several processes: the changes in
// one workspace follow each other. A killed process leaves every file as it was before the change or after it, and the
// next change completes its records.
type History struct {
	d *Dir
	o HistoryOptions
}

// NewHistory makes the history of a workspace. It writes nothing.
func NewHistory(d *Dir, o HistoryOptions) *History { return &History{d, o} }

// step is called before each step that changes the disk. Tests replace it to end the process there.
var step = func(string) {}

// An Edit makes the new content of a file from the old one. info describes the file, and is nil if there is none. If data
// is nil, nothing changes. An error ends the change.
type Edit func(old []byte, info fs.FileInfo) (data []byte, err error)

// Change replaces the content of the file at name by the result of edit, and makes the file and its directories if they
// are missing. A symbolic link inside the root stays, and the file that it points to changes. Mode and owner stay. With
// max 0, edit does not get the old content; otherwise a file with more than max bytes is InvalidArgument.
func (h *History) Change(ctx context.Context, name string, max int64, edit Edit) (rel string, err error) {
	if _, err := h.d.SaveName(name); err != nil {
		return "", err
	}
	err = h.locked(ctx, name, func() error {
		if rel, err = h.changeablePath(name); err != nil {
			return err
		}
		info, err := h.d.target(rel)
		if err != nil {
			return err
		}
		var old []byte
		if info != nil && max > 0 {
			if old, err = h.read(rel, info, max); err != nil {
				return err
			}
		}
		data, err := edit(old, info)
		if err != nil || data == nil {
			return err
		}
		return h.replace(ctx, rel, info, data)
	})
	return rel, err
}

// replace makes data the content of the file rel, and a version.
func (h *History) replace(ctx context.Context, rel string, info fs.FileInfo, data []byte) error {
	if !h.o.Versions {
		return h.put(rel, info, bytes.NewReader(data))
	}
	v, err := h.openAndRecord(ctx, rel, info)
	if err != nil {
		return err
	}
	if same, err := h.d.holds(ctx, rel, info, bytes.NewReader(data), int64(len(data))); err != nil || same {
		return err // one more version with the same text would only make the way back longer
	}
	n, err := v.add(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if err := h.put(rel, info, bytes.NewReader(data)); err != nil {
		return errors.Join(err, v.remove(n))
	}
	return h.noted(rel, v.commit(n))
}

// holds reports whether the file rel, described by info, has the content of data, of that size.
func (d *Dir) holds(ctx context.Context, rel string, info fs.FileInfo, data io.Reader, size int64) (bool, error) {
	if info == nil || info.Size() != size {
		return false, nil
	}
	f, err := d.open(rel)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return same(ctx, f, data)
}

// noted explains an error after the file has changed.
func (h *History) noted(rel string, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(IoError, "the next change completes the records", "%s has changed, but its records have not: %w", quote(rel), withoutPath(err))
}

// put replaces the file rel, described by info, or makes it if info is nil. The data is on the disk before the file has its
// name.
func (h *History) put(rel string, info fs.FileInfo, data io.Reader) error {
	return h.d.install(rel, data, func(f *os.File) error {
		if info == nil {
			return nil
		}
		if err := keepOwner(f, info); err != nil {
			return err
		}
		return f.Chmod(info.Mode().Perm())
	})
}

// install makes data the file rel, with its directories. prepare gets the complete file before it has its name.
func (d *Dir) install(rel string, data io.Reader, prepare func(*os.File) error) error {
	x, err := d.newDraft()
	if err != nil {
		return err
	}
	defer x.discard()
	if _, err := io.Copy(x.file, data); err != nil {
		return err
	}
	if err := prepare(x.file); err != nil {
		return err
	}
	if err := x.file.Sync(); err != nil {
		return err
	}
	if err := d.root.MkdirAll(path.Dir(rel), 0o755); err != nil {
		return err
	}
	step("install")
	err = d.root.Rename(x.name, rel)
	x.renamed = err == nil
	if errors.Is(err, syscall.EXDEV) { // another file system is mounted there
		err = d.copyTree(context.Background(), x.name, rel, nil)
	}
	d.syncDir(path.Dir(rel))
	return err
}

// store writes a file of records: whole, and on the disk before it has its name. Only the owner can read it.
func (d *Dir) store(name string, data io.Reader) error {
	return d.install(name, data, func(f *os.File) error { return f.Chmod(0o600) })
}

// keepOwner gives f the owner that the file of info has, if that is another.
func keepOwner(f *os.File, info fs.FileInfo) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	old, ok := info.Sys().(*syscall.Stat_t)
	now, ok2 := mine.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || old.Uid == now.Uid && old.Gid == now.Gid {
		return nil
	}
	if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil {
		return Errorf(IoError, "change it as its owner", "the new file could not get the owner of the old one (%d:%d): %w", old.Uid, old.Gid, withoutPath(err))
	}
	return nil
}

// read returns the content of a regular file of at most max bytes.
func (h *History) read(rel string, info fs.FileInfo, max int64) ([]byte, error) {
	f, err := h.d.open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), max)+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(f, max+1))
	if err == nil && int64(data.Len()) > max {
		return nil, Errorf(InvalidArgument, "change it with other tools", "%s has %d bytes, at most %d can be edited", quote(rel), info.Size(), max)
	}
	return data.Bytes(), err
}

// MakeDir makes a directory and its parents. It reports whether the directory was missing.
func (h *History) MakeDir(ctx context.Context, name string) (rel string, made bool, err error) {
	err = h.locked(ctx, name, func() error {
		if rel, err = h.changeablePath(strings.TrimRight(name, "/")); err != nil {
			return err
		}
		info, err := h.d.root.Lstat(rel)
		switch {
		case err == nil && !info.IsDir():
			return Errorf(AlreadyExists, "", "%s exists and is not a directory", quote(rel))
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := h.d.notGit(rel); err != nil {
			return err
		}
		step("mkdir")
		made = true
		if err := h.d.root.MkdirAll(rel, 0o755); err != nil {
			return err
		}
		h.d.syncDir(path.Dir(rel))
		return nil
	})
	return rel, made, err
}

// locked calls change while no other change is made in the workspace, after it has completed the change of a killed
// process. Its errors are *Error.
func (h *History) locked(ctx context.Context, rel string, change func() error) error {
	_, unlock, err := h.d.lock(ctx, rel)
	if err != nil {
		return h.d.explain(rel, err)
	}
	defer unlock()
	if err = h.complete(ctx); err == nil {
		err = change()
	}
	if err != nil {
		return h.d.explain(rel, err)
	}
	return nil
}

// complete completes the change of a killed process. The caller holds the lock.
func (h *History) complete(ctx context.Context) error {
	if err := h.d.unlinked(trashDir, moveLog, deleteLog, named); err != nil {
		return err
	}
	return h.settle(ctx)
}

// changeablePath returns the path, free of symbolic links, of the file that name stands for, and refuses names that callers may
// not change.
func (h *History) changeablePath(name string) (string, error) {
	rel, err := h.d.SaveName(name)
	if err != nil {
		return "", err
	}
	resolved, err := h.d.resolve(rel)
	if err != nil {
		return "", err
	}
	return h.d.changeable(resolved)
}

// changeable is SaveName for a path that links have led to. Records hold only names in UTF-8.
func (d *Dir) changeable(rel string) (string, error) {
	if !utf8.ValidString(rel) {
		return "", Errorf(InvalidArgument, "", "%s is not UTF-8", quote(rel))
	}
	return d.SaveName(rel)
}

// changeableLink is changeablePath for a path whose last element stays as it is, even if it is a link: to move or delete it.
func (h *History) changeableLink(name string) (string, error) {
	if rel, err := h.d.Rel(name); err == nil && rel == "." {
		return "", Errorf(InvalidArgument, "name a file or directory in it", "%s is the root, which cannot be moved or deleted", quote(name))
	}
	rel, err := h.d.SaveName(strings.TrimRight(name, "/"))
	if err != nil {
		return "", err
	}
	dir, err := h.d.resolve(path.Dir(rel))
	if err != nil {
		return "", err
	}
	return h.d.changeable(path.Join(dir, path.Base(rel)))
}

// resolve returns a clean path of the root without symbolic links. Elements that do not exist stay as they are.
func (d *Dir) resolve(rel string) (string, error) {
	const maxLinks = 40 // as in Linux
	done, links := ".", 0
	todo := strings.Split(rel, "/")
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		at := path.Join(done, next)
		if at == ".." || strings.HasPrefix(at, "../") {
			return "", Errorf(PathEscape, "", "%s leads out of the root through a symbolic link", quote(rel))
		}
		info, err := d.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", classify(at, err)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := d.root.Readlink(at)
			if err != nil {
				return "", classify(at, err)
			}
			if links++; links > maxLinks {
				return "", classify(rel, syscall.ELOOP)
			}
			if path.IsAbs(to) {
				return "", Errorf(PathEscape, "only links that are relative and stay inside the root are followed", "%s leads out of the root through a symbolic link", quote(rel))
			}
			todo = append(strings.Split(to, "/"), todo...)
			continue
		}
		done = at
	}
	return done, nil
}

// unlinked refuses our own files and directories if they are behind symbolic links: somebody else has made those, and
// changes would be made at another place.
func (d *Dir) unlinked(names ...string) error {
	for _, name := range names {
		at, err := d.resolve(name)
		if err == nil && at == name || KindOf(err) == NotFound {
			continue
		}
		return Errorf(IoError, "remove the link", "%s is behind a symbolic link: nothing is written there", name)
	}
	return nil
}

// record returns the content of one of our own files, of at most max bytes.
func (d *Dir) record(name string, max int64) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		err = fmt.Errorf("it has more than %d bytes", max)
	}
	return text, err
}
