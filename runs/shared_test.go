package runs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// objects is a shared store in memory, with faults.
type objects struct {
	mu      sync.Mutex
	data    map[string][]byte
	written map[string]time.Time
	delay   time.Duration                       // of each put
	fail    func(what, name string) error       // before anything is done; nil: never
	after   func(what, name string) (err error) // once it is done; nil: never
	puts    int
}

func newObjects() *objects {
	return &objects{data: map[string][]byte{}, written: map[string]time.Time{}}
}

func (o *objects) begin(ctx context.Context, what, name string) error {
	if what == "put" {
		select {
		case <-time.After(o.delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return o.fail(what, name)
	}
	return nil
}

func (o *objects) Put(ctx context.Context, name string, data []byte) error {
	if err := o.begin(ctx, "put", name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.data[name] != nil {
		return store.ErrExists
	}
	o.puts++
	o.data[name], o.written[name] = data, time.Now()
	if o.after != nil {
		return o.after("put", name)
	}
	return nil
}

func (o *objects) Get(ctx context.Context, name string) ([]byte, error) {
	if err := o.begin(ctx, "get", name); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	data, ok := o.data[name]
	if !ok {
		return nil, store.ErrNotFound
	}
	return data, nil
}

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := o.begin(ctx, "list", prefix); err != nil {
			yield(store.Object{}, err)
			return
		}
		o.mu.Lock()
		names := slices.Sorted(maps.Keys(o.data))
		written := maps.Clone(o.written)
		o.mu.Unlock()
		for _, name := range names {
			if strings.HasPrefix(name, prefix) && !yield(store.Object{Name: name, Modified: written[name]}, nil) {
				return
			}
		}
	}
}

func (o *objects) Delete(ctx context.Context, name string) error {
	if err := o.begin(ctx, "delete", name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.data, name)
	return nil
}

func (o *objects) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.data)
}

// replicas returns two stores of runs that share objects. What cannot be shared is an error of the test, unless problems is
// given.
func replicas(t *testing.T, shared store.Store, problems ...func(error)) (a, b *runs.Caller) {
	t.Helper()
	open := func() *runs.Caller {
		s := runs.New(runs.Options{Dir: t.TempDir(), Shared: shared, Problem: func(err error) {
			if len(problems) == 0 {
				t.Errorf("problem: %v", err)
				return
			}
			problems[0](err)
		}})
		t.Cleanup(func() { s.Close() })
		return s.Of("me")
	}
	return open(), open()
}

func fetch(t *testing.T, c *runs.Caller, id string) (under bool) {
	t.Helper()
	under, err := c.Fetch(t.Context(), id)
	if err != nil {
		t.Fatalf("fetching: %v", err)
	}
	return under
}

func write(t *testing.T, c *runs.Caller, id, name, text string, log bool) (end func(string)) {
	t.Helper()
	out, end := c.Create(id, name, log)
	if _, err := out.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return end
}

// TestFetch: what one gateway keeps another one has, whatever its size.
func TestFetch(t *testing.T) {
	dir := storetest.Directory(t)
	a, b := replicas(t, dir)
	for _, size := range []int{0, 1, 1 << 20, 1<<20 + 1, 5<<20 + 7} {
		id, end := a.Begin()
		for name, n := range map[string]int{"plan": 10, "1": size, "1 about": 3} {
			out, ended := a.Create(id, name, false)
			_, _ = out.Write(data(uint64(n), n))
			ended("")
		}
		write(t, a, id, "2", "the beginning", true)("it is too long")
		write(t, a, id, "3", "dropped", false)("it is too long")
		end()
		if fetch(t, b, id) {
			t.Errorf("size %d: the run is under way", size)
		}
		for o, err := range dir.List(t.Context(), "") {
			if err != nil || strings.Contains(o.Name, id) {
				t.Errorf("the list of the store has the id of a run: %s, %v", o.Name, err)
			}
		}
		if got, why := read(t, b, id, "1"); !bytes.Equal(got, data(uint64(size), size)) || why != "" {
			t.Errorf("size %d: got %d bytes, %q", size, len(got), why)
		}
		if got, why := read(t, b, id, "2"); string(got) != "the beginning" || why != "it is too long" {
			t.Errorf("got %q, %q", got, why)
		}
		if got, why := read(t, b, id, "3"); got != nil || why != "it is too long" {
			t.Errorf("got %q, %q", got, why)
		}
	}
}

