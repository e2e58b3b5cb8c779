package history

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
)

// Prefix begins the names of objects with runs. Each of them stands alone.
const Prefix = "history/"

const (
	shareEvery  = 2 * time.Second // runs are written, and a list is read, at most once in this time
	shareWait   = 5 * time.Second // for the store, until a page shows what is known without it
	fetchAtOnce = 8
	maxKnown    = 10_000          // names of objects, while nobody looks
	endLag      = 2 * time.Minute // until all gateways know that an identity has lost access, with the difference of their clocks
)

// A record is a finished run, as gateways share it.
type record struct {
	Row         control.Run
	User, Owner string
	Groups      []string
	Within      bool
	Plan        []byte
	From        string
	At          time.Time
	ID, State   string
	Error       *control.RunError
	Returned    int64
	Stages      []stages.StageReport
	Windows     []stages.Window
	PlanSize    int
	Cut         bool
}

func (r *Run) record() record {
	e := r.end
	return record{
		Row: r.Row, User: r.User, Owner: r.Owner, Groups: r.Groups, Within: r.Within, Plan: r.Plan, From: r.From,
		At: e.at, ID: e.id, State: e.state, Error: e.err, Returned: e.returned, Stages: e.stages, Windows: e.windows, PlanSize: e.plan, Cut: e.cut,
	}
}

// run returns the run of a record of another gateway.
func (c record) run(h *History) *Run {
	r := &Run{h: h, Begin: Begin{Row: c.Row, User: c.User, Owner: c.Owner, Groups: c.Groups, Within: c.Within, Plan: c.Plan, From: c.From}}
	r.end = &end{
		at: c.At, id: c.ID, state: c.State, err: c.Error, returned: c.Returned, stages: c.Stages, windows: c.Windows, plan: c.PlanSize, cut: c.Cut, elsewhere: true,
	}
	r.end.fit(r.size())
	return r
}

// sharing is what a history does with the store that gateways share.
type sharing struct {
	store store.Store
	turn  chan struct{} // has one value, which a reader or a writer takes
	read  time.Time     // of the last list; guarded by turn
	asked atomic.Int64  // when somebody has looked at the runs last, in Unix seconds

	// Guarded by the history's mu:
	known map[string]bool      // objects that were read or written
	timer *time.Timer          // writes the runs that are not written yet; nil: it does not run
	ended map[string]time.Time // identities that have lost access, and when
}

// share has an ended run written to the shared store, in the background; the caller has mu.
func (h *History) share(r *Run) {
	if h.shared != nil {
		r.unwritten = true
		h.syncLater()
	}
}

// syncLater writes the runs that are not written yet, and tries again until the store has them; the caller has mu.
func (h *History) syncLater() {
	s := h.shared
	if s.timer != nil {
		return
	}
	s.timer = time.AfterFunc(shareEvery, func() {
		h.mu.Lock()
		s.timer = nil
		h.mu.Unlock()
		h.Sync(context.Background())
	})
}

// Sync writes the runs that have ended where other gateways see them. Without the store it is tried again later.
func (h *History) Sync(ctx context.Context) {
	if h.shared == nil || h.sync(ctx) == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.syncLater()
}

func (h *History) sync(ctx context.Context) error {
	s := h.shared
	ctx, cancel := context.WithTimeout(ctx, shareWait)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	h.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	h.mu.Unlock()
	for {
		name := fmt.Sprintf("%s%013d-%s", Prefix, time.Now().UnixMilli(), rand.Text())
		list, data, err := h.unwritten(name)
		if err != nil || len(list) == 0 {
			return err
		}
		if data != nil {
			err = s.store.Put(ctx, name, data)
		}
		if err != nil {
			return err
		}
		h.mu.Lock()
		for _, r := range list {
			r.unwritten = false
		}
		h.mu.Unlock()
	}
}

// unwritten returns runs that are not written yet, as many as an object holds, and the data of the object of that name; nil: the run is
// too large for an object.
func (h *History) unwritten(name string) (list []*Run, data []byte, err error) {
	h.mu.Lock()
	var batch []record
	for at := h.finished.Front(); at != nil; at = at.Next() {
		if r := at.Value.(*Run); r.unwritten {
			list, batch = append(list, r), append(batch, r.record())
		}
	}
	if s := h.shared; len(list) > 0 {
		if len(s.known) >= maxKnown {
			clear(s.known) // somebody who looks has them read again
		}
		s.known[name] = true
	}
	h.mu.Unlock()
	for n := len(list); n > 0; n /= 2 {
		var text bytes.Buffer
		if err := gob.NewEncoder(&text).Encode(batch[:n]); err != nil {
			return nil, nil, err
		}
		if text.Len() <= store.MaxObject {
			return list[:n], text.Bytes(), nil
		}
	}
	return list[:min(1, len(list))], nil, nil
}

