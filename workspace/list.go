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

// MaxEntries bounds the entries of one directory, and those that one Walk visits: more do not help a reader, and a listing
// is sorted in memory.
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

// ReadDir returns the entries of the directory at dir that are not ignored, sorted by name. For a directory with more than
// MaxEntries entries the error is InvalidArgument.
func (d *Dir) ReadDir(ctx context.Context, dir string) ([]Info, error) {
	rel, err := d.readable(dir)
	if err != nil {
		return nil, err
	}
	ignored, err := d.ignored()
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
		if err := ctx.Err(); err != nil { // the rules may be ten thousand patterns
			return nil, err
		}
		if ignored.skips(e) {
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
	Exclude  Ignore // leaves out more entries; paths are matched relative to the root
	MaxDepth int    // levels to visit below the start; 0: all
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
	ignored, err := d.ignored()
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
	entries, sub, err := w.dir.entries(ctx, rel)
	if err != nil {
		return err
	}
	sub.Close() // only one directory is open at a time, however deep the tree
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.ignored.skips(e) || w.o.Exclude.Match(e.Path, e.Type == Directory) {
			continue
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