// TestFetchUnknown: runs that are not there, of other callers, and ids that are none.
func TestFetchUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		a, _ := replicas(t, o)
		other := runs.New(runs.Options{Dir: t.TempDir(), Shared: o})
		defer other.Close()
		id, end := a.Begin()
		write(t, a, id, "plan", "secret", false)("")
		end()
		you := other.Of("you")
		for _, unknown := range []string{id, "r_aaaaaaaaaaaaaaaaaaaaaaaaaa", "r_../../x", "", strings.Repeat("r", 10_000)} {
			if under := fetch(t, you, unknown); under {
				t.Errorf("%q is under way", unknown)
			}
			if data, why := read(t, you, unknown, "plan"); data != nil || why != "" {
				t.Errorf("%q: %q, %q", unknown, data, why)
			}
		}
	})
}

// TestFetchUnderWay: a run under way at another gateway is not fetched; at its end it is.
func TestFetchUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := replicas(t, newObjects())
		id, end := a.Begin()
		write(t, a, id, "plan", "[]", false)("")
		time.Sleep(10 * time.Second)
		if !fetch(t, b, id) {
			t.Error("the run is not under way")
		}
		go func() {
			time.Sleep(time.Second)
			end()
		}()
		if fetch(t, b, id) {
			t.Error("the run is under way, and has ended in the meantime")
		}
	})
}

// A link is the way of one gateway to the store, which can be cut.
type link struct {
	*objects
	down atomic.Bool
}

var errCut = errors.New("the network is down")

func (l *link) begin() error {
	if l.down.Load() {
		return errCut
	}
	return nil
}

func (l *link) Put(ctx context.Context, name string, data []byte) error {
	if err := l.begin(); err != nil {
		return err
	}
	return l.objects.Put(ctx, name, data)
}

func (l *link) Get(ctx context.Context, name string) ([]byte, error) {
	if err := l.begin(); err != nil {
		return nil, err
	}
	return l.objects.Get(ctx, name)
}

// TestDeadGateway: a run whose gateway is cut off ends for the others with what was written before, after some time. One of
// them continues it, and the first gateway can add nothing.
func TestDeadGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		first := &link{objects: o}
		a, _ := replicas(t, first, func(error) {})
		b, c := replicas(t, o)
		id, end := a.Begin()
		write(t, a, id, "plan", "[]", false)("")
		log, endLog := a.Create(id, "items", true)
		_, _ = log.Write([]byte("one "))
		time.Sleep(10 * time.Second)
		_, _ = log.Write([]byte("two "))
		if err := a.Flush(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		first.down.Store(true)
		_, _ = log.Write([]byte("lost"))
		if err := a.Flush(t.Context(), id); !errors.Is(err, errCut) {
			t.Errorf("flushing: %v", err)
		}
		var group sync.WaitGroup
		var holders [2]string
		for i, other := range []*runs.Caller{b, c} {
			group.Go(func() {
				begin := time.Now()
				if fetch(t, other, id) {
					t.Error("the run is under way")
				}
				if took := time.Since(begin); took < 10*time.Second || took > 30*time.Second {
					t.Errorf("it took %v to take the gateway for dead", took)
				}
				if got, why := read(t, other, id, "items"); string(got) != "one two " || why != "" {
					t.Errorf("got %q, %q", got, why)
				}
				next, endNext := other.Begin()
				defer endNext()
				holder, _ := claim(t, other, id, next)
				holders[i] = holder
			})
		}
		group.Wait()
		if holders[0] != holders[1] || holders[0] == "" {
			t.Errorf("it is continued by %q", holders)
		}
		first.down.Store(false)
		if err := a.Flush(t.Context(), id); err == nil {
			t.Error("the first gateway goes on with a run that another one continues")
		}
		endLog("")
		end()
		late, endLate := a.Begin()
		defer endLate()
		if holder, _ := claim(t, a, id, late); holder != holders[0] {
			t.Errorf("at the first gateway it is continued by %q, elsewhere by %q", holder, holders[0])
		}
	})
}

