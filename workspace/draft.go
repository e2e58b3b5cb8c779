package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// drafts is where files are written until they are complete.
const drafts = own + "/tmp"

// A draft is a file that is not in its place yet. Its lock says that somebody writes it: one that a killed process has
// left is removed by the next writer.
type draft struct {
	d       *Dir
	name    string
	file    *os.File
	size    int64
	renamed bool
}

func (d *Dir) newDraft() (*draft, error) {
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

// sweep removes drafts that nobody writes. What cannot be removed is left to the next writer.
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

// fill writes all of in to the draft. Of data that is longer than max, little more than that is read.
func (x *draft) fill(ctx context.Context, in io.Reader, max int64) error {
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
		if _, err := x.file.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(rerr, io.EOF):
			return nil
		case rerr != nil:
			return &inputError{rerr}
		}
	}
}

// copyTo writes what the draft holds to w.
func (x *draft) copyTo(w io.Writer) error {
	_, err := io.Copy(w, io.NewSectionReader(x.file, 0, x.size))
	return err
}

// data returns what was saved, which stays the same when the file is replaced. A draft whose data was joined to other is
// removed: it has no name any more.
func (x *draft) data() (io.ReadCloser, error) {
	_ = flock.Unlock(x.file) // the file may be locked by whom it belongs to now
	if !x.renamed {
		_ = x.d.root.Remove(x.name) // else the next writer removes it
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(x.file, 0, x.size), x.file}, nil
}

// discard removes a draft that is not in its place.
func (x *draft) discard() {
	if !x.renamed {
		_ = x.d.root.Remove(x.name) // else the next writer removes it
	}
	x.file.Close()
}
