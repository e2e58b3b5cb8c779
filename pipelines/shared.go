package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/store"
)

// The names of the objects: sharedRoot NAME/NUMBER is a version, sharedMarks ANYTHING says that there are new ones.
const (
	sharedRoot  = "pipelines/"
	sharedMarks = sharedRoot + ".changed/"
)

// Bounds of what is read of a store.
const (
	mostNames   = 2 * MaxPipelines // of pipelines, also of those that were removed
	mostObjects = mostNames * (MaxVersions + 10)
	mostMarks   = 1000
	mostNumber  = 1_000_000_000 // of a version
	mostCached  = 64            // earlier versions

	readAtOnce = 8                // objects
	askTime    = 10 * time.Second // for one question to the store
	readTime   = 30 * time.Second // for all that is new
	lookGap    = time.Second / 5  // between looks for names that are not known
)

// When a store is looked at.
const (
	lookEvery  = 2 * time.Second  // for marks
	readAnyway = time.Minute      // a gateway that has died may have left no mark
	readFailed = 10 * time.Second // after an object could not be read
)

// An entry is what an object holds. Each change is one, so that the first of two wins: a new text, an adoption, a removal.
type entry struct {
	Version
	Removed bool `json:"removed,omitempty"`
}

// An id tells entries of one pipeline apart. Once all were deleted, their numbers come back.
type id struct {
	number int
	time   int64 // at which it was written, in nanoseconds, by the clock of the store
}

// A head is the newest entry of a pipeline. It never changes.
type head struct {
	entry
	ids     []id  // of the entries that are kept, sorted; the last one is its own
	err     error // why the entry cannot be used
	learned uint64
}

// cached is the key of an earlier version.
type cached struct {
	name string
	id   id
}

// shared is a store that gateways share. It keeps the newest entries in memory, so that nobody waits for the store to read what
// is known.
type shared struct {
	objects store.Store

	mu     sync.Mutex
	heads  map[string]*head   // guarded by mu, as is all below
	now    uint64             // grows with each head that is learned
	cache  map[cached]Version // earlier versions
	marks  []string           // at the last whole reading; nil: there was none
	due    time.Time          // the next whole reading
	looked time.Time          // the last look for a name that is not known
	down   error              // of the store, since it has failed
	wrong  error              // with its objects
}

func newShared(objects store.Store) *shared {
	return &shared{objects: objects, heads: map[string]*head{}, cache: map[cached]Version{}}
}

// String implements [place].
func (m *shared) String() string { return "the shared store" }

func (m *shared) path(name string) string { return "store:" + sharedRoot + name }

func objectOf(name string, number int) string { return sharedRoot + name + "/" + strconv.Itoa(number) }

func (m *shared) names() (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, h := range m.heads {
		if !h.Removed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, errors.Join(m.down, m.wrong)
}

func (m *shared) head(name string) *head {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heads[name]
}

func (m *shared) has(name string) bool { return m.head(name) != nil }

func (m *shared) load(_ context.Context, name string, old *Saved, _ bool) *Saved {
	h := m.head(name)
	if h == nil || h.Removed {
		return nil
	}
	p := &Saved{Name: name, Path: m.path(name), Version: h.Version, Err: h.err}
	if p.Err == nil {
		p.parse([]byte(h.Text), old)
	}
	return p
}

func (m *shared) sums(found sums) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, h := range m.heads {
		found.add(m.path(name), []byte(strconv.Itoa(h.Number)+h.Hash), h.err)
	}
	found.add(m.String(), nil, errors.Join(m.down, m.wrong))
}

func (m *shared) version(ctx context.Context, name string, number int) (Version, error) {
	h := m.head(name)
	if h == nil {
		return Version{}, ErrNotFound
	}
	i := indexOf(h.ids, number)
	switch {
	case i < 0: // callers may ask for any
		return Version{}, ErrNotFound
	case number == h.Number && h.err == nil && !h.Removed:
		return h.Version, nil
	}
	key := cached{name, h.ids[i]}
	m.mu.Lock()
	v := m.cache[key]
	m.mu.Unlock()
	if v.Number == number {
		return v, nil
	}
	e, err := m.read(ctx, name, number)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && e.Removed:
		return Version{}, ErrNotFound
	case err != nil && !unusable(err):
		return Version{}, fmt.Errorf("%w: %w", ErrStore, err)
	case err != nil:
		return Version{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cache) >= mostCached {
		clear(m.cache)
	}
	m.cache[key] = e.Version
	return e.Version, nil
}

