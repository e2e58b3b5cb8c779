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

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// private are the directories of a root that belong to programs and not to their callers.
var private = []string{own, ".filesystem"}

// own is our private directory.
const own = ".mcsh"

// git is where git finds what it runs: who writes its configuration runs programs as whoever calls git there next.
const git = ".git"

// SaveOptions say how a file is saved.
type SaveOptions struct {
	Append bool  // keep what the file holds, and write behind it
	Max    int64 // bytes of data beyond which nothing is saved; 0: any number
}

// ErrOversize is the cause of the error of data that is longer than [SaveOptions.Max].
var ErrOversize = errors.New("the data is longer than allowed")

// SaveName returns the name of a file to save that stands for it, relative to the root, or what is wrong with it, as far
// as its text says.
func (d *Dir) SaveName(name string) (string, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", Errorf(InvalidArgument, "name a file in it", "%s is a directory", quote(name))
	}
	for part := range strings.SplitSeq(rel, "/") {
		if strings.TrimSpace(part) == "" {
			return "", Errorf(InvalidArgument, "give the file a name that can be seen", "%s has a name of blanks", quote(name))
		}
		if strings.EqualFold(part, git) {
			return "", Errorf(InvalidArgument, "save it elsewhere", "%s is git's own: what is written there can make git run programs", quote(rel))
		}
		if slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, part) }) {
			return "", Errorf(InvalidArgument, "save it elsewhere", "%s is in a directory that is not for callers", quote(rel))
		}
	}
	return rel, nil
}

// Save saves what in holds as the file at path, all of it or nothing: the file is replaced, or written behind, when the data
// is complete, on the disk and in the mirror, an append-only copy of everything that was saved under this path. Without the
// mirror nothing is saved. Missing directories are made. It returns the saved data, to be read from its beginning and
// closed by the caller.
//
// It may be called concurrently, also by several processes: of two that replace a file the last one stays, whole.
// ctx ends the reading of in, and the wait for other writers; what comes after takes no longer than the disk needs.
func (d *Dir) Save(ctx context.Context, name string, in io.Reader, o SaveOptions) (io.ReadCloser, error) {
	rel, err := d.SaveName(name)
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
		err = d.commit(ctx, rel, draft, o.Append)
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
func (d *Dir) commit(ctx context.Context, rel string, draft *draft, behind bool) error {
	lock, unlock, err := d.lock(ctx, rel)
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
	m, err := d.openMirror(rel)
	if err != nil {
		return err
	}
	defer m.file.Close()
	switch {
	case old == nil || !behind:
		return d.replace(rel, old, draft, m, func() error { return m.add(draft, !behind && (old != nil || m.size > 0)) })
	case alone(old):
		return d.extend(lock, rel, old, draft, m)
	}
	whole, err := d.joined(rel, draft)
	if err != nil {
		return err
	}
	defer whole.discard()
	return d.replace(rel, old, whole, m, func() error { return m.add(draft, false) })
}

// replace puts whole in the place of the file that is there, old, if one is. add adds the data to the mirror.
func (d *Dir) replace(rel string, old fs.FileInfo, whole *draft, m *mirror, add func() error) error {
	if old != nil {
		if err := whole.file.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := whole.file.Sync(); err != nil {
		return err
	}
	if err := add(); err != nil {
		return mirrorError(rel, m.name, err)
	}
	if err := d.root.Rename(whole.name, rel); err != nil {
		return errors.Join(err, m.undo())
	}
	whole.renamed = true
	d.syncDir(path.Dir(rel))
	return nil
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

// syncDir makes a rename last. The file is in its place: a directory that may not be read, or a file system that cannot do
// this, does not make it an unsaved one.
func (d *Dir) syncDir(dir string) {
	f, err := d.root.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.Sync()
}

// lock keeps other writers out, those of other processes too, and waits for them no longer than ctx.
func (d *Dir) lock(ctx context.Context, rel string) (lock *os.File, unlock func(), err error) {
	const others = "%s was not saved: others were writing in the workspace until then: %w"
	select {
	case d.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, Errorf(IoError, "", others, quote(rel), context.Cause(ctx))
	}
	lock, err = d.root.OpenFile(own+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = flock.Wait(ctx, lock); err != nil {
			lock.Close()
		}
		if err != nil && err == context.Cause(ctx) {
			err = Errorf(IoError, "see which process has locked "+own+"/lock", others, quote(rel), err)
		}
	}
	if err != nil {
		<-d.writing
		return nil, nil, err
	}
	d.settle(lock)
	return lock, func() { lock.Close(); <-d.writing }, nil
}
