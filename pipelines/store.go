package pipelines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/store"
)

// Bounds of a store.
const (
	MaxPipelines = 500 // of all places
	MaxPrivate   = 50  // that agents of one caller have saved and nobody has adopted
)

// A Saved is one saved pipeline with its current version.
type Saved struct {
	Name    string
	Path    string   // of its file, or the prefix of its objects
	Shadows []string // of the same name in later places, which do not count
	Version Version
	Removed bool // there is only this version, and no file

	// Definition is nil where the file cannot be used, and Err says why.
	Definition *Definition
	Err        error

	in place
}

// A Store keeps the saved pipelines of some directories, of which the first counts where two have one name. New pipelines are
// saved in the first. With a store that gateways share, new ones are saved there, where one counts that no directory has, and
// directories do not change. All methods may be called concurrently, also by several processes.
type Store struct {
	places []place // the first one with a name counts
	home   place   // of new ones
	shared *shared // nil: there is none

	turn chan struct{} // filled while somebody reads the places or changes one

	mu    sync.Mutex
	saved map[string]*Saved // guarded by mu, as is all below; nil: nothing was read yet. The map never changes.
	err   error             // of reading the places
	sums  sums              // of what was read last

	revision atomic.Uint64
}

// Revision is a number that changes with the saved pipelines.
func (s *Store) Revision() uint64 { return s.revision.Load() }

// NewStore returns the store of directories, which need not be there. It reads nothing yet.
func NewStore(dirs ...string) *Store { return NewSharedStore(nil, dirs...) }

// NewSharedStore returns the store of directories, and of objects that gateways share; nil: there are none.
func NewSharedStore(objects store.Store, dirs ...string) *Store {
	s := &Store{turn: make(chan struct{}, 1)}
	for _, dir := range dirs {
		s.places = append(s.places, directory(dir))
	}
	if objects != nil {
		s.shared = newShared(objects)
		s.places, s.home = append(s.places, s.shared), s.shared
	} else if len(dirs) > 0 {
		s.home = s.places[0]
	}
	return s
}

// Places names the places of saved pipelines, first that of new ones.
func (s *Store) Places() (list []string) {
	list = []string{s.home.String()}
	for _, p := range s.places {
		if p != s.home {
			list = append(list, p.String())
		}
	}
	return list
}

// The reasons for which a change is refused, beside errors of the disk.
var (
	ErrNotFound = errors.New("there is no such saved pipeline")
	ErrConflict = errors.New("somebody else has changed the saved pipeline")
	ErrTaken    = errors.New("the name is taken")
	ErrFull     = errors.New("there are too many saved pipelines")
	ErrFile     = errors.New("each gateway has the saved pipeline in a file of its own: change the files, or give the pipeline another name")

	// After ErrStore everything is as it was. After ErrUnsettled, look whether the change counts.
	ErrStore     = errors.New("the store of saved pipelines cannot be used")
	ErrUnsettled = errors.New("the store of saved pipelines has failed, and it is not known whether the change counts: look before you try again")
)

// Reload reads the files again.
func (s *Store) Reload(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	s.load(ctx, nil)
	_, err := s.known()
	return err
}

// begin waits until nobody else reads the places or changes one.
func (s *Store) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default: // also a caller that has ended reads what costs no time
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) end() { <-s.turn }

// known returns what was read last; nil: nothing was.
func (s *Store) known() (map[string]*Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved, s.err
}

// List returns all saved pipelines, sorted by name, also those of others: see [Version.VisibleTo]. The error is about
// places that cannot be read; all others count.
func (s *Store) List(ctx context.Context) ([]Saved, error) {
	saved, failed := s.known()
	if saved == nil {
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
		if saved, failed = s.known(); saved == nil {
			s.load(ctx, nil)
			saved, failed = s.known()
		}
		s.end()
	}
	var list []Saved
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		list = append(list, *saved[name])
	}
	return list, failed
}