func indexOf(ids []id, number int) int {
	return slices.IndexFunc(ids, func(one id) bool { return one.number == number })
}

func (m *shared) versions(ctx context.Context, name string) ([]Version, error) {
	h := m.head(name)
	if h == nil {
		return nil, nil
	}
	found, errs := make([]Version, len(h.ids)), make([]error, len(h.ids))
	var all errgroup.Group
	all.SetLimit(readAtOnce)
	for i, one := range h.ids {
		all.Go(func() error {
			found[i], errs[i] = m.version(ctx, name, one.number)
			return nil
		})
	}
	_ = all.Wait()
	var failed error // one of many of the same kind
	errs = slices.DeleteFunc(errs, func(err error) bool {
		same := errors.Is(err, ErrStore) || errors.Is(err, store.ErrKey)
		if same {
			failed = err
		}
		return same || errors.Is(err, ErrNotFound) // which is a removal, or gone
	})
	slices.Reverse(found)
	return slices.DeleteFunc(found, func(v Version) bool { return v.Number == 0 }), errors.Join(append(errs, failed)...)
}

// errDamaged is wrapped by the error of an object that holds no entry.
var errDamaged = errors.New("it holds no version of a saved pipeline: remove it, or save the pipeline again")

// unusable reports whether an error is that of one object, which will not change: it holds no entry, or its key is not here.
func unusable(err error) bool { return errors.Is(err, errDamaged) || errors.Is(err, store.ErrKey) }

// read reads an entry.
func (m *shared) read(ctx context.Context, name string, number int) (e entry, err error) {
	object := objectOf(name, number)
	data, err := m.get(ctx, object)
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return entry{}, err
	}
	if len(data) > maxRecord || json.Unmarshal(data, &e) != nil || e.Number != number || len(e.Text) > MaxFile || !e.Removed && e.Hash != hashOf([]byte(e.Text)) {
		return entry{}, fmt.Errorf("the object %s of the store: %w", object, errDamaged)
	}
	return e, nil
}

// get reads an object.
func (m *shared) get(ctx context.Context, object string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return m.objects.Get(ctx, object)
}

// A listing is what there is below some prefix.
type listing struct {
	ids   map[string][]id // of the entries of a pipeline, sorted
	marks []string
	wrong error
}

// list lists objects. All of them count, but for those of one name too many.
func (m *shared) list(ctx context.Context, prefix string, most int) (*listing, error) {
	l := &listing{ids: map[string][]id{}}
	seen, foreign := 0, ""
	for o, err := range m.objects.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > most {
			l.wrong = fmt.Errorf("the store has more than %d objects below %s; the others are left out", most, prefix)
			break
		}
		name, text, _ := strings.Cut(strings.TrimPrefix(o.Name, sharedRoot), "/")
		number, err := strconv.Atoi(text)
		switch {
		case strings.HasPrefix(o.Name, sharedMarks):
			l.marks = append(l.marks, o.Name)
		case err != nil || number < 1 || number > mostNumber || strconv.Itoa(number) != text || CheckName(name) != nil,
			l.ids[name] == nil && len(l.ids) == mostNames:
			foreign = o.Name
		default:
			l.ids[name] = append(l.ids[name], id{number, o.Modified.UnixNano()})
		}
	}
	if foreign != "" {
		l.wrong = errors.Join(l.wrong, fmt.Errorf("the store has objects that are no saved pipelines, or belong to more than %d of them, such as %s: remove them", mostNames, foreign))
	}
	for _, ids := range l.ids {
		slices.SortFunc(ids, func(a, b id) int { return a.number - b.number })
	}
	return l, nil
}