// TestDeadGatewayPart: what a gateway has not written whole before it died is not whole for the others.
func TestDeadGatewayPart(t *testing.T) {
	for _, c := range []struct {
		what        string
		options     runs.Options
		log         bool
		text, reads string
		whole       bool
	}{
		{what: "an output of several entries", text: strings.Repeat("x", 3<<20)},
		{what: "a log that is full", options: runs.Options{Output: 8}, log: true, text: "12345678", reads: "12345678"},
		{what: "a log", log: true, text: "12345678", reads: "12345678", whole: true},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObjects()
				way := &link{objects: o}
				c.options.Dir, c.options.Shared = t.TempDir(), way
				s := runs.New(c.options)
				defer s.Close()
				_, b := replicas(t, o)
				a := s.Of("me")
				id, end := a.Begin()
				defer end()
				out, endOut := a.Create(id, "1", c.log)
				_, _ = out.Write([]byte(c.text))
				switch {
				case !c.log:
					endOut("")
				case !c.whole:
					_, _ = out.Write([]byte("9"))
				}
				o.mu.Lock()
				o.after = func(what, _ string) error {
					way.down.Store(what == "put") // after the first entry
					return nil
				}
				o.mu.Unlock()
				time.Sleep(10 * time.Second)
				o.mu.Lock()
				o.after = nil
				o.mu.Unlock()
				if fetch(t, b, id) {
					t.Error("the run is under way")
				}
				if got, why := read(t, b, id, "1"); string(got) != c.reads || (why == "") != c.whole {
					t.Errorf("got %d bytes, incomplete: %q", len(got), why)
				}
			})
		})
	}
}

// TestClaimAfterSweep: a gateway that still keeps a run cannot claim it once the store has lost who continued it.
func TestClaimAfterSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		a, b := replicas(t, o, func(error) {})
		id, end := a.Begin()
		write(t, a, id, "plan", "[]", false)("")
		end()
		fetch(t, b, id)
		first, endFirst := b.Begin()
		defer endFirst()
		if holder, _ := claim(t, b, id, first); holder != first {
			t.Fatalf("got %q", holder)
		}
		for row, err := range o.List(t.Context(), "runs/") {
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Delete(t.Context(), row.Name); err != nil {
				t.Fatal(err)
			}
		}
		second, endSecond := a.Begin()
		defer endSecond()
		if holder, _, err := a.Claim(t.Context(), id, second); err == nil {
			t.Errorf("it is continued by %q too", holder)
		}
	})
}

// TestClaimsOfReplicas: one run continues another, wherever both are.
func TestClaimsOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := replicas(t, newObjects())
		id, end := a.Begin()
		write(t, a, id, "plan", "[]", false)("")
		end()
		fetch(t, b, id)
		of := map[*runs.Caller]string{}
		for _, c := range []*runs.Caller{a, b} {
			next, endNext := c.Begin()
			defer endNext()
			write(t, c, next, "plan", "[]", false)("")
			of[c] = next
		}
		if holder, _ := claim(t, a, id, ""); holder != "" {
			t.Errorf("nobody continues it: %q", holder)
		}
		holder, release := claim(t, a, id, of[a])
		if holder != of[a] {
			t.Fatalf("got %q", holder)
		}
		for _, by := range []string{"", of[b]} {
			if holder, _ := claim(t, b, id, by); holder != of[a] {
				t.Errorf("got %q for %q", holder, by)
			}
		}
		release()
		release()
		if holder, _ := claim(t, b, id, of[b]); holder != of[b] {
			t.Errorf("after release: got %q", holder)
		}
		if holder, _ := claim(t, a, id, ""); holder != of[b] {
			t.Errorf("after release: got %q at a", holder)
		}
		if !fetch(t, b, of[a]) {
			t.Error("the run that claimed is unknown to others")
		}
	})
}

