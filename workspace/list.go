package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// MaxEntries bounds the entries that one listing without a limit shows, and those that one Walk visits: more do not help a
// reader, and a listing is sorted in memory.
const MaxEntries = 100_000

// Type is the type of an entry.
type Type string

// The types. A symbolic link is a Link, wherever it points.
const (
	File      Type = "file"
	Directory Type = "directory"
	Link      Type = "link"
	Other     Type = "other" // pipes, sockets and devices
)

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Path string // relative to the root, slash-separated
	Type Type
}

// An Info is an entry with its size and time.
type Info struct {
	Entry
	Size     int64 // bytes; 0 unless a regular file
	Modified time.Time
}

func typeOf(mode fs.FileMode) Type {
	switch mode.Type() {
	case 0:
		return File
	case fs.ModeDir:
		return Directory
	case fs.ModeSymlink:
		return Link
	}
	return Other
}

// Exists reports whether something is at path.
func (d *Dir) Exists(path string) bool {
	rel, err := d.readable(path)
	if err != nil || d.linksForCallers(rel) != nil {
		return false
	}
	_, err = d.root.Lstat(rel)
	return err == nil
}

// Stat describes the file or directory at path, behind symbolic links.
func (d *Dir) Stat(path string) (fs.FileInfo, error) {
	rel, err := d.readable(path)
	if err == nil {
		err = d.linksForCallers(rel)
	}
	if err != nil {
		return nil, err
	}
	info, err := d.root.Stat(rel)
	if err != nil {
		return nil, classify(rel, err)
	}
	return info, nil
}

// ListOptions narrow a listing. The zero value lists everything that listings show.
type ListOptions struct {
	All   bool   // ignored entries too
	After string // only names after this one
	Limit int    // at most so many entries, the first by name; 0: all
}

// ReadDir returns the entries of the directory at dir, sorted by name, and after which name others follow that are over the
// limit, if there are. Without a limit, more than MaxEntries are InvalidArgument; with one, the directory may have any number.
func (d *Dir) ReadDir(ctx context.Context, dir string, o ListOptions) (infos []Info, next string, err error) {
	rel, err := d.readable(dir)
	if err != nil {
		return nil, "", err
	}
	ignored, err := d.ignored(o.All)
	if err != nil {
		return nil, "", err
	}
	page := selection{limit: o.Limit, keep: func(e Entry) bool { return e.Name > o.After && !ignored.skips(e) }}
	sub, err := d.openRoot(rel)
	if err != nil {
		return nil, "", err
	}
	defer sub.Close()
	opened, err := sub.OpenFile(".", forNames, 0)
	if err != nil {
		return nil, "", classify(rel, err)
	}
	if err := d.readEntries(ctx, opened, rel, &page); err != nil {
		return nil, "", err
	}
	infos = make([]Info, 0, len(page.list))
	for _, e := range page.list {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		info, err := sub.Lstat(e.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, "", classify(e.Path, err)
		}
		e.Type = typeOf(info.Mode())
		full := Info{Entry: e, Modified: info.ModTime()}
		if e.Type == File {
			full.Size = info.Size()
		}
		infos = append(infos, full)
	}
	if page.more {
		next = page.list[o.Limit-1].Name
	}
	return infos, next, nil
}

// A selection collects the entries of one directory that keep wants. With a limit, it holds twice as many at most.
type selection struct {
	keep  func(Entry) bool
	limit int // the first by name; 0: all

	list []Entry
	more bool
}

func (s *selection) add(rel string, e Entry) error {
	if !s.keep(e) {
		return nil
	}
	if s.list = append(s.list, e); s.limit == 0 && len(s.list) > MaxEntries {
		return Errorf(InvalidArgument, "name a smaller directory, or list it with a limit",
			"%s has more than %d entries", quote(rel), MaxEntries)
	}
	if s.limit > 0 && len(s.list) > 2*s.limit {
		s.sort()
	}
	return nil
}

