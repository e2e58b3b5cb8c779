package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// mirrors is where the copies of everything that was saved are, under the names of the files. A name that is taken there,
// by the mirrors of a directory that stood in its place once, or of a file where now a directory is, is looked for one
// level down, in a directory that no caller can name.
const mirrors = own + "/audit"

// A mirror is the open copy of everything that was saved at a path.
type mirror struct {
	file *os.File
	name string // in the root
	size int64  // when it was opened
}

// openMirror opens the mirror of the file rel, for the holder of the lock. Its errors are complete.
func (d *Dir) openMirror(rel string) (*mirror, error) {
	name, err := d.mirrorName(rel)
	if err == nil {
		err = d.root.MkdirAll(path.Dir(name), 0o700)
	}
	if err != nil {
		return nil, mirrorError(rel, name, err)
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, mirrorError(rel, name, err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, mirrorError(rel, name, err)
	}
	return &mirror{f, name, size}, nil
}

// mirrorName finds the name whose parents are directories, and which is none itself. Each level that is left behind
// exists, so that the search ends.
func (d *Dir) mirrorName(rel string) (string, error) {
	for tree := mirrors; ; tree += "/" + own {
		name := tree + "/" + rel
		info, err := d.root.Lstat(name)
		switch {
		case errors.Is(err, syscall.ENOTDIR), err == nil && info.IsDir():
			continue
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return name, nil
		}
		return name, err
	}
}

// add writes the data of a draft behind what the mirror holds, and a line before it where it replaces something. What
// fails is taken back.
func (m *mirror) add(data *draft, line bool) error {
	var err error
	if line {
		err = m.overwriteLine()
	}
	if err == nil {
		err = data.copyTo(m.file)
	}
	if err == nil {
		err = m.file.Sync()
	}
	if err != nil {
		return errors.Join(err, m.undo())
	}
	return nil
}

// undo takes back what was added.
func (m *mirror) undo() error { return m.file.Truncate(m.size) }

// overwriteLine writes the line, on a line of its own.
func (m *mirror) overwriteLine() error {
	now := time.Now()
	line := fmt.Sprintf("--- mcsh:overwrite ts=%s record_id=%d ---\n", now.UTC().Format(time.RFC3339), now.UnixNano())
	if m.size > 0 {
		last := make([]byte, 1)
		if _, err := m.file.ReadAt(last, m.size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err := io.WriteString(m.file, line)
	return err
}

// mirrorError says that nothing is saved without its mirror. A full disk is told as such.
func mirrorError(rel, name string, err error) error {
	var p *fs.PathError
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if errors.As(err, &p) {
		err = p.Err
	}
	return Errorf(IoError, "look at what is there", "%s was not saved: its mirror %s cannot be written: %w", quote(rel), quote(name), err)
}
