package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxPath is the longest path that is looked at, in bytes: PATH_MAX of Linux.
const maxPath = 4096

// A Dir is an open workspace. Its methods may be called concurrently.
//
// Every path that a method takes is relative to the root, or absolute and inside of it; it is cleaned first, so that
// "a/link/.." is "a" whatever the link points to. Errors are *Error.
type Dir struct {
	root  *os.Root
	names []string // the root's absolute names: as resolved, and as given where that differs

	writing chan struct{} // holds what a writer of this process has put in, one at a time
}

// Open opens the directory at path as a workspace. Symbolic links in path are resolved now and never again. The
// empty path is the current directory.
func Open(path string) (*Dir, error) {
	if path == "" {
		path = "."
	}
	given, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving root %q: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("resolving root %q: %w", path, err)
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() { // to open a pipe would wait for its writer
		return nil, fmt.Errorf("opening root %q: it is not a directory", path)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("opening root %q: %w", path, err)
	}
	names := []string{real}
	if given != real {
		names = append(names, given)
	}
	return &Dir{root: root, names: names, writing: make(chan struct{}, 1)}, nil
}

// Close closes the workspace. Files that were opened stay open. Closing twice is harmless. A Dir that is not closed is
// closed when it is garbage.
func (d *Dir) Close() error { return d.root.Close() }

// Root returns the absolute name of the root, its symbolic links resolved.
func (d *Dir) Root() string { return d.names[0] }

// Rel returns path as clean, slash-separated and relative to the root; the root itself is ".". It looks at the text
// of the path only: symbolic links are judged when the path is used.
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

// inside returns what follows one of the root's names in the clean absolute path, or "" if none of them leads it.
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
	rel, err := d.Rel(path)
	if err != nil {
		return nil, err
	}
	info, err := d.root.Stat(rel)
	if err != nil {
		return nil, classify(rel, err)
	}
	if err := regular(rel, info); err != nil {
		return nil, err
	}
	// What is at rel may have changed since: O_NONBLOCK keeps a pipe from holding us, and the open file decides.
	f, err := d.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, classify(rel, err)
	}
	info, err = f.Stat()
	if err == nil {
		if err = regular(rel, info); err == nil {
			return f, nil
		}
	} else {
		err = classify(rel, err)
	}
	f.Close()
	return nil, err
}

// regular returns nil if info describes a regular file, else an error that says what it is.
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
