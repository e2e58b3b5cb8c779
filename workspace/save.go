package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// private are the directories of a root that callers cannot use.
var private = []string{own, ".filesystem"}

// own is our private directory.
const own = ".mcsh"

// dotGit are the names of git's directory or file in a repository, the second on NTFS. Its configuration can make git run
// programs as the next user that calls git there. See also [Dir.notGit].
var dotGit = []string{".git", "git~1"}

// SaveOptions configure a save.
type SaveOptions struct {
	Append bool  // append to the file
	Joined bool  // with Append: right behind its last byte, not on a new line
	Max    int64 // bytes of data, or nothing is saved; 0: no limit

	// History gets a version of the file, if it keeps them. It is one of this workspace. Nil: none does.
	History *History

	// Charge is called before adds more bytes are written to the file and its mirror, after which the workspace has
	// written total bytes in all. Its error ends the save, and is returned unchanged. Nil: no limit.
	Charge func(adds, total int64) error
}

// ErrOversize is the error of data longer than [SaveOptions.Max].
var ErrOversize = errors.New("the data is longer than allowed")

// maxLevels bounds the cost of a path, each level of which is looked up from the root.
const maxLevels = 200

// maxName is the length of the longest name in bytes: NAME_MAX of Linux.
const maxName = 255

// SaveName returns the canonical name of a file to save, relative to the root, or an error if the text of the name is
// invalid.
func (d *Dir) SaveName(name string) (string, error) {
	rel, err := d.Rel(name)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", Errorf(InvalidArgument, "name a file in it", "%s is a directory", quote(name))
	}
	if strings.Count(rel, "/") >= maxLevels {
		return "", Errorf(InvalidArgument, "save it higher up", "%s is more than %d levels deep", quote(rel), maxLevels)
	}
	for part := range strings.SplitSeq(rel, "/") {
		switch {
		case strings.TrimSpace(part) == "":
			return "", Errorf(InvalidArgument, "give the file a name that can be seen", "%s has a name of blanks", quote(name))
		case len(part) > maxName: // found before directories are made above it
			return "", classify(rel, syscall.ENAMETOOLONG)
		}
	}
	return rel, public(rel)
}

// public refuses paths that are git's own or private.
func public(rel string) error {
	for part := range strings.SplitSeq(rel, "/") {
		if slices.ContainsFunc(dotGit, func(g string) bool { return texts.SameName(part, g) }) {
			return Errorf(InvalidArgument, "save it elsewhere", "%s is git's own: what is written there can make git run programs", quote(rel))
		}
	}
	if isPrivate(rel) {
		return Errorf(InvalidArgument, "save it elsewhere", "%s is in %w", quote(rel), ErrPrivate)
	}
	return nil
}

// isPrivate reports whether a path is a private directory or in one.
func isPrivate(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if slices.ContainsFunc(private, func(p string) bool { return texts.SameName(part, p) }) {
			return true
		}
	}
	return false
}

// Save saves the data of in as the file name, all of it or nothing: it replaces or extends the file after the data is
// complete on the disk and in the mirror, an append-only copy of everything saved under this name. Without the mirror
// nothing is saved. Save makes missing directories. The caller closes what it returns.
//
// It may be called concurrently, also by several processes: if two replace a file, that of the last one stays, whole.
// ctx ends the reading of in and the wait for other writers; the rest takes only the time of the disk.
func (d *Dir) Save(ctx context.Context, name string, in io.Reader, o SaveOptions) (*Saved, error) {
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
	c, err := d.newCharge(ctx, rel, o)
	defer c.release()
	if err == nil {
		err = draft.fill(ctx, in, o.Max, c.draft)
	}
	if err == nil {
		err = d.commit(ctx, rel, draft, o, c)
	}
	if err != nil {
		draft.discard()
		return nil, d.explain(rel, err)
	}
	return &Saved{ReadCloser: draft.data(), Path: rel, Mirror: draft.mirror, Record: draft.record, Bytes: draft.size}, nil
}

// Saved is data that was saved, to be read from its beginning. It stays the same when the file is replaced.
type Saved struct {
	io.ReadCloser
	Path   string // of the file, relative to the root
	Mirror string // of its mirror
	Record int64  // the time of the save in nanoseconds, which the mirror's line of an overwrite has
	Bytes  int64
}

// explain returns errors of the input unchanged, and explains those of the disk.
func (d *Dir) explain(rel string, err error) error {
	if input, ok := errors.AsType[*inputError](err); ok {
		return input.err
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if isFull(err) {
		return &Error{IoError, fmt.Sprintf("%s was not saved: the disk is full", quote(rel)), "free some space; the file is as it was", syscall.ENOSPC}
	}
	return classify(rel, err)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// inputError is an error of the data's reader or of Charge.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }

// target describes the regular file at rel, nil if there is none, and refuses a place where nothing is saved. It does not
// follow links, so each file has one name, which is that of its mirror.
func (d *Dir) target(rel string) (info fs.FileInfo, err error) {
	parts := strings.Split(rel, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		last := i == len(parts)-1
		info, err = d.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, d.notGit(rel)
		case err != nil:
			return nil, classify(at, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, Errorf(InvalidArgument, "name the file that it points to", "%s is a symbolic link, and nothing is saved through one", quote(at))
		case !last && !info.IsDir():
			return nil, Errorf(InvalidArgument, "save it elsewhere", "%s is not a directory", quote(at))
		case last && info.IsDir():
			return nil, Errorf(InvalidArgument, "name a file in it", "%s is a directory", quote(at))
		case last && !info.Mode().IsRegular():
			return nil, Errorf(InvalidArgument, "only regular files can be replaced", "%s is a %s", quote(at), special(info.Mode()))
		}
	}
	return info, d.notGit(rel)
}
