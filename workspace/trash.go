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

// reserved are the names in the directory of records that are no versions.
var reserved = []string{".trash", ".moves", ".deletes", ".pending", ".gitignore"}

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
		if src, err = h.placeOf(from); err != nil {
			return err
		}
		if _, err := h.d.root.Lstat(src); err != nil {
			return err
		}
		if dst, err = h.placeOf(to); err != nil {
			return err
		}
		if _, inside := under(dst, src); inside {
			return Errorf(InvalidArgument, "", "%s cannot be moved into itself", quote(src))
		}
		if err := h.arrive(dst); err != nil {
			return err
		}
		return h.change(logLine{what: moved, from: src, to: dst}, src, dst, records+"/"+src, records+"/"+dst)
	})
	return src, dst, err
}

// Delete moves a file or directory to the trash, with all its versions.
func (h *History) Delete(ctx context.Context, name string) (gone Deleted, err error) {
	err = h.locked(ctx, name, func() error {
		rel, err := h.placeOf(name)
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
			if _, err := h.current(ctx, rel, info); err != nil {
				return err
			}
		}
		if gone.ID, err = h.nextID(); err != nil {
			return err
		}
		at := trashName(gone.ID)
		return h.change(logLine{what: deleted, from: rel, id: gone.ID}, rel, at, records+"/"+rel, at+historyEnd)
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
		if rel, err = h.placeOf(list[i].Path); err != nil {
			return err
		}
		if err := h.arrive(rel); err != nil {
			return err
		}
		at := trashName(id)
		return h.change(logLine{what: restored, to: rel, id: id}, at, rel, at+historyEnd, records+"/"+rel)
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
	last := int64(0)
	for l, err := range h.d.readLog(deleteLog) {
		if err != nil {
			return 0, err
		}
		last = max(last, l.id)
	}
	for id := last + 1; ; id++ { // the log may have been removed
		_, err := h.d.root.Lstat(trashName(id))
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

// A pendingChange is on the disk while it is made, so that the next change can complete it for a killed process.
type pendingChange struct {
	Renames []rename `json:"renames"`
	File    string   `json:"file"` // a log
	Line    string   `json:"line"` // to append to it
}

// A rename is made only of the entry with this inode: a later one of the same name is not meant.
type rename struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Inode uint64 `json:"inode"`
}

// change renames an entry and its versions, and writes a line to a log. If it fails, all is as before.
func (h *History) change(l logLine, from, to, versionsFrom, versionsTo string) error {
	if err := h.makeRecords(trashDir); err != nil {
		return err
	}
	var c pendingChange
	for _, r := range []rename{{From: from, To: to}, {From: versionsFrom, To: versionsTo}} {
		info, err := h.d.root.Lstat(r.From)
		if errors.Is(err, fs.ErrNotExist) && r.From == versionsFrom {
			continue
		}
		if err != nil {
			return err
		}
		r.Inode = inode(info)
		c.Renames = append(c.Renames, r)
	}
	var err error
	if len(c.Renames) > 1 {
		if err := h.makeRoom(versionsTo); err != nil {
			return err
		}
	}
	if l.time, err = h.now(); err != nil {
		return err
	}
	c.File, c.Line = l.file(), l.text()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := h.store(pending, strings.NewReader(string(text)+"\n")); err != nil {
		return err
	}
	return h.carryOut(c, l)
}

// makeRoom moves versions to the trash that are left of a file that somebody else has removed.
func (h *History) makeRoom(versions string) error {
	if _, err := h.d.root.Lstat(versions); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
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
	if err := h.log(logLine{time: when, what: setAside, id: id, from: strings.TrimPrefix(versions, records+"/")}); err != nil {
		return err
	}
	return h.d.root.Rename(versions, trashName(id)+historyEnd)
}

// settle completes the change of a killed process.
func (h *History) settle() error {
	text, err := h.d.root.ReadFile(pending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var c pendingChange
	if err := json.Unmarshal(text, &c); err != nil {
		return Errorf(IoError, "look at it, and remove it", "%s cannot be read: %w", pending, err)
	}
	l, ok := parseLog(strings.TrimSuffix(c.Line, "\n"))
	if !ok || l.file() != c.File {
		return Errorf(IoError, "look at it, and remove it", "%s has an unknown line", pending)
	}
	return h.carryOut(c, l)
}

// carryOut makes the steps of a change that have not been made, or takes back all if one fails.
func (h *History) carryOut(c pendingChange, l logLine) error {
	err := h.renameAll(c.Renames)
	if err == nil {
		step("log")
		last, ok, lerr := h.d.lastLine(c.File)
		if err = lerr; err == nil && (!ok || last.text() != c.Line) {
			err = h.log(l)
		}
	}
	if err != nil {
		for _, r := range slices.Backward(c.Renames) {
			info, gone := h.d.root.Lstat(r.To)
			if gone == nil && inode(info) == r.Inode {
				err = errors.Join(err, h.d.renameNew(r.To, r.From))
			}
		}
	}
	step("done")
	return errors.Join(err, h.d.root.Remove(pending))
}

func (h *History) renameAll(renames []rename) error {
	for _, r := range renames {
		info, err := h.d.root.Lstat(r.From)
		if errors.Is(err, fs.ErrNotExist) || err == nil && inode(info) != r.Inode {
			continue // it was renamed before
		}
		if err != nil {
			return err
		}
		if err := h.d.root.MkdirAll(path.Dir(r.To), 0o700); err != nil {
			return err
		}
		step("rename")
		if err := h.d.moveTree(r.From, r.To); err != nil {
			return err
		}
		h.d.syncDir(path.Dir(r.From))
		h.d.syncDir(path.Dir(r.To))
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
