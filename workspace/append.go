package workspace

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// A journal in the lock's file describes an append in progress, so the next writer can roll back that of a killed process.
// The journal of a completed append does no harm: see [Dir.undoAppend].
type journal struct {
	file     string
	size     int64 // of the file before
	mirror   string
	mirrored int64 // the size of the mirror before
	bytes    int64 // to append to both, the separator included
}

const journalForm = "%q %d %q %d %d\n"

// maxJournal is more than two quoted paths can take.
const maxJournal = 16 * maxPath

func (j journal) String() string {
	return fmt.Sprintf(journalForm, j.file, j.size, j.mirror, j.mirrored, j.bytes)
}

// readJournal reads the journal in a lock's file. An incomplete one does not count: its append has not begun.
func readJournal(lock *os.File) (j journal, ok bool) {
	text, err := io.ReadAll(io.NewSectionReader(lock, 0, maxJournal))
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return j, false
	}
	n, err := fmt.Sscanf(string(text), journalForm, &j.file, &j.size, &j.mirror, &j.mirrored, &j.bytes)
	return j, n == 5 && err == nil
}

// separate sets the separator, so that appended data begins on a new line. Empty data needs none.
func (x *draft) separate(rel string) error {
	if x.size == 0 {
		return nil
	}
	f, err := x.d.Open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	ended, err := lineEnded(f)
	if err == nil && !ended {
		x.separator = "\n"
	}
	return err
}

// lineEnded reports whether the next byte of a file begins a line: the file is empty or ends with a newline.
func lineEnded(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return true, err
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] == '\n', err
}

// extend appends the data to the file in place, so the cost does not depend on the length of the file. It rolls back after
// an error; the next writer does so after a killed process.
func (p place) extend(lock *os.File, data *draft) error {
	f, err := p.d.root.OpenFile(p.rel, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(p.old, info) {
		return Errorf(IoError, "save it again", "%s was not saved: it was replaced meanwhile", quote(p.rel))
	}
	m := p.mirror
	j := journal{p.rel, info.Size(), m.name, m.size, data.copySize()}
	if _, err := lock.WriteAt([]byte(j.String()), 0); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	if err := m.add(data); err != nil {
		return mirrorError(p.rel, m.name, err)
	}
	err = data.copyTo(f)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		if torn := f.Truncate(j.size); torn != nil {
			return errors.Join(err, torn) // the mirror keeps what the file holds
		}
		return errors.Join(err, m.undo())
	}
	_ = lock.Truncate(0) // if it fails, the next writer finds all data there
	return nil
}

// undoAppend rolls back the append of a killed process. The caller holds the lock. A failure does not prevent the next save.
func (d *Dir) undoAppend(lock *os.File) {
	info, err := lock.Stat()
	if err != nil || info.Size() == 0 {
		return
	}
	if j, ok := readJournal(lock); ok {
		d.rollBack(j)
	}
	_ = lock.Truncate(0)
}

// rollBack cuts file and mirror to their old sizes, but only if the rest is certainly a part of the data: the file may be
// another by now, or written by others, and the data may be complete.
func (d *Dir) rollBack(j journal) {
	f, behind := d.reopen(j.file, j.size)
	if f == nil {
		return
	}
	defer f.Close()
	m, mirrored := d.reopen(j.mirror, j.mirrored)
	if m == nil {
		return
	}
	defer m.Close()
	if behind >= j.bytes || mirrored > j.bytes || mirrored < j.bytes && behind > 0 {
		return // complete, or written by others: the mirror is complete before the file gets any data
	}
	inFile, ferr := checksum(f, j.size, behind)
	inMirror, merr := checksum(m, j.mirrored, behind)
	if ferr != nil || merr != nil || !bytes.Equal(inFile, inMirror) {
		return
	}
	_ = f.Truncate(j.size)
	_ = m.Truncate(j.mirrored)
}

// reopen opens a regular file of at least this size, and returns how much longer it is; nil if there is none.
func (d *Dir) reopen(rel string, size int64) (*os.File, int64) {
	before, err := d.root.Lstat(rel)
	if err != nil || !before.Mode().IsRegular() {
		return nil, 0
	}
	f, err := d.root.OpenFile(rel, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0
	}
	now, err := f.Stat()
	if err != nil || !os.SameFile(before, now) || now.Size() < size || size < 0 {
		f.Close()
		return nil, 0
	}
	return f, now.Size() - size
}

func checksum(f *os.File, from, n int64) ([]byte, error) {
	h := sha256.New()
	_, err := io.Copy(h, io.NewSectionReader(f, from, n))
	return h.Sum(nil), err
}

// alone reports whether a file has only one name. A write in place would otherwise change a file under another name, which
// may be outside the root.
func alone(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 1
}
