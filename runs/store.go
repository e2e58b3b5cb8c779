package runs

import (
	"container/list"
	"crypto/rand"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A Store keeps the outputs of runs. When it is full, whole runs give way, those that were not used for longest first;
// a run that is under way never does. Its methods may be called concurrently.
type Store struct {
	o    Options
	disk *disk

	mu           sync.Mutex
	runs         map[string]*run // by id; guarded by mu, as is everything below
	ended        *list.List      // of *run, the one that was not used for longest first
	used, memory int64           // bytes of all outputs, and of those the ones in memory
	timer        *time.Timer     // for the run that ends next; nil: there is none
	closed       bool
	unneeded     []*os.File // to be closed without mu
}

// run is what is known of one run. All of it is guarded by the store's mu.
type run struct {
	id, caller string
	outputs    map[string]*output
	claims     map[string]string // by name, the run that goes on from there
	place      *list.Element     // in ended; nil: it is under way
	used       time.Time         // when it was last used
}

// New returns a store. It makes files when they are needed.
func New(o Options) *Store {
	o = o.withDefaults()
	return &Store{o: o, disk: newDisk(o.Dir), runs: map[string]*run{}, ended: list.New()}
}

// Close frees everything. What is read or written afterwards fails or is dropped.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.unlock()
	s.closed = true
	for _, r := range s.runs {
		s.forget(r)
	}
	s.arm()
	s.disk.close()
	return nil
}

// Usage returns how many bytes are kept, how many of them in memory, and of how many runs.
func (s *Store) Usage() (bytes, memory int64, runs int) {
	s.mu.Lock()
	defer s.unlock()
	return s.used, s.memory, len(s.runs)
}

// A Caller is whom runs belong to. Nobody else learns that they exist.
type Caller struct {
	s    *Store
	name string
}

// Of returns the runs of a caller.
func (s *Store) Of(caller string) *Caller { return &Caller{s, caller} }

// Begin opens a run and returns its id, which nobody can guess. After end nothing is added to it, and its time runs.
func (c *Caller) Begin() (id string, end func()) {
	id = "r_" + strings.ToLower(rand.Text())
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	for len(s.runs) >= s.o.Runs && s.ended.Len() > 0 {
		s.forget(s.ended.Front().Value.(*run))
	}
	r := &run{id: id, caller: c.name, outputs: map[string]*output{}}
	if !s.closed && len(s.runs) < s.o.Runs {
		s.runs[id] = r
	}
	return id, sync.OnceFunc(func() { s.endRun(r) })
}

func (s *Store) endRun(r *run) {
	s.mu.Lock()
	defer s.unlock()
	if s.runs[r.id] != r {
		return
	}
	r.place, r.used = s.ended.PushBack(r), time.Now()
	s.arm()
}

// Create adds an output to a run that is under way. Writing to it never fails and never waits for more than a disk. It
// is kept once end has said that it is whole, or why it is incomplete; with partial, the beginning of one that is not
// whole is kept too.
func (c *Caller) Create(id, name string, partial bool) (out io.Writer, end func(incomplete string)) {
	s := c.s
	w := &writer{o: &output{s: s}, partial: partial}
	s.mu.Lock()
	defer s.unlock()
	r := s.runs[id]
	if r == nil || r.caller != c.name || r.place != nil || r.outputs[name] != nil {
		w.why = "the run is not kept"
		return w, w.end
	}
	w.o.owners++
	r.outputs[name] = w.o
	return w, w.end
}

// Share gives an output of a run that has ended to one that is under way, and reports whether it is there.
func (c *Caller) Share(id, name, to, as string) bool {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	o, into := s.find(c, id, name), s.runs[to]
	if o == nil || !o.ended || s.runs[id].place == nil || into == nil || into.caller != c.name || into.place != nil || into.outputs[as] != nil {
		return false
	}
	o.owners++
	into.outputs[as] = o
	return true
}

// Claim gives what a name of a run that has ended stands for to one run, and returns the run that has it: by, or the one
// that was first; it keeps it after its end as well, unless it gives it up with release. With an empty by nothing is
// given; an empty holder is nobody, and so is that of a run that is not kept.
func (c *Caller) Claim(id, name, by string) (holder string, release func()) {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	r := s.runs[id]
	if r == nil || r.caller != c.name {
		return "", func() {}
	}
	if holder = r.claims[name]; holder != "" || by == "" {
		return holder, func() {}
	}
	if r.claims == nil {
		r.claims = map[string]string{}
	}
	r.claims[name] = by
	return by, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.unlock()
		delete(r.claims, name)
	})
}

// Open returns an output of one of the caller's runs, to be released after use, whatever becomes of the run meanwhile.
// Without data it was not kept, and incomplete says why; without either it was never there.
func (c *Caller) Open(id, name string) (data *io.SectionReader, incomplete string, release func()) {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	o := s.find(c, id, name)
	switch {
	case o == nil:
		return nil, "", func() {}
	case !o.ended:
		return nil, "the run has not ended yet", func() {}
	case o.incomplete != "" && o.size == 0:
		return nil, o.incomplete, func() {}
	}
	o.owners++
	return io.NewSectionReader(o, 0, o.size), o.incomplete, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.unlock()
		s.disown(o)
	})
}

// find returns an output of a run and puts the run's end off.
func (s *Store) find(c *Caller, id, name string) *output {
	r := s.runs[id]
	if r == nil || r.caller != c.name {
		return nil
	}
	if r.place != nil {
		s.expire()
		if s.runs[id] == nil {
			return nil
		}
		r.used = time.Now()
		s.ended.MoveToBack(r.place)
	}
	return r.outputs[name]
}

// unlock ends what was begun with mu.Lock.
func (s *Store) unlock() {
	files := s.unneeded
	s.unneeded = nil
	s.mu.Unlock()
	for _, f := range files {
		f.Close()
	}
}
