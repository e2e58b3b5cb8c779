package workspace

import (
	"context"
	"crypto/rand"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// drafts is the directory of incomplete files.
const drafts = own + "/tmp"

// A draft is a file that is not in its place yet. Its writer holds its lock, so the next writer can remove the draft of a
// killed process.
type draft struct {
	d       *Dir
	name    string
	file    *os.File
	size    int64 // of the data
	renamed bool

	separator string // before appended data: a newline, or nothing

	mirror string // once it is saved, the name of the mirror
	record int64  // and the time
}

func (d *Dir) newDraft() (*draft, error) {
	if err := d.unlinked(drafts); err != nil {
		return nil, err
	}
	if err := d.root.MkdirAll(drafts, 0o700); err != nil {
		return nil, err
	}
	d.sweep()
	name := drafts + "/" + rand.Text()
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	x := &draft{d: d, name: name, file: f}
	if _, err := flock.Try(f); err != nil {
		x.discard()
		return nil, err
	}
	return x, nil
}

// sweep removes drafts without a writer. The next writer retries failures.
func (d *Dir) sweep() {
	list, err := fs.ReadDir(d.root.FS(), drafts)
	if err != nil {
		return
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue // a new one may not be locked yet
		}
		f, err := d.root.OpenFile(drafts+"/"+e.Name(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if free, _ := flock.Try(f); free {
			_ = d.root.Remove(drafts + "/" + e.Name())
		}
		f.Close()
	}
}

// fill writes all of in to the draft, and calls charge before each piece. It reads little more than max bytes.
func (x *draft) fill(ctx context.Context, in io.Reader, max int64, charge func(n int) error) error {
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return &inputError{context.Cause(ctx)}
		}
		n, rerr := in.Read(buf)
		x.size += int64(n)
		if max > 0 && x.size > max {
			return &inputError{ErrOversize}
		}
		if err := charge(n); err != nil {
			return err
		}
		if _, err := x.file.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case rerr == io.EOF:
			return nil
		case rerr != nil:
			return &inputError{rerr}
		}
	}
}

// copyTo writes the separator and the data to w.
func (x *draft) copyTo(w io.Writer) error {
	if _, err := io.WriteString(w, x.separator); err != nil {
		return err
	}
	_, err := io.Copy(w, io.NewSectionReader(x.file, 0, x.size))
	return err
}

// copySize returns the number of bytes that copyTo writes.
func (x *draft) copySize() int64 { return int64(len(x.separator)) + x.size }

// data returns the saved data, which stays the same when the file is replaced. It unlinks a draft that was appended to a
// file.
func (x *draft) data() io.ReadCloser {
	_ = flock.Unlock(x.file) // the file belongs to its users now, who may lock it
	if !x.renamed {
		_ = x.d.root.Remove(x.name) // else the next writer removes it
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(x.file, 0, x.size), x.file}
}

// discard removes a draft that is not in its place.
func (x *draft) discard() {
	if !x.renamed {
		_ = x.d.root.Remove(x.name) // else the next writer removes it
	}
	x.file.Close()
}
