package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// private are the directories of a root that belong to programs and not to their callers.
var private = []string{own, ".filesystem"}

// own is our private directory.
const own = ".mcsh"

// SaveOptions say how a file is saved.
type SaveOptions struct {
	Append bool  // keep what the file holds, and write behind it
	Max    int64 // bytes of data beyond which nothing is saved; 0: any number
}

// ErrOversize is the cause of the error of data that is longer than [SaveOptions.Max].
var ErrOversize = errors.New("the data is longer than allowed")

// CheckSave returns what is wrong with path as the name of a file to save, as far as its text says.
func (d *Dir) CheckSave(path string) error {
	_, err := d.saveRel(path)
	return err
}

func (d *Dir) saveRel(name string) (string, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", Errorf(InvalidArgument, "name a file in it", "%s is a directory", quote(name))
	}
	for part := range strings.SplitSeq(rel, "/") {
		if slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, part) }) {
			return "", Errorf(InvalidArgument, "save it elsewhere", "%s is in a directory that is not for callers", quote(rel))
		}
	}
	return rel, nil
}

// Save saves what in holds as the file at path, all of it or nothing: the file is replaced when the data is complete, on the
// disk and in the mirror, an append-only copy of everything that was saved under this path. Without the mirror nothing is
// saved. Missing directories are made. It returns the saved data, to be read from its beginning and closed by the caller.
//
// It may be called concurrently, also by several processes: of two that replace a file the last one stays, whole.
// ctx ends the reading of in; what comes after takes no longer than the disk needs.
func (d *Dir) Save(ctx context.Context, name string, in io.Reader, o SaveOptions) (io.ReadCloser, error) {
	rel, err := d.saveRel(name)
	if err != nil {
		return nil, err
	}
	if _, err := d.target(rel); err != nil {
		return nil, err
	}
	draft, err := d.newDraft()
	if err != nil {
		return nil, classify(rel, err)
	}
	err = draft.fill(ctx, in, o.Max)
	if err == nil {
		err = d.commit(rel, draft, o.Append)
	}
	if err != nil {
		draft.discard()
		return nil, d.explain(rel, err)
	}
	return draft.data()
}

// explain leaves what the input said as it is, and words what the disk said.
func (d *Dir) explain(rel string, err error) error {
	var input *inputError
	var told *Error
	switch {
	case errors.As(err, &input):
		return input.err
	case errors.As(err, &told):
		return told
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{IoError, fmt.Sprintf("%s was not saved: the disk is full", quote(rel)), "free some space; the file is as it was", syscall.ENOSPC}
	}
	return classify(rel, err)
}

// inputError is what reading the data said.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }

// target looks at what is at rel: nil if nothing is. Links are not followed, so that a name means one file, and the
// mirror has it under that name.
func (d *Dir) target(rel string) (fs.FileInfo, error) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := d.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, classify(at, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, Errorf(InvalidArgument, "name the file that it points to", "%s is a symbolic link, and nothing is saved through one", quote(at))
		case i < len(parts)-1 && !info.IsDir():
			return nil, Errorf(InvalidArgument, "save it elsewhere", "%s is not a directory", quote(at))
		case i == len(parts)-1 && info.IsDir():
			return nil, Errorf(InvalidArgument, "name a file in it", "%s is a directory", quote(at))
		case i == len(parts)-1 && !info.Mode().IsRegular():
			return nil, Errorf(InvalidArgument, "only regular files can be replaced", "%s is a %s", quote(at), special(info.Mode()))
		case i == len(parts)-1:
			return info, nil
		}
	}
	return nil, nil
}

// commit puts a draft in its place. Writers of all processes do this one after the other.
func (d *Dir) commit(rel string, draft *draft, behind bool) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	old, err := d.target(rel)
	if err != nil {
		return err
	}
	if dir := path.Dir(rel); dir != "." {
		if err := d.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	whole := draft
	if behind && old != nil {
		if whole, err = d.joined(rel, draft); err != nil {
			return err
		}
		defer whole.discard()
	}
	if old != nil {
		if err := whole.file.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := whole.file.Sync(); err != nil {
		return err
	}
	undo, err := d.mirror(rel, draft, behind, old != nil)
	if err != nil {
		return mirrorError(rel, err)
	}
	if err := d.root.Rename(whole.name, rel); err != nil {
		return errors.Join(err, undo())
	}
	whole.renamed = true
	return d.syncDir(path.Dir(rel))
}

// mirrorError says that nothing is saved without its mirror. A full disk is told as such.
func mirrorError(rel string, err error) error {
	var p *fs.PathError
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if errors.As(err, &p) {
		err = p.Err
	}
	return Errorf(IoError, "look at what is there", "%s was not saved: its mirror %s cannot be written: %w", quote(rel), quote(mirrors+"/"+rel), err)
}

// joined is a draft of what the file holds, and the data behind it.
func (d *Dir) joined(rel string, draft *draft) (*draft, error) {
	whole, err := d.newDraft()
	if err != nil {
		return nil, err
	}
	f, err := d.Open(rel)
	if err == nil {
		_, err = io.Copy(whole.file, f)
		f.Close()
	}
	if err == nil {
		err = draft.copyTo(whole.file)
	}
	if err != nil {
		whole.discard()
		return nil, err
	}
	return whole, nil
}

// syncDir makes a rename last.
func (d *Dir) syncDir(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// lock keeps other writers out, those of other processes too.
func (d *Dir) lock() (unlock func(), err error) {
	f, err := d.root.OpenFile(own+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
