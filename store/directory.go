package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A Directory is a store in a directory, which machines may share.
type Directory struct{ root *os.Root }

const (
	temporary = ".new-"   // begins the names of files that are being written
	leftover  = time.Hour // the age at which such a file is removed
)

// OpenDirectory makes the directory if it is missing, readable for its owner only.
func OpenDirectory(name string) (*Directory, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of the store: %w", err)
	}
	return &Directory{root}, nil
}

// Close closes the directory.
func (d *Directory) Close() error { return d.root.Close() }

// Put implements [Store]. The file gets its name when it is whole and on the disk.
func (d *Directory) Put(ctx context.Context, name string, data io.Reader, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, err := d.root.Lstat(name); err == nil {
		return ErrExists
	}
	dir := path.Dir(name)
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of an object: %w", err)
	}
	written := path.Join(dir, temporary+rand.Text())
	defer d.root.Remove(written) //nolint:errcheck // removed as a leftover otherwise
	if err := d.write(ctx, written, data, size); err != nil {
		return err
	}
	err := d.root.Link(written, name)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	if err != nil {
		return fmt.Errorf("naming an object: %w", err)
	}
	return d.sync(dir)
}

// write writes a file of a size.
func (d *Directory) write(ctx context.Context, name string, data io.Reader, size int64) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making the file of an object: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(&cancelled{ctx, data}, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("an object of %d bytes was announced with %d", n, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("writing an object: %w", err)
	}
	return nil
}

// sync writes the names in a folder to the disk.
func (d *Directory) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return fmt.Errorf("naming an object: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("naming an object: %w", err)
	}
	return nil
}

// Get implements [Store].
func (d *Directory) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if info, err := d.root.Lstat(name); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotFound
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("opening an object: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening an object: %w", err)
	}
	if length < 0 {
		length = info.Size()
	}
	section := io.NewSectionReader(f, offset, max(min(length, info.Size()-offset), 0))
	return struct {
		io.Reader
		io.Closer
	}{&cancelled{ctx, section}, f}, nil
}

// List implements [Store]. It also removes what was left of objects that were not written.
func (d *Directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if _, err := d.list(ctx, ".", prefix, yield); err != nil {
			yield(Object{}, fmt.Errorf("listing the store: %w", err))
		}
	}
}

// list yields what is in a folder, and reports whether more is wanted.
func (d *Directory) list(ctx context.Context, dir, prefix string, yield func(Object, error) bool) (more bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // it has just been removed
	}
	if err != nil {
		return false, err
	}
	// In the order of the names of objects, "a.b" comes before what is in "a".
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortName(a), sortName(b)) })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/") {
				continue
			}
			if more, err = d.list(ctx, name, prefix, yield); err != nil || !more {
				return false, err
			}
		case strings.HasPrefix(e.Name(), temporary):
			d.removeLeftover(name)
		case e.Type().IsRegular() && strings.HasPrefix(name, prefix) && checkName(name) == nil:
			info, err := e.Info()
			if err == nil && !yield(Object{Name: name, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// removeLeftover removes a file that nobody writes any more.
func (d *Directory) removeLeftover(name string) {
	if info, err := d.root.Lstat(name); err == nil && time.Since(info.ModTime()) > leftover {
		_ = d.root.Remove(name) // the next list tries again
	}
}

// Delete implements [Store]. It leaves no empty folder, unless somebody is writing to it.
func (d *Directory) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an object: %w", err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if d.root.Remove(dir) != nil {
			break // it is not empty
		}
	}
	return nil
}

// A cancelled reader fails when its context is done.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelled) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
