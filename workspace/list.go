package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// MaxEntries is how many entries of one directory are read, and how many entries one Walk visits: more do not help a
// reader, and a listing is held in memory to be sorted.
const MaxEntries = 100_000

// Type says what an entry is.
type Type string

// The types. A symbolic link is listed as what it is, not as what it points to.
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

// An Info is an entry with what the file system says about it.
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

// ReadDir returns the entries of the directory at dir that are not ignored, sorted by name. A directory with more
// than MaxEntries entries is InvalidArgument.
func (d *Dir) ReadDir(ctx context.Context, dir string) ([]Info, error) {
	rel, err := d.Rel(dir)
	if err != nil {
		return nil, err
	}
	rules, err := d.rules()
	if err != nil {
		return nil, err
	}
	entries, sub, err := d.entries(ctx, rel)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		if err := ctx.Err(); err != nil { // before the rules, which may be ten thousand patterns
			return nil, err
		}
		if rules.skips(e) {
			continue
		}
		info, err := sub.Lstat(e.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, classify(e.Path, err)
		}
		e.Type = typeOf(info.Mode())
		full := Info{Entry: e, Modified: info.ModTime()}
		if e.Type == File {
			full.Size = info.Size()
		}
		infos = append(infos, full)
	}
	return infos, nil
}

// entries returns all entries of the directory at rel, sorted by name, and the directory itself, which the caller
// closes.
func (d *Dir) entries(ctx context.Context, rel string) (list []Entry, sub *os.Root, err error) {
	info, err := d.root.Stat(rel)
	if err != nil {
		return nil, nil, classify(rel, err)
	}
	if !info.IsDir() {
		return nil, nil, Errorf(InvalidArgument, "name a directory", "%s is not a directory", quote(rel))
	}
	if sub, err = d.root.OpenRoot(rel); err != nil {
		return nil, nil, classify(rel, err)
	}
	if list, err = readEntries(ctx, sub, rel); err != nil {
		sub.Close()
		return nil, nil, err
	}
	return list, sub, nil
}

func readEntries(ctx context.Context, sub *os.Root, rel string) ([]Entry, error) {
	f, err := sub.Open(".")
	if err != nil {
		return nil, classify(rel, err)
	}
	defer f.Close()
	var list []Entry
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := f.ReadDir(1024)
		for _, e := range batch {
			list = append(list, Entry{Name: e.Name(), Path: path.Join(rel, e.Name()), Type: typeOf(e.Type())})
		}
		if len(list) > MaxEntries {
			return nil, Errorf(InvalidArgument, "name a smaller directory",
				"%s has more than %d entries", quote(rel), MaxEntries)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, classify(rel, err)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// WalkOptions narrow a walk. The zero value walks everything that is not ignored.
type WalkOptions struct {
	Exclude  Ignore // leaves out what it matches, too; paths are matched relative to the root
	MaxDepth int    // how many levels below the start are visited; 0: all
}

// Why the contents of a directory were left out of a walk.
const (
	UnreadDepth      = "max_depth"
	UnreadPermission = "permission denied"
)

// A Visitor receives the entries of a walk: Enter for every entry, sorted by name, a directory before its contents, and
// Leave for every directory after them. Unread says why its contents were not visited: UnreadDepth,
// UnreadPermission, or "" if they were. An error of Enter ends the walk.
type Visitor struct {
	Enter func(Entry) error
	Leave func(e Entry, unread string)
}

// Walk visits every entry below the directory at dir that is not ignored. Symbolic links are visited and never
// followed. More than MaxEntries entries are InvalidArgument.
func (d *Dir) Walk(ctx context.Context, dir string, o WalkOptions, v Visitor) error {
	rel, err := d.Rel(dir)
	if err != nil {
		return err
	}
	rules, err := d.rules()
	if err != nil {
		return err
	}
	w := &walk{dir: d, rules: rules, o: o, v: v}
	return w.visit(ctx, rel, 1)
}

type walk struct {
	dir   *Dir
	rules rules
	o     WalkOptions
	v     Visitor
	seen  int
}

func (w *walk) visit(ctx context.Context, rel string, depth int) error {
	entries, sub, err := w.dir.entries(ctx, rel)
	if err != nil {
		return err
	}
	sub.Close() // only one directory is open at a time, however deep the tree
	for _, e := range entries {
		if err := ctx.Err(); err != nil { // likewise
			return err
		}
		if w.rules.skips(e) || w.o.Exclude.Match(e.Path, e.Type == Directory) {
			continue
		}
		if w.seen++; w.seen > MaxEntries {
			return Errorf(InvalidArgument, "start at a smaller directory, exclude more or lower the depth",
				"the walk meets more than %d entries", MaxEntries)
		}
		if err := w.v.Enter(e); err != nil {
			return err
		}
		if e.Type != Directory {
			continue
		}
		if err := w.descend(ctx, e, depth); err != nil {
			return err
		}
	}
	return nil
}

// descend visits the contents of the directory e, which is depth levels below the start.
func (w *walk) descend(ctx context.Context, e Entry, depth int) error {
	if w.o.MaxDepth > 0 && depth >= w.o.MaxDepth {
		w.v.Leave(e, UnreadDepth)
		return nil
	}
	unread := ""
	err := w.visit(ctx, e.Path, depth+1)
	switch {
	case errors.Is(err, fs.ErrPermission):
		unread = UnreadPermission
	case err != nil && !errors.Is(err, fs.ErrNotExist): // removed since: nothing is in it
		return err
	}
	w.v.Leave(e, unread)
	return nil
}
