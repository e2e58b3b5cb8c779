package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"

	"github.com/mcsh-dev/mcsh/internal/flock"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of a store.
const (
	MaxPipelines = 500 // of all directories
	MaxPrivate   = 50  // that agents of one caller have saved and nobody has adopted
)

// A Saved is one saved pipeline with its current version.
type Saved struct {
	Name    string
	Path    string   // of its file
	Shadows []string // files of the same name in later directories, which do not count
	Version Version
	Removed bool // there is only this version, and no file

	// Definition is nil where the file cannot be used, and Err says why.
	Definition *Definition
	Err        error
}

// A Store keeps the saved pipelines of some directories, of which the first counts where two have one name. New pipelines are
// saved in the first. All methods may be called concurrently, also by several processes.
type Store struct {
	dirs []string

	mu    sync.Mutex // also while files are read
	read  bool
	saved map[string]*Saved // guarded by mu, as is all above and below
	err   error             // of reading the directories
	sums  sums              // of what was read last

	revision atomic.Uint64
}

// Revision is a number that changes with the saved pipelines.
func (s *Store) Revision() uint64 { return s.revision.Load() }

// NewStore returns the store of directories, which need not be there. It reads nothing yet.
func NewStore(dirs ...string) *Store { return &Store{dirs: dirs} }

// Dirs returns the directories.
func (s *Store) Dirs() []string { return slices.Clone(s.dirs) }

// The reasons for which a change is refused, beside errors of the disk.
var (
	ErrNotFound = errors.New("there is no such saved pipeline")
	ErrConflict = errors.New("somebody else has changed the saved pipeline")
	ErrTaken    = errors.New("the name is taken")
	ErrFull     = errors.New("there are too many saved pipelines")
)

// Reload reads the files again.
func (s *Store) Reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load(ctx, "")
	return s.err
}

// List returns all saved pipelines, sorted by name, also those of others: see [Version.VisibleTo]. The error is about
// directories that cannot be read; all others count.
func (s *Store) List(ctx context.Context) ([]Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		s.load(ctx, "")
	}
	var list []Saved
	for _, name := range slices.Sorted(maps.Keys(s.saved)) {
		list = append(list, *s.saved[name])
	}
	return list, s.err
}