// Get returns a saved pipeline that a caller may know of: NAME, or an earlier version as NAME@3, also of one that was removed. The
// error is [ErrNotFound] with similar names.
func (s *Store) Get(ctx context.Context, text string, sees func(Version) bool) (Saved, error) {
	name, number, err := SplitName(text)
	if err != nil {
		return Saved{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	list, _ := s.List(ctx)
	if s.news(ctx, name, number, list) {
		list, _ = s.List(ctx)
	}
	list = slices.DeleteFunc(list, func(p Saved) bool { return !sees(p.Version) })
	p := Saved{Name: name, Removed: true}
	if i := slices.IndexFunc(list, func(p Saved) bool { return p.Name == name }); i >= 0 {
		p = list[i]
	}
	if !p.Removed && (number == 0 || number == p.Version.Number) {
		return p, nil
	}
	in := s.placeOf(ctx, name)
	v, err := Version{}, ErrNotFound
	if number > 0 {
		v, err = in.version(ctx, name, number)
	}
	switch {
	case err == nil && sees(v):
		p.Version, p.Path = v, in.path(name)
	case errors.Is(err, ErrStore) && !p.Removed:
		return Saved{}, fmt.Errorf("version %d of %s cannot be read: %w", number, name, ErrStore) // the rest is the operator's
	case p.Removed:
		return Saved{}, notFound(name, list)
	default:
		return Saved{}, fmt.Errorf("%w: version %d of %s is not kept; the current one is %d", ErrNotFound, number, name, p.Version.Number)
	}
	p.Definition, p.Err = Parse(fmt.Sprintf("%s@%d", name, number), []byte(p.Version.Text))
	return p, nil
}

// news looks for a pipeline, or a later version, that is not in a list but may be in the store that gateways share. It reports
// whether something has changed.
func (s *Store) news(ctx context.Context, name string, number int, list []Saved) bool {
	i := slices.IndexFunc(list, func(p Saved) bool { return p.Name == name })
	if s.shared == nil || i >= 0 && (list[i].in != s.shared || number <= list[i].Version.Number) || !s.shared.refreshUnknown(ctx, name) {
		return false
	}
	return s.Reload(ctx) == nil
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
	return s.placeOf(ctx, name).versions(ctx, name)
}

// placeOf returns the place of a pipeline; of one that was removed, the first one that has versions of it.
func (s *Store) placeOf(ctx context.Context, name string) place {
	list, _ := s.List(ctx)
	if i := slices.IndexFunc(list, func(p Saved) bool { return p.Name == name }); i >= 0 {
		return list[i].in
	}
	if i := slices.IndexFunc(s.places, func(p place) bool { return p.has(name) }); i >= 0 {
		return s.places[i]
	}
	return s.home
}

// Any stands for any version, and for none.
const Any = -1

// Save writes new content, and returns its version. base is the version that it is to follow, 0 for a new pipeline, or [Any]: if
// another one is there, the error is [ErrConflict]. An agent may only follow what agents of its own caller have saved and nobody
// has adopted, else the error is [ErrTaken]. When Save fails, everything is as it was, except perhaps after [ErrUnsettled].
func (s *Store) Save(ctx context.Context, name string, text []byte, base int, author Author) (v Version, err error) {
	err = s.change(ctx, name, func(in place, p *Saved) error {
		_, err := Parse(in.path(name), text)
		if err == nil {
			err = s.checkRoom(p, author)
		}
		if err == nil {
			err = p.checkVersion(name, base)
		}
		if err == nil {
			v, err = in.save(ctx, name, text, p, author)
		}
		return err
	})
	return v, err
}

// at refuses another version than the one that a change is for. There may be no pipeline.
func (p *Saved) checkVersion(name string, base int) error {
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

// checkExisting is checkVersion, and refuses a pipeline that is not there.
func (p *Saved) checkExisting(name string, base int) error {
	if p == nil {
		return notFound(name, nil)
	}
	return p.checkVersion(name, base)
}

// checkRoom refuses what would be one too many, and a name that an agent may not use.
func (s *Store) checkRoom(p *Saved, author Author) error {
	saved, _ := s.known()
	own := 0
	for _, other := range saved {
		if other.Version.Private() && other.Version.Author == author {
			own++
		}
	}
	switch {
	case p != nil && author.Agent && (!p.Version.Private() || p.Version.Author != author):
		return fmt.Errorf("%w: choose another one", ErrTaken)
	case p != nil:
		return nil
	case len(saved) >= MaxPipelines:
		return fmt.Errorf("%w: %d, remove some", ErrFull, len(saved))
	case author.Agent && own >= MaxPrivate:
		return fmt.Errorf("%w: %d are yours and not adopted; a person can adopt or remove some", ErrFull, own)
	}
	return nil
}

// Remove removes a pipeline whose version is base, or [Any]. Its versions stay.
func (s *Store) Remove(ctx context.Context, name string, base int) error {
	return s.change(ctx, name, func(in place, p *Saved) error {
		if err := p.checkExisting(name, base); err != nil {
			return err
		}
		return in.remove(ctx, p)
	})
}

// Adopt makes an agent's pipeline one of all callers, if its version is base, or [Any].
func (s *Store) Adopt(ctx context.Context, name string, base int) (v Version, err error) {
	err = s.change(ctx, name, func(in place, p *Saved) (err error) {
		if err := p.checkExisting(name, base); err != nil {
			return err
		}
		if v = p.Version; p.Err != nil || !v.Private() {
			return p.Err
		}
		v, err = in.adopt(ctx, p)
		return err
	})
	return v, err
}

// adopted is a version that a person adopts now.
func (v Version) adopted() Version {
	v.Adopted = time.Now().UTC().Truncate(time.Second)
	return v
}

// errOutrun says that another gateway has changed the pipeline since it was looked at.
var errOutrun = fmt.Errorf("%w: others are changing it at the same time", ErrConflict)

// mostTries is how often a change is tried while other gateways change the same pipeline.
const mostTries = 5

// change changes a pipeline while no other process does, and reads the places again. do is called again when another was faster.
func (s *Store) change(ctx context.Context, name string, do func(in place, p *Saved) error) (err error) {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	for range mostTries {
		if err = s.try(ctx, name, do); !errors.Is(err, errOutrun) {
			break
		}
	}
	return err
}

func (s *Store) try(ctx context.Context, name string, do func(in place, p *Saved) error) error {
	in := s.home
	saved, _ := s.known()
	if p := saved[name]; p != nil {
		in = p.in
	}
	release, err := in.hold(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	s.load(ctx, in)
	saved, _ = s.known()
	p := saved[name]
	switch {
	case p != nil && p.in != s.home && s.shared != nil:
		return ErrFile
	case p != nil && p.in != in: // which is not held
		return errOutrun
	}
	err = do(in, p)
	s.load(ctx, in)
	return err
}

// load reads all places, of which one may be held. The caller has its turn.
func (s *Store) load(ctx context.Context, held place) {
	if s.shared != nil {
		s.shared.refreshOnce(ctx)
	}
	old, _ := s.known()
	now, saved := s.now(), map[string]*Saved{}
	var errs []error
	for _, in := range s.places {
		names, err := in.names()
		if err != nil {
			errs = append(errs, err)
		}
		for _, name := range names {
			switch first := saved[name]; {
			case first != nil:
				first.Shadows = append(first.Shadows, in.path(name))
			case len(saved) == MaxPipelines:
				errs = append(errs, fmt.Errorf("%s: there are more than %d saved pipelines; the others are left out", in, MaxPipelines))
			default:
				if p := in.load(ctx, name, old[name], in == held); p != nil {
					p.in, saved[name] = in, p
				}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved == nil || !maps.Equal(now, s.sums) {
		s.revision.Add(1)
	}
	s.saved, s.sums, s.err = saved, now, errors.Join(errs...)
}
