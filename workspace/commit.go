package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// commit puts a draft in its place. The writers of all processes take turns.
func (d *Dir) commit(ctx context.Context, rel string, draft *draft, o SaveOptions, c *charge) error {
	lock, unlock, err := d.lock(ctx, rel)
	if err != nil {
		return err
	}
	defer unlock()
	if err := o.History.completePending(ctx); err != nil {
		return err
	}
	old, err := d.target(rel)
	if err != nil {
		return err
	}
	if err := d.root.MkdirAll(path.Dir(rel), 0o755); err != nil {
		return err
	}
	appends := o.Append && old != nil
	if appends && !o.Joined {
		if err := draft.separate(rel); err != nil {
			return err
		}
	}
	m, err := d.openMirror(rel)
	if err != nil {
		return err
	}
	defer m.file.Close()
	p := place{d: d, rel: rel, old: old, mirror: m}
	if p.same, err = o.History.repeats(ctx, p, draft, appends); err != nil {
		return err
	}
	m.line = !o.Append
	join := appends && !alone(old)
	extra, err := p.extra(ctx, draft, o.History, appends, join)
	if err != nil {
		return err
	}
	restore, err := c.commit(ctx, extra)
	if err != nil {
		return err
	}
	version, err := o.History.storeVersion(ctx, p, draft, appends)
	if err == nil {
		err = version.end(p.put(draft, lock, appends, join))
	}
	if err != nil && m.unchanged() {
		restore()
	}
	draft.mirror, draft.record = m.name, m.time.UnixNano()
	return err
}

// A place is where a file is saved. Its writer holds the lock.
type place struct {
	d      *Dir
	rel    string
	old    fs.FileInfo // of the file that is there, or nil
	mirror *mirror
	same   bool // the history keeps versions, and the file has the content already
}

// extra returns the number of bytes that a save writes besides the data and its copy.
func (p place) extra(ctx context.Context, data *draft, h *History, appends, join bool) (int64, error) {
	n, err := h.versionBytes(ctx, p, data, appends)
	n += 2 * int64(len(data.separator)) // in the file and in the mirror
	if p.mirror.line {
		n += maxLine
	}
	if join {
		n += p.old.Size()
	}
	return n, err
}

// put changes the file.
func (p place) put(data *draft, lock *os.File, appends, join bool) error {
	switch {
	case join:
		return p.join(data)
	case appends:
		return p.extend(lock, data)
	}
	return p.replace(data, data)
}

// replace puts whole there, and adds data to the mirror.
func (p place) replace(whole, data *draft) error {
	if p.old != nil {
		if err := keepOwner(whole.file, p.old); err != nil {
			return err
		}
		if err := whole.file.Chmod(p.old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := whole.file.Sync(); err != nil {
		return err
	}
	if err := p.mirror.add(data); err != nil {
		return mirrorError(p.rel, p.mirror.name, err)
	}
	if err := p.d.root.Rename(whole.name, p.rel); err != nil {
		return errors.Join(err, p.mirror.undo())
	}
	whole.renamed = true
	p.d.syncDir(path.Dir(p.rel))
	return nil
}

// join replaces the file by one with its data and more.
func (p place) join(data *draft) error {
	whole, err := p.d.newDraft()
	if err != nil {
		return err
	}
	defer whole.discard()
	f, err := p.d.Open(p.rel)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(whole.file, f); err != nil {
		return err
	}
	if err := data.copyTo(whole.file); err != nil {
		return err
	}
	return p.replace(whole, data)
}

// syncDir makes a rename durable. It ignores errors: the file is saved even if its directory cannot be read or synced.
func (d *Dir) syncDir(dir string) {
	f, err := d.root.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.Sync()
}

const lockName = own + "/lock"

// lockFile waits for the lock and returns its file, or nil if somebody has removed that meanwhile: others may have another.
func (d *Dir) lockFile(ctx context.Context) (*os.File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := d.unlinked(lockName, drafts, written, mirrors); err != nil {
		return nil, err
	}
	if err := d.root.MkdirAll(own, 0o700); err != nil {
		return nil, err
	}
	lock, err := d.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err = flock.Wait(ctx, lock); err == nil {
		var locked, named fs.FileInfo
		if locked, err = lock.Stat(); err == nil {
			if named, err = d.root.Lstat(lockName); err == nil && os.SameFile(locked, named) {
				return lock, nil
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	lock.Close()
	return nil, err
}

// lock excludes other writers, also of other processes, and waits for them until ctx is done.
func (d *Dir) lock(ctx context.Context, rel string) (lock *os.File, unlock func(), err error) {
	const others = "%s was not saved: others were writing in the workspace until then: %w"
	select {
	case d.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, Errorf(IoError, "", others, quote(rel), context.Cause(ctx))
	}
	for lock == nil && err == nil {
		lock, err = d.lockFile(ctx)
	}
	if err != nil {
		if err == context.Cause(ctx) {
			err = Errorf(IoError, "see which process has locked "+lockName, others, quote(rel), err)
		}
		<-d.writing
		return nil, nil, err
	}
	d.undoAppend(lock)
	d.removePart()
	return lock, func() { lock.Close(); <-d.writing }, nil
}
