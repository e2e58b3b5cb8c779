package workspace

import (
	"context"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
)

// written is the file with the count of all bytes saved in the workspace, mirrors included. Only the holder of the lock
// writes it, before the bytes that it counts: a killed process leaves a count that is too large, never one too small.
const written = own + "/written"

// countForm is the count and its checksum in a fixed width, to be written in one piece.
const countForm = "%020d %08x\n"

func countText(n int64) string {
	return fmt.Sprintf(countForm, n, crc32.ChecksumIEEE(fmt.Appendf(nil, "%020d", n)))
}

// count returns the number of bytes written. ok is false if the file is missing or broken.
func (d *Dir) count() (n int64, ok bool) {
	text, err := d.root.ReadFile(written)
	if err != nil {
		return 0, false
	}
	if _, err := fmt.Sscanf(string(text), "%d", &n); err != nil || n < 0 || string(text) != countText(n) {
		return 0, false
	}
	return n, true
}

// counted is count for the holder of the lock. It restores a lost count.
func (d *Dir) counted(ctx context.Context) (int64, error) {
	if n, ok := d.count(); ok {
		return n, nil
	}
	n, err := d.recount(ctx)
	if err != nil {
		return 0, err
	}
	return n, d.setCount(n)
}

// recount adds up the sizes of the mirrors, which hold all saved data once more.
func (d *Dir) recount(ctx context.Context) (n int64, err error) {
	if _, err := d.root.Lstat(mirrors); err != nil {
		return 0, nil // nothing was saved
	}
	err = fs.WalkDir(d.root.FS(), mirrors, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += 2 * info.Size()
		}
		return nil
	})
	return n, err
}

func (d *Dir) setCount(n int64) error {
	f, err := d.root.OpenFile(written, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	text := countText(n)
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// known returns the count for a writer without the lock.
func (d *Dir) known(ctx context.Context, rel string) (int64, error) {
	if n, ok := d.count(); ok {
		return n, nil
	}
	_, unlock, err := d.lock(ctx, rel)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return d.counted(ctx)
}

// A charge asks for permission before each piece of a save.
type charge struct {
	ask   func(adds, total int64) error
	d     *Dir
	total int64 // bytes written before by all
	held  int64 // bytes of the draft and its mirror
}

// newCharge begins a charge; release ends it.
func (d *Dir) newCharge(ctx context.Context, rel string, o SaveOptions) (*charge, error) {
	c := &charge{ask: o.Charge, d: d}
	if c.ask == nil {
		c.ask = func(int64, int64) error { return nil }
	}
	var err error
	c.total, err = d.known(ctx, rel)
	return c, err
}

// draft asks for n bytes of a draft, which count twice: in the file and in its mirror. Other drafts of this process count
// as written.
func (c *charge) draft(n int) error {
	adds := 2 * int64(n)
	c.held += adds
	if err := c.ask(adds, c.total+c.d.drafted.Add(adds)); err != nil {
		return &inputError{err}
	}
	return nil
}

// release ends the charge of a draft that is saved or discarded.
func (c *charge) release() { c.d.drafted.Add(-c.held) }

// commit adds the bytes of the draft and extra ones to the count, and returns a function that restores the count. The
// caller holds the lock.
func (c *charge) commit(ctx context.Context, extra int64) (restore func(), err error) {
	before, err := c.d.counted(ctx)
	if err != nil {
		return nil, err
	}
	after := before + c.held + extra
	if err := c.ask(extra, after); err != nil {
		return nil, &inputError{err}
	}
	return func() { _ = c.d.setCount(before) }, c.d.setCount(after)
}
