package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// The records besides versions.
const (
	trashDir   = records + "/.trash" // ID is what was deleted, ID.history its versions
	moveLog    = records + "/.moves"
	deleteLog  = records + "/.deletes"
	pending    = records + "/.pending" // the change that is being made
	ignoreAll  = records + "/.gitignore"
	historyEnd = ".history"
)

// reserved are the names in the directory of records that are no versions. Those of files with such a name are in named.
var reserved = []string{".trash", ".moves", ".deletes", ".pending", ".gitignore", path.Base(named)}

const named = records + "/.named"

// versionsOf returns the directory of the versions of a file, or of all files in a directory.
func versionsOf(rel string) string {
	first, _, _ := strings.Cut(rel, "/")
	if slices.ContainsFunc(reserved, func(name string) bool { return texts.SameName(first, name) }) {
		return named + "/" + rel
	}
	return records + "/" + rel
}

// A Deleted is an entry of the trash.
type Deleted struct {
	ID   int64
	Path string // where it was
	Type Type
	Size int64     // bytes, of a file
	Time time.Time // of the deletion
}

// Move renames a file or directory, with all its versions. Nothing may be at to; missing directories above it are made.
func (h *History) Move(ctx context.Context, from, to string) (src, dst string, err error) {
	err = h.locked(ctx, from, func() error {
		if src, err = h.changeableLink(from); err != nil {
			return err
		}
		if _, err := h.d.root.Lstat(src); err != nil {
			return err
		}
		if dst, err = h.changeableLink(to); err != nil {
			return err
		}
		if _, inside := under(dst, src); inside {
			return Errorf(InvalidArgument, "", "%s cannot be moved into itself", quote(src))
		}
		if err := h.arrive(dst); err != nil {
			return err
		}
		return h.change(ctx, logLine{what: moved, from: src, to: dst})
	})
	return src, dst, err
}

// Delete moves a file or directory to the trash, with all its versions.
func (h *History) Delete(ctx context.Context, name string) (gone Deleted, err error) {
	err = h.locked(ctx, name, func() error {
		rel, err := h.changeableLink(name)
		if err != nil {
			return err
		}
		info, err := h.d.root.Lstat(rel)
		if err != nil {
			return classify(rel, err)
		}
		gone = Deleted{Path: rel, Type: typeOf(info.Mode())}
		if gone.Type == File {
			gone.Size = info.Size()
		}
		if gone.Type == File && h.o.Versions {
			if _, err := h.openAndRecord(ctx, rel, info); err != nil {
				return err
			}
		}
		if gone.ID, err = h.nextID(); err != nil {
			return err
		}
		return h.change(ctx, logLine{what: deleted, from: rel, id: gone.ID})
	})
	return gone, err
}

// Restore puts an entry of the trash back to where it was, with its versions, and returns the path.
func (h *History) Restore(ctx context.Context, id int64) (rel string, err error) {
	err = h.locked(ctx, fmt.Sprintf("entry %d", id), func() error {
		list, err := h.Trash(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(e Deleted) bool { return e.ID == id })
		if i < 0 {
			return Errorf(NotFound, "list_trash lists all entries", "the trash has no entry %d", id)
		}
		if rel, err = h.changeableLink(list[i].Path); err != nil {
			return err
		}
		if err := h.arrive(rel); err != nil {
			return err
		}
		return h.change(ctx, logLine{what: restored, to: rel, id: id})
	})
	return rel, err
}

// Trash returns the entries of the trash, newest first.
func (h *History) Trash(ctx context.Context) ([]Deleted, error) {
	there := map[int64]Deleted{}
	for l, err := range h.d.readLog(deleteLog) {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		switch l.what {
		case deleted:
			there[l.id] = Deleted{ID: l.id, Path: l.from, Time: l.time}
		case restored:
			delete(there, l.id)
		}
	}
	var list []Deleted
	for _, e := range there {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info, err := h.d.root.Lstat(trashName(e.ID))
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody else has removed it
		}
		if err != nil {
			return nil, classify(trashName(e.ID), err)
		}
		if e.Type = typeOf(info.Mode()); e.Type == File {
			e.Size = info.Size()
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Deleted) int { return int(b.ID - a.ID) })
	return list, nil
}

