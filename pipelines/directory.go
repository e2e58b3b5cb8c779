package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A directory is a [place] with a file for each pipeline, and records of their versions.
type directory string

// String implements [place].
func (d directory) String() string { return string(d) }

func (d directory) path(name string) string { return filepath.Join(string(d), name+".json") }

func (d directory) records(name string) records { return recordsOf(string(d), name) }

func (d directory) save(_ context.Context, name string, text []byte, p *Saved, author Author) (Version, error) {
	return write(d.path(name), d.records(name), text, p == nil, author)
}

// write writes the record of a text, and then the file. missing says that there is no such file.
func write(path string, own records, text []byte, missing bool, author Author) (Version, error) {
	v, isNew, err := own.next(text)
	if err != nil || !isNew && !missing {
		return v, err
	}
	before := v
	v.Author, v.Adopted = author, time.Time{}
	if err = own.write(v); err == nil {
		if err = replace(path, text, 0o644); err == nil {
			return v, nil
		}
		if isNew { // else it stays as a version that nobody has used
			_ = os.Remove(own.path(v.Number))
		} else {
			_ = own.write(before)
		}
	}
	return Version{}, fmt.Errorf("%s: nothing was saved: %w", path, bare(err))
}

// bare is an error without the name of the file: people know neither the record nor the file that is moved into the place of theirs.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

func (d directory) adopt(_ context.Context, p *Saved) (Version, error) {
	v := p.Version.adopted()
	return v, d.records(p.Name).write(v)
}

func (d directory) remove(_ context.Context, p *Saved) error { return os.Remove(p.Path) }

func (d directory) versions(_ context.Context, name string) ([]Version, error) {
	return d.records(name).all()
}

func (d directory) version(_ context.Context, name string, number int) (Version, error) {
	return d.records(name).read(number)
}

func (d directory) has(name string) bool {
	numbers, _ := d.records(name).numbers()
	return len(numbers) > 0
}

// sums are also those of the latest records: an adoption changes nothing else.
func (d directory) sums(found sums) {
	names, err := d.names()
	found.add(string(d), nil, err)
	for _, name := range names[:min(len(names), 2*MaxPipelines)] {
		data, err := namedfile.Read(d.path(name), readMost)
		found.add(d.path(name), data, err)
		v, err := d.records(name).latest()
		found.add(d.records(name).dir, []byte(texts.JSON(v)), err)
	}
}

func (d directory) hold(ctx context.Context, _ string) (release func(), err error) {
	unlock, err := lock(ctx, string(d))
	if err != nil {
		return nil, fmt.Errorf("changing the saved pipelines in %s: %w", d, err)
	}
	return unlock, nil
}

// lock takes the lock of a directory, and makes the directory.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	own := filepath.Join(dir, versionsDir)
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(own, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock.Wait(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// replace writes a file whole or not at all.
func replace(path string, data []byte, mode fs.FileMode) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer f.Cleanup() // of what was not moved
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

func (d directory) names() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, err
}

// readMost bounds what is read of a file, of which [MaxFile] is accepted.
const readMost = 1 << 20

// recordWait is how long a reader waits for another process before it records new content. Then the content has its number only.
const recordWait = time.Second

// load keeps the content of a file if that is new and can be used. It needs the lock of the directory for that, which
// its caller may have: else the file may be one that another process is about to replace.
func (d directory) load(ctx context.Context, name string, old *Saved, held bool) *Saved {
	path := d.path(name)
	p, isNew := readOne(path, name, old)
	if isNew && !held {
		ctx, cancel := context.WithTimeout(ctx, recordWait)
		defer cancel()
		unlock, err := lock(ctx, string(d))
		if err != nil {
			return p // the directory may be one that nobody can write to
		}
		defer unlock()
		p, isNew = readOne(path, name, old)
	}
	if isNew {
		_ = d.records(name).write(p.Version) // likewise
	}
	return p
}

// readOne reads one file. isNew says that its content is good and has no record.
func readOne(path, name string, old *Saved) (p *Saved, isNew bool) {
	p = &Saved{Name: name, Path: path}
	if p.Err = CheckName(name); p.Err != nil {
		p.Err = fmt.Errorf("%s: %w", path, p.Err)
		return p, false
	}
	text, err := namedfile.Read(path, readMost)
	if err != nil {
		p.Err = err
		return p, false
	}
	p.parse(text, old)
	if p.Version, isNew, err = recordsOf(filepath.Dir(path), name).next(text); err != nil {
		p.Definition, p.Err = nil, err
		p.Version = Version{Author: Author{Agent: true}} // nobody knows whose content it is: it is nobody's
	}
	return p, isNew && p.Err == nil
}

// parse reads the content of a pipeline. One that has not changed is not parsed again.
func (p *Saved) parse(text []byte, old *Saved) {
	if old != nil && old.Path == p.Path && old.Version.Hash == hashOf(text) && old.Definition != nil {
		p.Definition = old.Definition
		return
	}
	p.Definition, p.Err = Parse(p.Path, text)
}