// begin takes the turn, which end gives back.
func (s *sharing) begin(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *sharing) end() { s.turn <- struct{}{} }

// endUser hides the runs of an identity that other gateways have written, or write before they know of its end; the caller has mu.
func (s *sharing) endUser(user string, keptFor time.Duration) {
	maps.DeleteFunc(s.ended, func(_ string, at time.Time) bool { return time.Since(at) > keptFor+2*endLag })
	s.ended[user] = time.Now()
}

// isEnded reports whether a run is of an identity that has lost access since; the caller has mu.
func (s *sharing) isEnded(b Begin) bool {
	at, ok := s.ended[b.User]
	return ok && b.Row.Started.Before(at.Add(endLag))
}

// lookElsewhere is refresh for somebody who looks.
func (h *History) lookElsewhere(ctx context.Context) {
	if h.shared != nil {
		h.shared.asked.Store(time.Now().Unix())
		h.refresh(ctx)
	}
}

// watched reports whether somebody has looked at the runs lately, and may do so again.
func (h *History) watched() bool {
	return h.shared != nil && time.Since(time.Unix(h.shared.asked.Load(), 0)) < 10*time.Minute
}

// refresh reads what other gateways have written since the last time, and which runs are live elsewhere.
func (h *History) refresh(ctx context.Context) {
	s := h.shared
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shareWait)
	defer cancel()
	if s.begin(ctx) != nil {
		return
	}
	defer s.end()
	if time.Since(s.read) < shareEvery {
		return
	}
	var live []OtherRun
	var err error
	if h.others != nil {
		live, err = h.others(ctx) // before the list: a run that ends meanwhile is in that
	}
	if h.readEnded(ctx) == nil && err == nil { // else the next refresh tries again
		h.showOthers(live)
	}
}

// readEnded reads the runs that have ended at other gateways since the last time. The caller has the turn.
func (h *History) readEnded(ctx context.Context) error {
	s := h.shared
	var names []string
	there := map[string]bool{}
	for o, err := range s.store.List(ctx, Prefix) {
		if err != nil {
			return err
		}
		names = append(names, o.Name)
		there[o.Name] = true
	}
	s.read = time.Now()
	slices.Reverse(names) // the newest first
	h.mu.Lock()
	maps.DeleteFunc(s.known, func(name string, _ bool) bool { return !there[name] })
	names = slices.DeleteFunc(names, func(name string) bool { return s.known[name] })
	h.mu.Unlock()
	h.fetch(ctx, names)
	return nil
}

// fetch reads objects until as many runs are known as are kept. The caller has the turn.
func (h *History) fetch(ctx context.Context, names []string) {
	for part := range slices.Chunk(names, fetchAtOnce) {
		batches := make([][]record, len(part))
		var group errgroup.Group
		for i, name := range part {
			group.Go(func() (err error) {
				batches[i], err = h.shared.get(ctx, name)
				return err
			})
		}
		err := group.Wait()
		h.mu.Lock()
		full := false
		for i, batch := range batches {
			if batch != nil {
				h.shared.known[part[i]] = true
			}
			full = h.take(batch) || full
		}
		h.mu.Unlock()
		if full || err != nil {
			return // the next refresh tries again
		}
	}
}

// get reads an object. One that cannot be read as runs has none.
func (s *sharing) get(ctx context.Context, name string) ([]record, error) {
	data, err := s.store.Get(ctx, name)
	if err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrKey) {
		return nil, err
	}
	batch := []record{}
	if gob.NewDecoder(bytes.NewReader(data)).Decode(&batch) != nil || len(batch) > most {
		return []record{}, nil
	}
	return batch, nil
}

// take adds runs of another gateway, and reports whether older ones have no room; the caller has mu.
func (h *History) take(batch []record) (full bool) {
	for _, c := range batch {
		if r := h.all[c.Row.Request]; r != nil && !r.other || time.Since(c.At) > h.kept.TTL() {
			continue
		}
		if h.finished.Len() >= most && !c.At.After(h.finished.Front().Value.(*Run).end.at) {
			return true
		}
		r := c.run(h)
		if h.shared.isEnded(r.Begin) {
			r.User = ""
		}
		if h.keep(r) {
			h.all[c.Row.Request] = r
			h.insert(r)
			h.change()
		}
	}
	return false
}
