package runs

import (
	"cmp"
	"container/list"
	"context"
	"crypto/rand"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/store"
)

// A Store keeps the outputs of runs. When it is full, it evicts whole runs, the least recently used first, but never a
// run under way. Its methods may be called concurrently.
type Store struct {
	o    Options
	disk *disk

	mu           sync.Mutex
	runs         map[string]*run // by id; guarded by mu, as is everything below
	ended        *list.List      // of *run, the least recently used first
	used, memory int64           // bytes of all outputs, and those of them in memory
	timer        *time.Timer     // for the run that expires next
	closed       bool
	unneeded     []*os.File // unlock closes them, without mu

	closing    context.Context // of what is done for the shared store
	cancel     context.CancelFunc
	background sync.WaitGroup // of the same; added to under mu, and not once the store is closed
	waiting    atomic.Int64   // ended runs that are being written or wait for that
	failing    atomic.Bool    // the shared store, since something was written there

	liveSlots, endedSlots chan struct{} // have one value for each run that is being written
}

// run is a run in the store, all of it guarded by the store's mu.
type run struct {
	id, caller  string
	outputs     map[string]*output
	continuedBy string        // the run that continues it, where it has no journal
	journal     *journal      // in the shared store; nil without one
	inEnded     *list.Element // in ended; nil: the run is under way
	used        time.Time     // of its last use
}

// New returns a store. It creates files when it needs them.
func New(o Options) *Store {
	o = o.withDefaults()
	s := &Store{
		o: o, disk: newDisk(o.Dir), runs: map[string]*run{}, ended: list.New(),
		liveSlots: make(chan struct{}, maxSending), endedSlots: make(chan struct{}, maxSending),
	}
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.timer = time.AfterFunc(o.TTL, s.tick)
	if o.Shared != nil {
		s.background.Go(s.sweep)
	}
	return s
}

// Close frees everything. Later reads fail, and later writes are dropped. It waits for the shared store at most closeWait.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	s.mu.Unlock()
	over := make(chan struct{})
	go func() { s.background.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(closeWait): // a network file system hangs, and no context ends that
	}
	s.mu.Lock()
	defer s.unlock()
	for _, r := range s.runs {
		s.forget(r)
	}
	s.timer.Stop()
	s.disk.close()
	return nil
}

const closeWait = 15 * time.Second

// Usage returns the number of kept bytes, of those in memory, and of runs.
func (s *Store) Usage() (bytes, memory int64, runs int) {
	s.mu.Lock()
	defer s.unlock()
	return s.used, s.memory, len(s.runs)
}

// A Caller owns runs. Other callers do not learn that they exist.
type Caller struct {
	s    *Store
	name string
}

// Of returns the runs of a caller.
func (s *Store) Of(caller string) *Caller { return &Caller{s, caller} }

// Begin opens a run and returns its id, which cannot be guessed. After end nothing is added to the run and its TTL counts.
func (c *Caller) Begin() (id string, end func()) {
	id = "r_" + strings.ToLower(rand.Text())
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	r := &run{id: id, caller: c.name, outputs: map[string]*output{}}
	if s.add(r) && s.o.Shared != nil {
		r.journal = s.newJournal(r)
	}
	return id, sync.OnceFunc(func() { s.endRun(r) })
}

// add adds a run if there is room, for which it evicts ended runs. The caller has mu.
func (s *Store) add(r *run) bool {
	for len(s.runs) >= s.o.Runs && s.ended.Len() > 0 {
		s.forget(s.ended.Front().Value.(*run))
	}
	if s.closed || len(s.runs) >= s.o.Runs || s.runs[r.id] != nil {
		return false
	}
	s.runs[r.id] = r
	return true
}

func (s *Store) endRun(r *run) {
	s.mu.Lock()
	defer s.unlock()
	if s.runs[r.id] != r {
		return
	}
	r.inEnded, r.used = s.ended.PushBack(r), time.Now()
	s.arm()
	if r.journal != nil {
		r.journal.end()
	}
}