// Get returns a saved pipeline that a caller may know of: NAME, or an earlier version as NAME@3, also of one that was removed. The
// error is [ErrNotFound] with similar names.
func (s *Store) Get(ctx context.Context, text string, sees func(Version) bool) (Saved, error) {
	name, number, err := SplitName(text)
	if err != nil {
		return Saved{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	list, _ := s.List(ctx)
	list = slices.DeleteFunc(list, func(p Saved) bool { return !sees(p.Version) })
	p := Saved{Name: name, Removed: true}
	if i := slices.IndexFunc(list, func(p Saved) bool { return p.Name == name }); i >= 0 {
		p = list[i]
	}
	if !p.Removed && (number == 0 || number == p.Version.Number) {
		return p, nil
	}
	dir := s.dirOf(ctx, name)
	switch v, err := recordsOf(dir, name).read(number); {
	case number > 0 && err == nil && sees(v):
		p.Version, p.Path = v, filepath.Join(dir, name+".json")
	case p.Removed:
		return Saved{}, notFound(name, list)
	default:
		return Saved{}, fmt.Errorf("%w: version %d of %s is not kept; the current one is %d", ErrNotFound, number, name, p.Version.Number)
	}
	p.Definition, p.Err = Parse(fmt.Sprintf("%s@%d", name, number), []byte(p.Version.Text))
	return p, nil
}

// Everybody sees all versions: for the operator.
func Everybody(Version) bool { return true }

func notFound(name string, list []Saved) error {
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return fmt.Errorf("%w: %s%s", ErrNotFound, texts.Quote(name), meant(name, names))
}

// Versions returns the versions of a pipeline that are kept, the newest first, also of one that was removed.
func (s *Store) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return recordsOf(s.dirOf(ctx, name), name).all()
}

// dirOf returns the directory of a pipeline; of one that was removed, the first one that has versions of it.
func (s *Store) dirOf(ctx context.Context, name string) string {
	list, _ := s.List(ctx)
	if i := slices.IndexFunc(list, func(p Saved) bool { return p.Name == name }); i >= 0 {
		return filepath.Dir(list[i].Path)
	}
	i := slices.IndexFunc(s.dirs, func(dir string) bool {
		numbers, _ := recordsOf(dir, name).numbers()
		return len(numbers) > 0
	})
	return s.dirs[max(i, 0)]
}

// Any stands for whatever version there is, and for none.
const Any = -1

// Save writes new content, and returns its version. base is the version that it is to follow, 0 for a new pipeline, or [Any]: if
// another one is there, the error is [ErrConflict]. An agent may only follow what agents of its own caller have saved and nobody
// has adopted, else the error is [ErrTaken]. When Save fails, everything is as it was.
func (s *Store) Save(ctx context.Context, name string, text []byte, base int, author Author) (v Version, err error) {
	err = s.change(ctx, name, func(dir string, p *Saved) error {
		path := filepath.Join(dir, name+".json")
		_, err := Parse(path, text)
		if err == nil {
			err = s.room(p, author)
		}
		if err == nil {
			err = p.at(name, base)
		}
		if err == nil {
			v, err = write(path, recordsOf(dir, name), text, p == nil, author)
		}
		return err
	})
	return v, err
}

// write writes the record of a text, and then the file. returns says that there is no such file.
func write(path string, own records, text []byte, returns bool, author Author) (Version, error) {
	v, isNew, err := own.next(text)
	if err != nil || !isNew && !returns {
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

// at refuses another version than the one that a change is for. There may be no pipeline.
func (p *Saved) at(name string, base int) error {
	have := 0
	if p != nil {
		have = p.Version.Number
	}
	if base == Any || base == have {
		return nil
	}
	if have == 0 {
		return fmt.Errorf("%w %s: it does not exist", ErrConflict, name)
	}
	return fmt.Errorf("%w %s: it is at version %d, not %d", ErrConflict, name, have, base)
}

// existing refuses also what is not there.
func (p *Saved) existing(name string, base int) error {
	if p == nil {
		return notFound(name, nil)
	}
	return p.at(name, base)
}

// room refuses what would be one too many, and a name that an agent may not use.
func (s *Store) room(p *Saved, author Author) error {
	own := 0
	for _, other := range s.saved {
		if other.Version.Private() && other.Version.Author == author {
			own++
		}
	}
	switch {
	case p != nil && author.Agent && (!p.Version.Private() || p.Version.Author != author):
		return fmt.Errorf("%w: choose another one", ErrTaken)
	case p != nil:
		return nil
	case len(s.saved) >= MaxPipelines:
		return fmt.Errorf("%w: %d, remove some", ErrFull, len(s.saved))
	case author.Agent && own >= MaxPrivate:
		return fmt.Errorf("%w: %d are yours and not adopted; a person can adopt or remove some", ErrFull, own)
	}
	return nil
}

// Remove removes a pipeline whose version is base, or [Any]. Its versions stay.
func (s *Store) Remove(ctx context.Context, name string, base int) error {
	return s.change(ctx, name, func(_ string, p *Saved) error {
		if err := p.existing(name, base); err != nil {
			return err
		}
		return os.Remove(p.Path)
	})
}

// Adopt makes an agent's pipeline one of all callers, if its version is base, or [Any].
func (s *Store) Adopt(ctx context.Context, name string, base int) (v Version, err error) {
	err = s.change(ctx, name, func(dir string, p *Saved) error {
		if err := p.existing(name, base); err != nil {
			return err
		}
		if v = p.Version; p.Err != nil || !v.Private() {
			return p.Err
		}
		v.Adopted = time.Now().UTC().Truncate(time.Second)
		return recordsOf(dir, name).write(v)
	})
	return v, err
}

// change changes a pipeline while no other process does, and reads the files again.
func (s *Store) change(ctx context.Context, name string, do func(dir string, p *Saved) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.dirs[0]
	if p := s.saved[name]; p != nil {
		dir = filepath.Dir(p.Path)
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("changing the saved pipelines in %s: %w", dir, err)
	}
	defer unlock()
	s.load(ctx, dir)
	err = do(dir, s.saved[name])
	s.load(ctx, dir)
	return err
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

// load reads all directories. The caller has mu, and the lock of the directory locked.
func (s *Store) load(ctx context.Context, locked string) {
	old, now := s.saved, s.now()
	if !s.read || !maps.Equal(now, s.sums) {
		s.revision.Add(1)
	}
	s.saved, s.sums, s.read = map[string]*Saved{}, now, true
	var errs []error
	for _, dir := range s.dirs {
		names, err := namesIn(dir)
		if err != nil {
			errs = append(errs, err)
		}
		for _, name := range names {
			path := filepath.Join(dir, name+".json")
			switch first := s.saved[name]; {
			case first != nil:
				first.Shadows = append(first.Shadows, path)
			case len(s.saved) == MaxPipelines:
				errs = append(errs, fmt.Errorf("%s: there are more than %d saved pipelines; the others are left out", dir, MaxPipelines))
			default:
				s.saved[name] = loadOne(ctx, path, name, old[name], dir == locked)
			}
		}
	}
	s.err = errors.Join(errs...)
}

// namesIn returns the names of the pipelines in a directory, sorted.
func namesIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
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

// loadOne reads one file, and keeps its content if that is new and can be used. It needs the lock of the directory for that, which
// its caller may have: else the file may be one that another process is about to replace.
func loadOne(ctx context.Context, path, name string, old *Saved, locked bool) *Saved {
	p, isNew := readOne(path, name, old)
	if isNew && !locked {
		ctx, cancel := context.WithTimeout(ctx, recordWait)
		defer cancel()
		unlock, err := lock(ctx, filepath.Dir(path))
		if err != nil {
			return p // the directory may be one that nobody can write to
		}
		defer unlock()
		p, isNew = readOne(path, name, old)
	}
	if isNew {
		_ = recordsOf(filepath.Dir(path), name).write(p.Version) // likewise
	}
	return p
}

// readOne reads one file. One that has not changed is not parsed again. isNew says that its content is good and has no record.
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
	if old != nil && old.Path == path && old.Version.Hash == hashOf(text) && old.Definition != nil {
		p.Definition = old.Definition
	} else {
		p.Definition, p.Err = Parse(path, text)
	}
	if p.Version, isNew, err = recordsOf(filepath.Dir(path), name).next(text); err != nil {
		p.Definition, p.Err = nil, err
		p.Version = Version{Author: Author{Agent: true}} // nobody knows whose content it is: it is nobody's
	}
	return p, isNew && p.Err == nil
}