// TestStoreFaults: outages of the store lose nothing that can be kept, and never let two gateways continue a run.
func TestStoreFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		fail    func(n int) error // of the nth put
		after   func(n int) error
		problem bool // the run stays with its gateway
	}{
		"first puts fail":        {fail: func(n int) error { return failing(n <= 3) }},
		"first answers are lost": {after: func(n int) error { return failing(n <= 3) }},
		"every second fails":     {fail: func(n int) error { return failing(n%2 == 0) }},
		"down":                   {fail: func(int) error { return failing(true) }, problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObjects()
				n, after := 0, 0
				o.fail = func(what, _ string) error {
					if what != "put" || fault.fail == nil {
						return nil
					}
					n++
					return fault.fail(n)
				}
				o.after = func(string, string) error {
					after++
					if fault.after == nil {
						return nil
					}
					return fault.after(after)
				}
				var problems atomic.Int64
				a, b := replicas(t, o, func(error) { problems.Add(1) })
				id, end := a.Begin()
				write(t, a, id, "plan", strings.Repeat("p", 3<<20), false)("")
				end()
				time.Sleep(2 * time.Minute)
				if got := problems.Load() > 0; got != fault.problem {
					t.Errorf("problems: %v", got)
				}
				fetch(t, b, id)
				if got, _ := read(t, b, id, "plan"); (len(got) == 3<<20) == fault.problem {
					t.Errorf("the other gateway has %d bytes", len(got))
				}
				if got, _ := read(t, a, id, "plan"); len(got) != 3<<20 {
					t.Errorf("the gateway itself has %d bytes", len(got))
				}
				next, endNext := a.Begin()
				defer endNext()
				write(t, a, next, "plan", "[]", false)("")
				_, _, err := a.Claim(t.Context(), id, next)
				for try := 0; err != nil && try < 2; try++ {
					_, _, err = a.Claim(t.Context(), id, next)
				}
				if (err != nil) != fault.problem {
					t.Errorf("claiming: %v", err)
				}
			})
		})
	}
}

// TestLostAnswers: an entry or a claim whose answer was lost is there once, with what has been added since, and a claim whose caller
// got an error is given up.
func TestLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		var lost atomic.Int64 // of the next answers
		o.after = func(string, string) error { return failing(lost.Add(-1) >= 0) }
		a, b := replicas(t, o, func(error) {})
		id, end := a.Begin()
		out, done := a.Create(id, "log", true)
		for n := range 4 {
			lost.Store(1)
			fmt.Fprintf(out, "line %d\n", n)
			time.Sleep(2 * time.Second)
		}
		done("")
		end()
		time.Sleep(time.Minute)
		fetch(t, b, id)
		if got, why := read(t, b, id, "log"); string(got) != "line 0\nline 1\nline 2\nline 3\n" || why != "" {
			t.Errorf("got %q, %q", got, why)
		}
		first, endFirst := b.Begin()
		defer endFirst()
		lost.Store(1)
		if _, _, err := b.Claim(t.Context(), id, first); err == nil {
			t.Error("a claim without an answer succeeded")
		}
		time.Sleep(time.Minute)
		second, endSecond := a.Begin()
		defer endSecond()
		if holder, _ := claim(t, a, id, second); holder != second {
			t.Errorf("the run is claimed by %q", holder)
		}
	})
}

func failing(fails bool) error {
	if fails {
		return errors.New("out of order")
	}
	return nil
}

// TestFetchWhileWritten: a run that has ended is not under way while its gateway still writes it.
func TestFetchWhileWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		o.delay = 700 * time.Millisecond
		a, b := replicas(t, o)
		id, end := a.Begin()
		write(t, a, id, "plan", strings.Repeat("p", 5<<20), false)("")
		end()
		time.Sleep(time.Second)
		if fetch(t, b, id) {
			t.Error("the run is under way")
		}
		if got, _ := read(t, b, id, "plan"); len(got) != 5<<20 {
			t.Errorf("got %d bytes", len(got))
		}
	})
}

// TestSlowStore: runs that end do not wait for the store.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		o.delay = 3 * time.Second
		a, b := replicas(t, o)
		begin := time.Now()
		var ids []string
		for range 20 {
			id, end := a.Begin()
			write(t, a, id, "plan", "[]", false)("")
			if err := a.Flush(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			end()
			ids = append(ids, id)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("runs waited %v", took)
		}
		time.Sleep(time.Minute)
		for _, id := range ids {
			if fetch(t, b, id); !strings.HasPrefix(string(first(read(t, b, id, "plan"))), "[") {
				t.Errorf("run %s is not there", id)
			}
		}
	})
}

func first[A, B any](a A, _ B) A { return a }

// TestSweep: what nobody has used for its time to live is removed, with room for clocks that are apart; what is used stays.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		a, b := replicas(t, o)
		used, end := a.Begin()
		write(t, a, used, "plan", "used", false)("")
		end()
		other, end := a.Begin()
		write(t, a, other, "plan", "other", false)("")
		end()
		for range 8 {
			time.Sleep(20 * time.Minute)
			read(t, a, used, "plan")
		}
		fetch(t, b, other)
		if got, _ := read(t, b, other, "plan"); got != nil {
			t.Error("a run is there after its time to live")
		}
		fetch(t, b, used)
		if got, _ := read(t, b, used, "plan"); string(got) != "used" {
			t.Errorf("a run that is used is gone: %q", got)
		}
		if n := o.count(); n > 12 {
			t.Errorf("there are %d objects", n)
		}
	})
}

