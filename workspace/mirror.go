package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// mirrors is where the copies of everything that was saved are.
const mirrors = own + "/audit"

// mirror writes the data of a draft behind everything that was saved at rel before. A line stands before data that
// replaces the file. undo takes it back, for data that is not saved after all.
func (d *Dir) mirror(rel string, data *draft, behind, replaces bool) (undo func() error, err error) {
	name := mirrors + "/" + rel
	if err := d.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if !behind && (replaces || size > 0) {
		err = overwriteLine(f, size)
	}
	if err == nil {
		err = data.copyTo(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Truncate(size))
	}
	return func() error { return d.shorten(name, size) }, nil
}

// overwriteLine writes the line, on a line of its own.
func overwriteLine(f *os.File, size int64) error {
	now := time.Now()
	line := fmt.Sprintf("--- mcsh:overwrite ts=%s record_id=%d ---\n", now.UTC().Format(time.RFC3339), now.UnixNano())
	if size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err := io.WriteString(f, line)
	return err
}

func (d *Dir) shorten(name string, size int64) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}
