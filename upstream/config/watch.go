package config

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	stableFor = 200 * time.Millisecond // without a change, so that no file is read half written
	pollEvery = 5 * time.Second        // network file systems and some containers report no changes
	maxLinks  = 40
)

// Watch implements [upstream.Watcher]. It watches directories: editors and Kubernetes replace the file, or a link to it.
// Only a changed content counts.
func (f *File) Watch(ctx context.Context, changed func()) error {
	var events chan fsnotify.Event
	var failures chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil { // without a watcher, polling is enough
		defer watcher.Close()
		events, failures = watcher.Events, watcher.Errors
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		names := f.watched()
		if watcher != nil {
			watchDirs(watcher, names)
		}
		if f.stale(ctx) {
			changed()
			continue
		}
		if !wait(ctx, names, poll.C, events, failures) {
			return nil
		}
	}
}

// wait returns when the files may have changed: after an event about the names, after a failure, which means that events
// may be lost, and at every poll. It reports whether ctx still lives.
func wait(ctx context.Context, names map[string]bool, poll <-chan time.Time, events <-chan fsnotify.Event, failures <-chan error) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-poll:
			return true
		case <-failures:
			return true
		case event := <-events:
			if names[event.Name] {
				return true
			}
		}
	}
}

// stale reports whether the files differ from what was read, once they have stayed as they are for a while.
func (f *File) stale(ctx context.Context) bool {
	read := f.lastRead()
	for before := f.now(ctx, read); !maps.Equal(before, read); {
		select {
		case <-time.After(stableFor):
		case <-ctx.Done():
			return false
		}
		now := f.now(ctx, read)
		if maps.Equal(now, before) {
			return true
		}
		before = now
	}
	return false
}

// lastRead returns the checksums of the files that were read last; the map never changes.
func (f *File) lastRead() checksums {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

// now returns the checksums of files as they are now.
func (f *File) now(ctx context.Context, read checksums) checksums {
	now := checksums{}
	for path := range read {
		now[path] = checksum(f.content(ctx, path))
	}
	return now
}

// watched are the names whose change may change what is read: the files, and the links on the way to them.
func (f *File) watched() map[string]bool {
	names := map[string]bool{}
	for path := range f.lastRead() {
		if whole, err := filepath.Abs(path); err == nil {
			addLinks(whole, names)
		}
	}
	return names
}

// addLinks adds a file and the links on the way to it, each with its path free of links.
func addLinks(path string, names map[string]bool) {
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0 && links < maxLinks; {
		name := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(name)
		if err != nil {
			at = name
			continue
		}
		links++
		names[name] = true
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		at, rest = "/", append(strings.Split(target, "/"), rest...)
	}
	if len(rest) == 0 {
		names[at] = true
		names[filepath.Dir(at)] = true
	}
}

// watchDirs makes a watcher watch the directories of names, and no others.
func watchDirs(w *fsnotify.Watcher, names map[string]bool) {
	dirs := map[string]bool{}
	for name := range names {
		dirs[filepath.Dir(name)] = true
	}
	for _, dir := range w.WatchList() {
		if !dirs[dir] {
			_ = w.Remove(dir) // it may be gone
		}
	}
	for dir := range dirs {
		_ = w.Add(dir) // one that cannot be watched is polled
	}
}