// Create adds an output to a run under way. Writing to it never fails and waits for nothing but a disk. end completes the
// output; its argument is the reason why the output is incomplete, or "". Of an incomplete output only the beginning is
// kept, and only with partial.
func (c *Caller) Create(id, name string, partial bool) (out io.Writer, end func(incomplete string)) {
	s := c.s
	w := s.newWriter(partial)
	s.mu.Lock()
	defer s.unlock()
	r := s.runs[id]
	if r == nil || r.caller != c.name || r.inEnded != nil || r.outputs[name] != nil {
		w.why = "the run is not kept"
		return w, w.end
	}
	w.o.owners++
	r.outputs[name] = w.o
	return w, w.end
}

// Share adds an output of an ended run to a run under way, and reports whether it could.
func (c *Caller) Share(id, name, to, as string) bool {
	s := c.s
	s.mu.Lock()
	defer s.unlock()
	o, into := s.find(c, id, name), s.runs[to]
	if o == nil || !o.ended || s.runs[id].inEnded == nil || into == nil || into.caller != c.name || into.inEnded != nil || into.outputs[as] != nil {
		return false
	}
	o.owners++
	into.outputs[as] = o
	return true
}

// Open returns an output of one of the caller's runs. The data stays readable until release, even if the run is evicted.
// If data is nil, incomplete is the reason why the output was not kept, or empty for an output that never existed.
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
	return io.NewSectionReader(o, 0, o.size), o.incomplete, sync.OnceFunc(func() { s.release(o) })
}

// find returns an output of a run, and counts as a use of the run.
func (s *Store) find(c *Caller, id, name string) *output {
	r := s.runs[id]
	if r == nil || r.caller != c.name {
		return nil
	}
	if r.inEnded != nil {
		s.expire()
		if s.runs[id] == nil {
			return nil
		}
		r.used = time.Now()
		s.ended.MoveToBack(r.inEnded)
		if r.journal != nil {
			r.journal.touch()
		}
	}
	return r.outputs[name]
}

// unlock unlocks mu, then closes the files that are not needed any more.
func (s *Store) unlock() {
	files := s.unneeded
	s.unneeded = nil
	s.mu.Unlock()
	for _, f := range files {
		f.Close()
	}
}

// Options bound a store. The zero value of a field means its default.
type Options struct {
	Share *memory.Share // the memory of outputs is taken from it; nil: only [Options.Memory] bounds it

	Shared  store.Store              // where other gateways find the runs; nil: nowhere
	Beside  map[string]time.Duration // prefixes of objects there that end as runs do, each by itself, and how much later
	Problem func(error)              // is called, at any time, when a run cannot be shared; nil: nobody learns of it

	Dir string // of the files without names; empty: the system's temporary directory

	Head   int64         // bytes of an output in memory; the rest goes to a file; 1 MiB
	Memory int64         // bytes of all outputs in memory; more go to files; 256 MiB
	Output int64         // bytes of one output, 64 MiB
	Total  int64         // bytes of all outputs, 2 GiB
	Runs   int           // number of runs, 10,000
	TTL    time.Duration // time to live of a run after its last use, 30 minutes; the shared store may keep it for half of that and 10 minutes longer
	Held   time.Duration // how much longer the shared store keeps a run that [Store.Hold] marks
}

func (o Options) withDefaults() Options {
	o.Head = cmp.Or(o.Head, 1<<20)
	o.Memory = cmp.Or(o.Memory, 256<<20)
	o.Output = cmp.Or(o.Output, 64<<20)
	o.Total = cmp.Or(o.Total, 2<<30)
	o.Runs = cmp.Or(o.Runs, 10_000)
	o.TTL = cmp.Or(o.TTL, 30*time.Minute)
	return o
}

// touchEvery is the longest time from the last entry of an ended run to a use that is not written to the shared store.
func (o Options) touchEvery() time.Duration { return o.TTL / 2 }