// refresh reads the whole store: lists it, and reads what is new.
func (m *shared) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	since := m.moment()
	l, err := m.list(ctx, sharedRoot, mostObjects)
	if err != nil {
		m.failed(err)
		return
	}
	errs := make(chan error, len(l.ids))
	var all errgroup.Group
	all.SetLimit(readAtOnce)
	for name, ids := range l.ids {
		all.Go(func() error {
			errs <- m.learn(ctx, name, ids, since)
			return nil
		})
	}
	_ = all.Wait()
	close(errs)
	for one := range errs {
		if one != nil {
			err = one // one of many of the same kind
		}
	}
	m.mu.Lock()
	maps.DeleteFunc(m.heads, func(name string, h *head) bool { return l.ids[name] == nil && h.learned <= since })
	m.marks, m.wrong, m.due = append([]string{}, l.marks[:min(len(l.marks), mostMarks)]...), l.wrong, time.Now().Add(readAnyway)
	if err != nil {
		m.due = time.Now().Add(readFailed)
	}
	m.mu.Unlock()
	m.failed(err)
}

// failed notes that the store has failed, or works again. Only the first error of a row is reported.
func (m *shared) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.down = nil
	} else if m.down == nil {
		m.down = fmt.Errorf("reading the saved pipelines of the store, of which those known before stay as they are: %w", err)
	}
}

// moment is the number of what is learned so far.
func (m *shared) moment() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// learn reads the newest entry of a pipeline, if it is not known. Versions learned since then are newer than the ids.
func (m *shared) learn(ctx context.Context, name string, ids []id, since uint64) error {
	last := ids[len(ids)-1].number
	if old := m.head(name); old != nil && old.ids[len(old.ids)-1] == ids[len(ids)-1] {
		return nil
	}
	h := &head{ids: ids}
	h.entry, h.err = m.read(ctx, name, last)
	switch {
	case errors.Is(h.err, store.ErrNotFound): // it was deleted just now
		return nil
	case unusable(h.err):
		h.entry = entry{Version: Version{Number: last, Author: Author{Agent: true}}} // nobody knows whose it is: it is nobody's
	case h.err != nil:
		return h.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.heads[name]; old == nil || old.learned <= since || old.Number < last {
		m.now++
		h.learned = m.now
		m.heads[name] = h
	}
	return nil
}

// refreshOne brings one pipeline up to date.
func (m *shared) refreshOne(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	since := m.moment()
	l, err := m.list(ctx, sharedRoot+name+"/", mostObjects)
	if err != nil {
		return err
	}
	if ids := l.ids[name]; ids != nil {
		return m.learn(ctx, name, ids, since)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.heads[name]; h != nil && h.learned <= since {
		delete(m.heads, name)
	}
	return nil
}

// refreshUnknown looks for a pipeline that is not known, unless somebody has looked for one just now. It reports whether it found news.
func (m *shared) refreshUnknown(ctx context.Context, name string) bool {
	m.mu.Lock()
	before, soon := m.heads[name], time.Since(m.looked) < lookGap
	if !soon {
		m.looked = time.Now()
	}
	m.mu.Unlock()
	if soon || m.refreshOne(ctx, name) != nil { // the error is one that the next reading has, too
		return false
	}
	after := m.head(name)
	return after != nil && after != before
}

// refreshOnce reads the store if nobody has tried that yet.
func (m *shared) refreshOnce(ctx context.Context) {
	m.mu.Lock()
	tried := m.marks != nil || m.down != nil
	m.mu.Unlock()
	if !tried {
		m.refresh(ctx)
	}
}

// follow reads the store when somebody says that there is something new, and now and then anyway, until ctx is done. Then it
// calls changed.
func (m *shared) follow(ctx context.Context, changed func()) {
	for pausing.For(ctx, lookEvery) == nil {
		asking, cancel := context.WithTimeout(ctx, askTime)
		l, err := m.list(asking, sharedMarks, mostMarks)
		cancel()
		m.mu.Lock()
		same := err == nil && m.marks != nil && slices.Equal(l.marks, m.marks) && time.Now().Before(m.due)
		m.mu.Unlock()
		if same {
			continue
		}
		if err == nil {
			m.refresh(ctx)
		} else if ctx.Err() == nil {
			m.failed(err)
		}
		changed()
	}
}
