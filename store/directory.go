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
	"sync"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	drafts    = "~drafts" // the folder of what is being written; no name of an object begins so
	draftAge  = time.Hour // after its last change a draft is of a writer that has died
	linkTries = 100       // of a Put whose folder others remove again and again
	batch     = 256       // entries of the folder of drafts that are read at once
)

// A Directory is a [Store] of files. Machines may share it on a network file system that has hard links.
type Directory struct {
	root *os.Root
	info fs.FileInfo // of root

	mu    sync.Mutex
	swept time.Time // when drafts were last removed, by the clock of the store; guarded by mu
}

// OpenDirectory opens a directory, which it makes if there is none. Its file system must have hard links: with them one of
// several writers wins, on a network file system, too.
func OpenDirectory(dir string) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Directory{root: root}
	if d.info, err = root.Stat("."); err == nil {
		err = d.probe()
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("the directory %s cannot be a store; it must be on a file system with hard links that this user can write: %w", dir, err)
	}
	return d, nil
}

// Close closes the directory.
func (d *Directory) Close() error { return d.root.Close() }

// check checks the arguments of a method, and that other gateways that open the store find the same directory.
func (d *Directory) check(ctx context.Context, name string) error {
	if err := checkCall(ctx, name); err != nil {
		return err
	}
	return d.stands()
}

// stands fails once the directory has been removed or replaced.
func (d *Directory) stands() error {
	now, err := os.Stat(d.root.Name())
	if err == nil && !os.SameFile(now, d.info) {
		err = errors.New("another directory has its name")
	}
	if err != nil {
		return fmt.Errorf("the directory of the store was removed or replaced; when it is there, start this gateway again: %w", err)
	}
	return nil
}

// probe makes a link, and removes old drafts.
func (d *Directory) probe() error {
	draft, err := d.draft(nil)
	if err != nil {
		return err
	}
	defer d.root.Remove(draft)
	second := draft + "-2"
	defer d.root.Remove(second)
	return d.root.Link(draft, second)
}

// Put implements [Store].
func (d *Directory) Put(ctx context.Context, name string, data []byte) error {
	if err := cmp.Or(checkPut(ctx, name, data, maxStored), d.stands()); err != nil {
		return err
	}
	draft, err := d.draft(data)
	if err != nil {
		return d.failed("writing", name, err)
	}
	defer d.root.Remove(draft)
	if err := context.Cause(ctx); err != nil {
		return d.failed("writing", name, err)
	}
	if err := d.link(draft, name); err != nil {
		return d.failed("writing", name, err)
	}
	for folder := path.Dir(name); err == nil; folder = path.Dir(folder) { // each may be new
		if err = d.sync(folder); folder == "." {
			break
		}
	}
	return d.failed("writing", name, err)
}

// failed says what failed where. It returns nil for no error.
func (d *Directory) failed(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in the store %s: %w", doing, texts.Quote(name), d.root.Name(), err)
}

// draft writes a file beside the objects and returns its path.
func (d *Directory) draft(data []byte) (_ string, err error) {
	if err := d.root.Mkdir(drafts, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	draft := drafts + "/" + rand.Text()
	f, err := d.root.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = d.root.Remove(draft) // or it is removed in an hour
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	d.sweep(info.ModTime())
	return draft, nil
}

// sweep removes, about once an hour, the drafts of writers that have died. Now is by the clock of the store.
func (d *Directory) sweep(now time.Time) {
	d.mu.Lock()
	due := now.Sub(d.swept) >= draftAge
	if due {
		d.swept = now
	}
	d.mu.Unlock()
	if !due {
		return
	}
	folder, err := d.root.OpenFile(drafts, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // the next sweep reports nothing, either: a draft does no harm
	}
	defer folder.Close()
	for {
		entries, err := folder.ReadDir(batch)
		for _, e := range entries {
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) >= draftAge {
				_ = d.root.Remove(drafts + "/" + e.Name())
			}
		}
		if err != nil {
			return
		}
	}
}

