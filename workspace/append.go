package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// A journal says what is being written behind a file, so that what a killed process has begun is taken back by the next
// writer. It is in the lock's file. One of a write that has ended does no harm: see [Dir.settle].
type journal struct {
	file     string
	size     int64 // of the file, before
	mirror   string
	mirrored int64 // the size of the mirror, before
	bytes    int64 // that are written behind both
}

const journalForm = "%q %d %q %d %d\n"

// maxJournal is more than two paths need, whatever their bytes are.
const maxJournal = 16 * maxPath

func (j journal) String() string {
	return fmt.Sprintf(journalForm, j.file, j.size, j.mirror, j.mirrored, j.bytes)
}

// readJournal reads the journal in a lock's file. One that is not whole is none: nothing was begun yet.
func readJournal(lock *os.File) (j journal, ok bool) {
	text, err := io.ReadAll(io.NewSectionReader(lock, 0, maxJournal))
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return j, false
	}
	n, err := fmt.Sscanf(string(text), journalForm, &j.file, &j.size, &j.mirror, &j.mirrored, &j.bytes)
	return j, n == 5 && err == nil
}

// extend writes the data behind what the file holds, in its place: it costs what the data costs, however long the file
// is. Data that fails is taken back; what a killed process leaves, by the next writer.
func (d *Dir) extend(lock *os.File, rel string, old fs.FileInfo, data *draft, m *mirror) error {
	f, err := d.root.OpenFile(rel, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(old, info) {
		return Errorf(IoError, "save it again", "%s was not saved: it was replaced meanwhile", quote(rel))
	}
	j := journal{rel, info.Size(), m.name, m.size, data.size}
	if _, err := lock.WriteAt([]byte(j.String()), 0); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	if err := m.add(data, false); err != nil {
		return mirrorError(rel, m.name, err)
	}
	err = data.copyTo(f)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(j.size), m.undo())
	}
	_ = lock.Truncate(0) // else the next writer finds that all of it is there
	return nil
}

// settle takes back what a killed process has begun to write behind a file. It is for the holder of the lock. Nobody is
// kept from saving by what cannot be taken back.
func (d *Dir) settle(lock *os.File) {
	info, err := lock.Stat()
	if err != nil || info.Size() == 0 {
		return
	}
	if j, ok := readJournal(lock); ok {
		d.takeBack(j)
	}
	_ = lock.Truncate(0)
}

// takeBack shortens file and mirror to what they were, if what they hold behind it is beyond doubt the beginning of the
// data: the file may be another by now, or written by others, and the data may be complete.
func (d *Dir) takeBack(j journal) {
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
		return // complete, or written by others: the file is begun when the mirror is complete
	}
	if !same(io.NewSectionReader(f, j.size, behind), io.NewSectionReader(m, j.mirrored, behind)) {
		return
	}
	_ = f.Truncate(j.size)
	_ = m.Truncate(j.mirrored)
}

// reopen opens a regular file of at least this size, and returns how much longer it is; nil if it is not there.
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

// same reports whether two readers hold the same.
func same(a, b io.Reader) bool {
	x, y := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, err := io.ReadFull(a, x)
		k, kerr := io.ReadFull(b, y)
		if n != k || !bytes.Equal(x[:n], y[:n]) {
			return false
		}
		if err != nil || kerr != nil {
			ended := func(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
			return ended(err) && ended(kerr)
		}
	}
}

// alone reports whether a file has one name only: what is written in its place changes no other file, which may even be
// outside of the root.
func alone(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 1
}
