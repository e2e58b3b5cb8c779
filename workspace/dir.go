package workspace

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// maxPath is the length of the longest accepted path in bytes: PATH_MAX of Linux.
const maxPath = 4096

// A Dir is an open workspace. Its methods may be called concurrently.
//
// Every path that a method takes is relative to the root, or absolute and inside it. The method cleans it first, so
// "a/link/.." is "a" wherever the link points. Errors are *Error.
type Dir struct {
	root  *os.Root
	names []string // the root's absolute names: the resolved one and the given one

	writing chan struct{} // a semaphore of one for the writers of this process
	drafted atomic.Int64  // bytes that the drafts of this process will add, mirrors included
}

// Open opens the directory at path as a workspace. Symbolic links in path are resolved now and never again. The
// empty path is the current directory.
func Open(path string) (*Dir, error) {
	given, err := filepath.Abs(cmp.Or(path, "."))
	if err != nil {
		return nil, fmt.Errorf("resolving root %q: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("resolving root %q: %w", path, err)
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() { // an open call on a pipe would wait for a writer
		return nil, fmt.Errorf("opening root %q: it is not a directory", path)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("opening root %q: %w", path, err)
	}
	return &Dir{root: root, names: []string{real, given}, writing: make(chan struct{}, 1)}, nil
}

// OpenPublic is Open for a path of a caller, who may not name a directory that is git's own or private.
func OpenPublic(path string) (*Dir, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := public(strings.Trim(filepath.ToSlash(d.Root()), "/")); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Sub opens a directory of the workspace as one of its own, for a caller, who may not name one in a git repository without
// a working tree, that is git's own, or private. No symbolic link is followed.
func (d *Dir) Sub(dir string) (*Dir, error) {
	rel, err := d.Rel(dir)
	if err != nil {
		return nil, err
	}
	if err := public(rel); err != nil {
		return nil, err
	}
	if rel != "." { // the operator has allowed the workspace itself
		if err := d.notGit(rel); err != nil {
			return nil, err
		}
	}
	sub, err := d.root.OpenRoot(".")
	for part := range strings.SplitSeq(rel, "/") {
		if err != nil {
			return nil, classify(rel, err)
		}
		above := sub
		sub, err = openPart(above, part)
		above.Close()
	}
	if err != nil {
		return nil, classify(rel, err)
	}
	return &Dir{root: sub, names: []string{filepath.Join(d.Root(), rel)}, writing: make(chan struct{}, 1)}, nil
}

// openPart opens a directory that has this name itself: a link that is there for a moment does not lead elsewhere.
func openPart(above *os.Root, name string) (*os.Root, error) {
	sub, err := above.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := sub.Stat(".")
	if err == nil {
		var named fs.FileInfo
		if named, err = above.Lstat(name); err == nil && !os.SameFile(opened, named) {
			err = syscall.ELOOP
		}
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// Close closes the workspace. Files that were opened stay open. Closing twice is harmless. A Dir that is not closed is
// closed when it is garbage.
func (d *Dir) Close() error { return d.root.Close() }

// Root returns the absolute name of the root without symbolic links.
func (d *Dir) Root() string { return d.names[0] }

// Rel returns a path cleaned, slash-separated and relative to the root; the root itself is ".". It checks only the text of
// the path: symbolic links are resolved when the path is used.
func (d *Dir) Rel(path string) (string, error) {
	switch {
	case path == "":
		return "", Errorf(InvalidArgument, `"." is the root`, "the path is empty")
	case len(path) > maxPath:
		return "", Errorf(InvalidArgument, "", "the path has %d bytes, at most %d are possible", len(path), maxPath)
	case strings.IndexByte(path, 0) >= 0:
		return "", Errorf(InvalidArgument, "", "the path %s contains a NUL byte", quote(path))
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(rel) {
		if rel = d.inside(rel); rel == "" {
			return "", Errorf(PathEscape, "use a path relative to the root", "%s is outside of the root", quote(path))
		}
	}
	if !filepath.IsLocal(rel) {
		return "", Errorf(PathEscape, `paths are relative to the root, ".." cannot leave it`, "%s leads out of the root", quote(path))
	}
	return filepath.ToSlash(rel), nil
}

// readable is Rel without the private directories. A link may lead to them as well: see forCallers.
func (d *Dir) readable(path string) (string, error) {
	rel, err := d.Rel(path)
	if err == nil && isPrivate(rel) {
		err = notForCallers(rel)
	}
	return rel, err
}

// inside returns the rest of a clean absolute path after one of the root's names, or "" if it begins with none.
func (d *Dir) inside(path string) string {
	for _, name := range d.names {
		if path == name {
			return "."
		}
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(name, "/")+"/"); ok {
			return rest
		}
	}
	return ""
}

// Open opens the regular file at path for reading. Directories, pipes, sockets and devices are InvalidArgument, and
// opening never waits for the other end of one. The caller closes the file.
func (d *Dir) Open(path string) (*os.File, error) {
	rel, err := d.readable(path)
	if err != nil {
		return nil, err
	}
	f, err := d.open(rel)
	if err != nil {
		return nil, err
	}
	if err := d.forCallers(rel, f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// forCallers refuses an open file or directory that is private: a link has led to it.
func (d *Dir) forCallers(rel string, f *os.File) error {
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil { // there is no /proc on this system
		return d.linksForCallers(rel)
	}
	if isPrivate(cmp.Or(d.inside(real), real)) { // the root may have been moved
		return notForCallers(rel)
	}
	return nil
}

// linksForCallers is forCallers for a path that is not open. Links may change before it is used.
func (d *Dir) linksForCallers(rel string) error {
	real, err := filepath.EvalSymlinks(filepath.Join(d.Root(), rel))
	if err == nil && isPrivate(d.inside(real)) {
		return notForCallers(rel)
	}
	return nil
}

func notForCallers(rel string) *Error {
	return Errorf(InvalidArgument, "read the files of callers", "%s is in %w", quote(rel), ErrPrivate)
}

// open is Open for a path of the root that may be private.
func (d *Dir) open(rel string) (*os.File, error) {
	info, err := d.root.Stat(rel)
	if err != nil {
		return nil, classify(rel, err)
	}
	if err := regular(rel, info); err != nil {
		return nil, err
	}
	// The file at rel may be another by now: with O_NONBLOCK a pipe cannot block us, and the open file is checked.
	f, err := d.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, classify(rel, err)
	}
	if info, err = f.Stat(); err != nil {
		err = classify(rel, err)
	} else {
		err = regular(rel, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// regular returns an error that names the type of a file that is not regular.
func regular(rel string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return Errorf(InvalidArgument, "list it instead", "%s is a directory", quote(rel))
	}
	return Errorf(InvalidArgument, "only regular files can be read", "%s is a %s", quote(rel), special(mode))
}

// special names a file that is neither regular nor a directory.
func special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// Directory returns the one name of a directory, relative to the root and without symbolic links. It may not be private.
func (d *Dir) Directory(path string) (string, error) {
	rel, err := d.readable(path)
	if err != nil {
		return "", err
	}
	real, err := d.resolve(rel)
	if err != nil {
		return "", err
	}
	info, err := d.root.Lstat(real)
	switch {
	case err != nil:
		return "", classify(rel, err)
	case isPrivate(real):
		return "", notForCallers(rel)
	case !info.IsDir():
		return "", Errorf(InvalidArgument, "name the directory that it is in", "%s is not a directory", quote(rel))
	}
	return real, nil
}