// TestFlushThroughRestart: a call waits for its note while the store is started again.
func TestFlushThroughRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		var down atomic.Bool
		o.fail = func(string, string) error { return failing(down.Load()) }
		a, _ := replicas(t, o)
		id, end := a.Begin()
		defer end()
		notes, endNotes := a.Create(id, "effects", true)
		defer endNotes("")
		time.Sleep(3 * time.Second)
		down.Store(true)
		time.AfterFunc(5*time.Second, func() { down.Store(false) })
		fmt.Fprintln(notes, "note")
		if err := a.Flush(t.Context(), id); err != nil {
			t.Errorf("a note during a restart: %v", err)
		}
	})
}

// TestFlushWhileWriting: a call that waits for its note does not wait for what other stages go on writing.
func TestFlushWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		o.delay = 50 * time.Millisecond
		a, _ := replicas(t, o)
		id, end := a.Begin()
		defer end()
		log, endLog := a.Create(id, "1 items", true)
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				fmt.Fprintf(log, "result %d\n", i)
				time.Sleep(20 * time.Millisecond)
			}
			endLog("")
		})
		time.Sleep(3 * time.Second)
		notes, endNotes := a.Create(id, "effects", true)
		defer endNotes("")
		for range 3 {
			fmt.Fprintln(notes, "note")
			begun := time.Now()
			if err := a.Flush(t.Context(), id); err != nil || time.Since(begun) > time.Second {
				t.Errorf("a note took %v: %v", time.Since(begun), err)
			}
		}
		stop()
		writing.Wait()
	})
}

// TestSweepKeepsUsed: a run is in the shared store as long as its gateway keeps it.
func TestSweepKeepsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		a, b := replicas(t, o)
		id, end := a.Begin()
		write(t, a, id, "plan", "kept", false)("")
		end()
		time.Sleep(29 * time.Minute) // just before half of its time to live, 1 h
		read(t, a, id, "plan")
		time.Sleep(55 * time.Minute)
		if fetch(t, b, id); string(first(read(t, b, id, "plan"))) != "kept" {
			t.Error("the shared store lacks a run that its gateway keeps")
		}
	})
}

// TestHostileObjects: objects that are cut, longer or of another format are errors, and nothing of them is kept.
func TestHostileObjects(t *testing.T) {
	for name, change := range map[string]func(object string) string{
		"empty":          func(string) string { return "" },
		"cut":            func(o string) string { return o[:len(o)-1] },
		"longer":         func(o string) string { return o + "x" },
		"another format": func(o string) string { return strings.Replace(o, `"format":1`, `"format":2`, 1) },
		"negative":       func(o string) string { return strings.Replace(o, `"size":4`, `"size":-4`, 1) },
		"huge":           func(o string) string { return strings.Replace(o, `"size":4`, `"size":9000000000000000000`, 1) },
		"no JSON":        func(string) string { return "{\n" },
		"too long":       func(string) string { return strings.Repeat("x", 9<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObjects()
				problems := 0
				a, b := replicas(t, o, func(error) { problems++ })
				id, end := a.Begin()
				write(t, a, id, "plan", "plan", false)("")
				end()
				synctest.Wait()
				for name, object := range o.data {
					o.data[name] = []byte(change(string(object)))
				}
				if _, err := b.Fetch(t.Context(), id); err == nil {
					t.Error("no error")
				}
				if problems != 1 {
					t.Errorf("the operator hears of %d problems", problems)
				}
				if got, why := read(t, b, id, "plan"); got != nil || why != "" {
					t.Errorf("got %q, %q", got, why)
				}
			})
		})
	}
}

// TestSync: at its end a gateway waits until its runs are shared, but not for ever.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObjects()
		o.delay = time.Second
		s := runs.New(runs.Options{Dir: t.TempDir(), Shared: o})
		defer s.Close()
		_, end := s.Of("me").Begin()
		end()
		if err := s.Sync(t.Context()); err != nil || o.count() != 1 {
			t.Errorf("%v, %d objects", err, o.count())
		}
		_, end = s.Of("me").Begin()
		end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		late, _ := s.Of("me").Begin()
		s.Close()
		if err := s.Of("me").Flush(t.Context(), late); err == nil {
			t.Error("after its end a call is noted")
		}
	})
}