// sort sorts the entries by name, and drops those over the limit.
func (s *selection) sort() {
	slices.SortFunc(s.list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if s.limit > 0 && len(s.list) > s.limit {
		s.list, s.more = s.list[:s.limit], true
	}
}

// openRoot opens the directory at rel for a look at its entries.
func (d *Dir) openRoot(rel string) (*os.Root, error) {
	info, err := d.root.Stat(rel)
	if err != nil {
		return nil, classify(rel, err)
	}
	if !info.IsDir() {
		return nil, noDirectory(rel)
	}
	sub, err := d.root.OpenRoot(rel)
	if err != nil {
		return nil, classify(rel, err)
	}
	return sub, nil
}

// forNames are the flags to open a directory for the names of its entries.
const forNames = os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK // os asks less about a file that does not block

// openNames opens the directory at rel for the names of its entries.
func (d *Dir) openNames(rel string) (*os.File, error) {
	f, err := d.root.OpenFile(rel, forNames, 0)
	if err == nil {
		return f, nil
	}
	if info, serr := d.root.Stat(rel); serr == nil && !info.IsDir() {
		return nil, noDirectory(rel)
	}
	return nil, classify(rel, err)
}

func noDirectory(rel string) *Error {
	return Errorf(InvalidArgument, "name a directory", "%s is not a directory", quote(rel))
}

// readEntries selects entries of the directory at rel, sorted by name, and closes it.
func (d *Dir) readEntries(ctx context.Context, opened *os.File, rel string, s *selection) error {
	defer opened.Close()
	if err := d.forCallers(rel, opened); err != nil {
		return err
	}
	f, err := d.lazily(opened, rel)
	if err != nil {
		return classify(rel, err)
	}
	defer f.Close()
	above := rel + "/"
	if rel == "." {
		above = ""
	}
	for {
		batch, err := f.ReadDir(1024)
		for _, e := range batch {
			if err := ctx.Err(); err != nil { // the rules may be ten thousand patterns
				return err
			}
			if err := s.add(rel, Entry{Name: e.Name(), Path: above + e.Name(), Type: typeOf(e.Type())}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			s.sort()
			return nil
		}
		if err != nil {
			return classify(rel, err)
		}
	}
}

// lazily opens a directory again, whose entries are then read without a look at each, as for a file of an [os.Root]: most
// are never shown. The path serves file systems that do not store types with names.
func (d *Dir) lazily(dir *os.File, rel string) (*os.File, error) {
	syscall.ForkLock.RLock() // no program may start in between and keep it
	fd, err := syscall.Dup(int(dir.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Root(), rel)), nil
}

// WalkOptions narrow a walk. The zero value walks everything that listings show.
type WalkOptions struct {
	All      bool             // ignored entries too
	Skip     func(Entry) bool // leaves out more entries; nil: none
	MaxDepth int              // levels to visit below the start; 0: all
}

// Reasons why a walk leaves out the contents of a directory.
const (
	UnreadDepth      = "max_depth"
	UnreadPermission = "permission denied"
)

// A Visitor receives the entries of a walk. Enter is called for every entry, sorted by name, and for a directory before
// its contents; Leave is called for every directory after them. unread is the reason why the contents were not visited,
// UnreadDepth or UnreadPermission, or "" if they were. An error of Enter ends the walk.
type Visitor struct {
	Enter func(Entry) error
	Leave func(e Entry, unread string)
}

// Walk visits every entry below the directory at dir that is not ignored. Symbolic links are visited and never
// followed. More than MaxEntries entries are InvalidArgument.
func (d *Dir) Walk(ctx context.Context, dir string, o WalkOptions, v Visitor) error {
	rel, err := d.readable(dir)
	if err != nil {
		return err
	}
	ignored, err := d.ignored(o.All)
	if err != nil {
		return err
	}
	w := &walk{dir: d, ignored: ignored, o: o, v: v}
	return w.visit(ctx, rel, 1)
}

type walk struct {
	dir     *Dir
	ignored Ignore
	o       WalkOptions
	v       Visitor
	seen    int
}

func (w *walk) visit(ctx context.Context, rel string, depth int) error {
	shown := selection{keep: func(e Entry) bool { return !w.ignored.skips(e) && (w.o.Skip == nil || !w.o.Skip(e)) }}
	opened, err := w.dir.openNames(rel)
	if err != nil {
		return err
	}
	// Only one directory is open at a time, however deep the tree.
	if err := w.dir.readEntries(ctx, opened, rel, &shown); err != nil {
		return err
	}
	for _, e := range shown.list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.seen++; w.seen > MaxEntries {
			return Errorf(InvalidArgument, "start at a smaller directory, exclude more or lower the depth",
				"the walk has more than %d entries", MaxEntries)
		}
		if err := w.v.Enter(e); err != nil {
			return err
		}
		if e.Type == Directory {
			if err := w.descend(ctx, e, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// descend visits the contents of the directory e, which is depth levels below the start.
func (w *walk) descend(ctx context.Context, e Entry, depth int) error {
	unread := ""
	if w.o.MaxDepth > 0 && depth >= w.o.MaxDepth {
		unread = UnreadDepth
	} else if err := w.visit(ctx, e.Path, depth+1); errors.Is(err, fs.ErrPermission) {
		unread = UnreadPermission
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed since: nothing is in it
		return err
	}
	w.v.Leave(e, unread)
	return nil
}
