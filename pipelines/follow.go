package pipelines

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/following"
	"github.com/mcsh-dev/mcsh/internal/pausing"
)

// sums are checksums of what a store has read, by path.
type sums map[string][sha256.Size]byte

// add adds the checksum of data, or of an error.
func (s sums) add(path string, data []byte, err error) {
	if err != nil {
		data = []byte("error: " + err.Error())
	}
	s[path] = sha256.Sum256(data)
}

// now returns the checksums of what the places hold now.
func (s *Store) now() sums {
	found := sums{}
	for _, in := range s.places {
		in.sums(found)
	}
	return found
}

// lastRead returns the checksums of the last reading; the map never changes.
func (s *Store) lastRead() sums {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums
}

// A Change is what has become of saved pipelines.
type Change struct {
	Names map[string][]string // by what has become of them: "added", "removed", "changed", or "fits again" of broken ones

	// Broken is why pipelines cannot be called that could before, or are new.
	Broken map[string]error

	Shadowed []string // files that do not count, since these began to be so

	WrongExamples map[string][]string // by pipeline: its examples that do not fit, where that is new

	Err error // of reading the directories; nil: none
}

// checkEvery is how often the tools are looked at. It costs nothing where they have not changed.
const checkEvery = 500 * time.Millisecond

// lookAgain is how often pipelines are looked at that are broken for a reason that may pass.
const lookAgain = 30 * time.Second

// Follow reads files again when they change, and checks pipelines again when files or tools have changed, until ctx is done. It
// calls changed at first, and then whenever something is different.
func (s *Set) Follow(ctx context.Context, changed func(Change)) {
	var files sync.WaitGroup
	defer files.Wait()
	files.Go(func() {
		following.Watch(ctx, s.store.lastRead, s.store.now, maps.Equal, func() { _ = s.store.Reload(ctx) }) // List has the error
	})
	if s.store.shared != nil {
		files.Go(func() { s.store.shared.follow(ctx, func() { _ = s.store.Reload(ctx) }) })
	}
	before, was := map[string]Tool{}, error(nil)
	var looked time.Time
	for first, last := true, (state{}); ctx.Err() == nil; first = false {
		now := state{files: s.store.Revision(), tools: s.tools()}
		if first || now != last || pending(before) && time.Since(looked) > lookAgain {
			last, looked = now, time.Now()
			tools := map[string]Tool{}
			for _, t := range s.Tools(ctx, Operator()) {
				tools[t.Name] = t
			}
			_, err := s.store.List(ctx)
			c := difference(before, tools)
			if fmt.Sprint(err) != fmt.Sprint(was) {
				c.Err = err
			}
			if before, was = tools, err; ctx.Err() == nil && (first || !c.isZero()) {
				changed(c)
			}
		}
		_ = pausing.For(ctx, checkEvery)
	}
}

// pending reports whether some pipeline is broken for a reason that may pass.
func pending(tools map[string]Tool) bool {
	for _, t := range tools {
		if transient(t.Broken) {
			return true
		}
	}
	return false
}

func (c Change) isZero() bool {
	return len(c.Names)+len(c.Broken)+len(c.Shadowed)+len(c.WrongExamples) == 0 && c.Err == nil
}

// difference compares the tools before and after a change.
func difference(before, after map[string]Tool) Change {
	c := Change{Names: map[string][]string{}, Broken: map[string]error{}, WrongExamples: map[string][]string{}}
	for _, name := range once(slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))) {
		old, known := before[name]
		t, left := after[name]
		became := func(what string, is bool) {
			if is {
				c.Names[what] = append(c.Names[what], name)
			}
		}
		became("added", !known)
		became("removed", !left)
		became("changed", known && left && (old.Version.Hash != t.Version.Hash || old.Version.Private() != t.Version.Private() || old.Path != t.Path || old.Effects != t.Effects))
		became("fits again", known && left && old.Broken != nil && t.Broken == nil)
		if t.Broken != nil && (!known || fmt.Sprint(old.Broken) != fmt.Sprint(t.Broken)) {
			c.Broken[name] = t.Why()
		}
		for _, path := range t.Shadows {
			if !slices.Contains(old.Shadows, path) {
				c.Shadowed = append(c.Shadowed, path)
			}
		}
		if wrong := t.WrongExamples(); wrong != nil && !slices.Equal(wrong, old.WrongExamples()) {
			c.WrongExamples[name] = wrong
		}
	}
	return c
}