func trashName(id int64) string { return trashDir + "/" + strconv.FormatInt(id, 10) }

// nextID returns the number after all that the trash has used.
func (h *History) nextID() (int64, error) {
	last, err := h.d.lastID()
	if err != nil {
		return 0, err
	}
	for id := last + 1; ; id++ { // the log may have been removed
		_, err = h.d.root.Lstat(trashName(id))
		_, err2 := h.d.root.Lstat(trashName(id) + historyEnd)
		if errors.Is(err, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist) {
			return id, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
}

// arrive makes the directories above rel, where nothing may be.
func (h *History) arrive(rel string) error {
	if _, err := h.d.root.Lstat(rel); err == nil {
		return Errorf(AlreadyExists, "move it or delete it first", "%s exists", quote(rel))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return classify(rel, err)
	}
	if err := h.d.notGit(rel); err != nil {
		return err
	}
	return h.d.root.MkdirAll(path.Dir(rel), 0o755)
}

// A pendingChange is on the disk while it is made, so that the next change can complete it for a killed process. Its line
// says which two renames it makes: of an entry, and of its versions. They are made only of the entries with these inodes: a
// later one of the same name is not meant.
type pendingChange struct {
	Line   string    `json:"line"` // to append to its log
	Inodes [2]uint64 `json:"inodes"`
	Copies [2]uint64 `json:"copies"` // the inodes of complete copies on another file system

	logLine
}

type rename struct{ from, to string }

// renames returns those of an entry and of its versions.
func (l logLine) renames() [2]rename {
	at := trashName(l.id)
	switch l.what {
	case deleted:
		return [2]rename{{l.from, at}, {versionsOf(l.from), at + historyEnd}}
	case restored:
		return [2]rename{{at, l.to}, {at + historyEnd, versionsOf(l.to)}}
	}
	return [2]rename{{l.from, l.to}, {versionsOf(l.from), versionsOf(l.to)}}
}

// change renames an entry and its versions, and writes a line to a log. If it fails, all is as before. ctx ends only copies to
// another file system.
func (h *History) change(ctx context.Context, l logLine) error {
	if err := h.makeRecords(trashDir); err != nil {
		return err
	}
	var c pendingChange
	for i, r := range l.renames() {
		info, err := h.d.root.Lstat(r.from)
		if i == 1 && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !info.IsDir()) {
			continue // no versions
		}
		if err != nil {
			return err
		}
		c.Inodes[i] = inode(info)
	}
	var err error
	if to := l.renames()[1].to; c.Inodes[1] != 0 {
		if err := h.clear(to, to); err != nil {
			return err
		}
	}
	if l.time, err = h.now(); err != nil {
		return err
	}
	c.logLine, c.Line = l, l.text()
	if err := h.storePending(c); err != nil {
		return err
	}
	return h.carryOut(ctx, c)
}

func (h *History) storePending(c pendingChange) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return h.d.store(pending, strings.NewReader(string(text)+"\n"))
}

// setAside moves old versions to the trash.
func (h *History) setAside(versions string) error {
	if err := h.makeRecords(trashDir); err != nil {
		return err
	}
	id, err := h.nextID()
	if err != nil {
		return err
	}
	when, err := h.now()
	if err != nil {
		return err
	}
	of := strings.TrimPrefix(strings.TrimPrefix(versions, named+"/"), records+"/")
	if err := h.log(logLine{time: when, what: setAside, id: id, from: of}); err != nil {
		return err
	}
	return h.d.root.Rename(versions, trashName(id)+historyEnd)
}

// clear makes room for the versions in dir, and for the file head, or for dir itself if both are the same. It sets
// aside versions in the way: those of a file that somebody else has removed, or that is a directory now, or was one.
func (h *History) clear(dir, head string) error {
	if info, err := h.d.root.Lstat(head); err == nil && !info.Mode().IsRegular() {
		return h.setAside(head)
	}
	for at := dir; at != records; at = path.Dir(at) {
		if info, err := h.d.root.Lstat(at); err == nil && info.Mode().IsRegular() {
			return h.setAside(at)
		}
	}
	return nil
}

