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

// mirrors is the directory of copies of all saved data, under the names of the files. If a former directory or file of
// another type occupies a name there, the mirror is one level down, in a directory that no caller can name.
const mirrors = own + "/audit"

// A mirror is the open copy of all data saved at a path.
type mirror struct {
	file *os.File
	name string // in the root
	size int64  // when it was opened
	line bool   // the data follows the line that marks an overwrite
	time time.Time
}

// openMirror opens the mirror of the file rel. The caller holds the lock. Its errors need no more explanation.
func (d *Dir) openMirror(rel string) (*mirror, error) {
	name, err := d.mirrorName(rel)
	if err != nil {
		return nil, mirrorError(rel, name, err)
	}
	if err := d.notGit(name); err != nil { // the mirror may have entries that the file's directory has lost
		return nil, err
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
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
	return &mirror{file: f, name: name, size: size, time: time.Now()}, nil
}

// mirrorName finds a name whose parents are directories, and which is not a directory itself. The search ends, since every
// level that it passes exists.
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

// add appends the data of a draft to the mirror. It rolls back after an error.
func (m *mirror) add(data *draft) error {
	var err error
	if m.line {
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

// undo removes the added data.
func (m *mirror) undo() error { return m.file.Truncate(m.size) }

// unchanged reports whether the mirror has its old size.
func (m *mirror) unchanged() bool {
	info, err := m.file.Stat()
	return err == nil && info.Size() == m.size
}

// maxLine is the maximum length of the line of overwriteLine.
const maxLine = 80

// overwriteLine writes the line that marks an overwrite, after a newline if necessary.
func (m *mirror) overwriteLine() error {
	line := fmt.Sprintf("--- mcsh:overwrite ts=%s record_id=%d ---\n", m.time.UTC().Format(time.RFC3339), m.time.UnixNano())
	ended, err := lineEnded(m.file)
	if err != nil {
		return err
	}
	if !ended {
		line = "\n" + line
	}
	_, err = io.WriteString(m.file, line)
	return err
}

// mirrorError explains that nothing was saved because the mirror failed, and names a full disk.
func mirrorError(rel, name string, err error) error {
	if isFull(err) {
		return err
	}
	return Errorf(IoError, "look at what is there", "%s was not saved: its mirror %s cannot be written: %w", quote(rel), quote(name), withoutPath(err))
}