// link gives a draft its name if there is no object of that name. Others may remove its folder meanwhile, while it is empty.
func (d *Directory) link(draft, name string) error {
	var err error
	for range linkTries {
		if err = d.root.MkdirAll(path.Dir(name), 0o700); err == nil {
			if err = d.root.Link(draft, name); errors.Is(err, fs.ErrExist) {
				return d.taken(draft, name)
			}
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// taken returns why a draft cannot have a name that is there. A network file system can repeat a request whose answer was
// lost, and then finds what it has made itself: that is no error.
func (d *Directory) taken(draft, name string) error {
	there, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // it was deleted just now
		return ErrExists
	}
	if err != nil {
		return err
	}
	if ours, err := d.root.Lstat(draft); err == nil && os.SameFile(ours, there) {
		return nil
	}
	if !there.Mode().IsRegular() {
		return notRegular(there.Mode())
	}
	return ErrExists
}

// sync makes sure that the entries of a folder survive a loss of power.
func (d *Directory) sync(folder string) error {
	f, err := d.root.OpenFile(folder, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // the object was deleted just now
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) { // which says that the file system has no such call for folders
		return err
	}
	return nil
}

// Get implements [Store].
func (d *Directory) Get(ctx context.Context, name string) ([]byte, error) {
	if err := d.check(ctx, name); err != nil {
		return nil, err
	}
	data, err := d.read(name)
	switch {
	case err == nil:
		return data, nil
	case unlessGone(err) == nil:
		err = ErrNotFound
	}
	return nil, d.failed("reading", name, err)
}

// read reads the file of an object. It opens nothing else: a pipe waits, and a device may act.
func (d *Directory) read(name string) ([]byte, error) {
	if info, err := d.root.Lstat(name); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fs.ErrNotExist
	} else if !info.Mode().IsRegular() {
		return nil, notRegular(info.Mode())
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have replaced it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, notRegular(info.Mode())
	case info.Size() > maxStored:
		return nil, tooLong(info.Size())
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}

// List implements [Store]. It holds the names of one folder at each depth.
func (d *Directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		err := cmp.Or(checkPrefix(prefix), d.stands())
		if err == nil {
			folder, _ := path.Split(prefix)
			err = d.list(ctx, folder, prefix, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Object{}, d.failed("listing", prefix, err))
		}
	}
}

// errStopped ends a list that nobody reads on.
var errStopped = errors.New("stopped")

// list yields the objects in a folder, which is "" or ends in a slash.
func (d *Directory) list(ctx context.Context, folder, prefix string, yield func(Object, error) bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	rows, err := d.rows(folder)
	for _, row := range rows {
		name := folder + row
		object, below := strings.CutSuffix(name, "/")
		if !strings.HasPrefix(name, prefix) || checkName(object) != nil {
			continue
		}
		if below {
			if err := d.list(ctx, name, prefix, yield); err != nil {
				return err
			}
			continue
		}
		info, err := d.root.Lstat(name)
		if err := cmp.Or(context.Cause(ctx), unlessGone(err)); err != nil {
			return err
		}
		if err != nil || !info.Mode().IsRegular() { // it has changed just now
			continue
		}
		if !yield(Object{Name: name, Size: info.Size(), Modified: info.ModTime()}, nil) {
			return errStopped
		}
	}
	return err
}

// rows returns the files and, with a slash behind, the folders in a folder, in the order of the names of objects: "a-", "a/b", "a0".
func (d *Directory) rows(folder string) ([]string, error) {
	folder = path.Clean(folder)
	if info, err := d.root.Lstat(folder); err != nil || !info.IsDir() {
		return nil, unlessGone(err)
	}
	f, err := d.root.OpenFile(folder, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unlessGone(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, unlessGone(err)
	}
	var rows []string
	for _, e := range entries {
		switch {
		case e.IsDir():
			rows = append(rows, e.Name()+"/")
		case e.Type().IsRegular():
			rows = append(rows, e.Name())
		}
	}
	slices.Sort(rows)
	return rows, nil
}

// unlessGone returns nil for the error of a file or folder that is not there.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// Delete implements [Store]. It removes folders that have become empty, too.
func (d *Directory) Delete(ctx context.Context, name string) error {
	if err := d.check(ctx, name); err != nil {
		return err
	}
	info, err := d.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = d.root.Remove(name)
	}
	if err != nil || info.IsDir() {
		return d.failed("deleting", name, unlessGone(err))
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if d.root.Remove(folder) != nil { // it is not empty, or somebody else has removed it
			break
		}
	}
	return nil
}

func notRegular(mode fs.FileMode) error {
	return fmt.Errorf("this is not a regular file (mode %s): remove it", mode)
}