// maxPending is more than a pendingChange takes.
const maxPending = 2 * maxLogLine

// settle completes the change of a killed process. Others may have written the file: it can move only what a caller may.
func (h *History) settle(ctx context.Context) error {
	text, err := h.d.record(pending, maxPending)
	if KindOf(err) == NotFound {
		return nil
	}
	var c pendingChange
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil {
		c.logLine, err = h.pendingLine(c.Line)
	}
	if err != nil {
		return Errorf(IoError, "look at it, and remove it", "%s cannot be read: %w", pending, err)
	}
	return h.carryOut(ctx, c)
}

// pendingLine reads the line of a change, and refuses one that no caller could have made.
func (h *History) pendingLine(text string) (logLine, error) {
	l, ok := parseLog(strings.TrimSuffix(text, "\n"))
	var places []string
	switch l.what {
	case moved:
		places = []string{l.from, l.to}
	case deleted, restored:
		places = []string{l.from + l.to}
	}
	if !ok || places == nil {
		return l, errors.New("its line is unknown")
	}
	for _, rel := range places {
		if at, err := h.changeableLink(rel); err != nil {
			return l, err
		} else if at != rel {
			return l, fmt.Errorf("%s goes through a symbolic link", quote(rel))
		}
	}
	if l.to == "" {
		return l, nil
	}
	return l, h.d.notGit(l.to)
}

// carryOut makes the steps of a change that have not been made, or takes back all if one fails.
func (h *History) carryOut(ctx context.Context, c pendingChange) error {
	err := h.renameAll(ctx, &c)
	if err == nil {
		step("log")
		last, ok, lerr := h.d.lastLine(c.file())
		if err = lerr; err == nil && (!ok || last.text() != c.Line) {
			err = h.log(c.logLine)
		}
	}
	if err != nil {
		renames := c.renames()
		for i, r := range slices.Backward(renames[:]) {
			err = errors.Join(err, h.takeBack(r, c.Inodes[i], c.Copies[i]))
		}
	}
	step("done")
	return errors.Join(err, h.d.root.Remove(pending))
}

// takeBack undoes a rename, which may have been a copy.
func (h *History) takeBack(r rename, original, copied uint64) error {
	info, err := h.d.root.Lstat(r.to)
	if err != nil || inode(info) == 0 || inode(info) != original && inode(info) != copied {
		return nil // it was not made
	}
	from, err := h.d.root.Lstat(r.from)
	switch {
	case err == nil && !from.IsDir() && inode(info) == copied:
		return h.d.root.Remove(r.to)
	case err == nil:
		return nil // a part of a directory may be missing there: the copy stays
	case inode(info) == copied:
		return h.d.moveTree(context.Background(), r.to, r.from, nil)
	}
	return h.d.renameNew(r.to, r.from)
}

func (h *History) renameAll(ctx context.Context, c *pendingChange) error {
	for i, r := range c.renames() {
		info, err := h.d.root.Lstat(r.from)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && inode(info) != c.Inodes[i] {
			continue // it was renamed before
		}
		if err != nil {
			return err
		}
		if copied, err := h.d.root.Lstat(r.to); err == nil && c.Copies[i] != 0 && inode(copied) == c.Copies[i] {
			if err := h.d.root.RemoveAll(r.from); err != nil {
				return err
			}
			continue
		}
		if err := h.d.root.MkdirAll(path.Dir(r.to), 0o700); err != nil {
			return err
		}
		step("rename")
		err = h.d.moveTree(ctx, r.from, r.to, func(copied fs.FileInfo) error {
			c.Copies[i] = inode(copied)
			return h.storePending(*c)
		})
		if err != nil {
			return err
		}
		h.d.syncDir(path.Dir(r.from))
		h.d.syncDir(path.Dir(r.to))
	}
	return nil
}

// inode identifies an entry as long as it exists.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
