package pipelines

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/following"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// sums are checksums of what a store has read, by path.
type sums map[string][sha256.Size]byte

// now reads the files of the store for their checksums.
func (s *Store) now() sums {
	found := sums{}
	add := func(path string, data []byte, err error) {
		if err != nil {
			data = []byte("error: " + err.Error())
		}
		found[path] = sha256.Sum256(data)
	}
	for _, dir := range s.dirs {
		names, err := namesIn(dir)
		if err != nil {
			add(dir, nil, err)
		}
		for _, name := range names[:min(len(names), 2*MaxPipelines)] {
			path := filepath.Join(dir, name+".json")
			data, err := namedfile.Read(path, readMost)
			add(path, data, err)
			own := recordsOf(dir, name)
			numbers, err := own.numbers()
			if len(numbers) > 0 {
				path := own.path(numbers[len(numbers)-1])
				data, err := namedfile.Read(path, maxRecord)
				add(path, data, err)
			} else if err != nil {
				add(own.dir, nil, err)
			}
		}
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
	Added, Removed, Changed []string

	// Broken is why pipelines cannot be called that could before, or are new; Fits are those that can be called again.
	Broken map[string]error
	Fits   []string

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
		select {
		case <-time.After(checkEvery):
		case <-ctx.Done():
		}
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
	return len(c.Added)+len(c.Removed)+len(c.Changed)+len(c.Broken)+len(c.Fits)+len(c.Shadowed)+len(c.WrongExamples) == 0 && c.Err == nil
}

// difference compares the tools before and after a change.
func difference(before, after map[string]Tool) Change {
	c := Change{Broken: map[string]error{}, WrongExamples: map[string][]string{}}
	for name, t := range after {
		old, known := before[name]
		switch {
		case !known:
			c.Added = append(c.Added, name)
		case old.Version.Hash != t.Version.Hash || old.Version.Private() != t.Version.Private() || old.Path != t.Path || old.Hints != t.Hints:
			c.Changed = append(c.Changed, name)
		}
		for _, path := range t.Shadows {
			if !slices.Contains(old.Shadows, path) {
				c.Shadowed = append(c.Shadowed, path)
			}
		}
		if wrong := t.WrongExamples(); wrong != nil && !slices.Equal(wrong, old.WrongExamples()) {
			c.WrongExamples[name] = wrong
		}
		switch {
		case t.Broken != nil && (!known || fmt.Sprint(old.Broken) != fmt.Sprint(t.Broken)):
			c.Broken[name] = t.Why()
		case t.Broken == nil && known && old.Broken != nil:
			c.Fits = append(c.Fits, name)
		}
	}
	for name := range before {
		if _, left := after[name]; !left {
			c.Removed = append(c.Removed, name)
		}
	}
	slices.Sort(c.Added)
	slices.Sort(c.Removed)
	slices.Sort(c.Changed)
	slices.Sort(c.Fits)
	return c
}
