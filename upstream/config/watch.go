package config

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	quiet     = 200 * time.Millisecond // without a change, so that a file is read when it has been written
	pollEvery = 5 * time.Second        // file systems of networks and of some containers tell of nothing
	maxLinks  = 40
)

// Watch implements [upstream.Watcher]. What is watched are directories: editors and Kubernetes put another file, or
// another link, in the place of the old one. What counts is whether any of the files has become another one.
func (f *File) Watch(ctx context.Context, changed func()) error {
	var events chan fsnotify.Event
	var failures chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil { // where there is no more room for one, looking from time to time is enough
		defer watcher.Close()
		events, failures = watcher.Events, watcher.Errors
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		names := f.watched()
		if watcher != nil {
			follow(watcher, names)
		}
		if f.stale(ctx) && f.settled(ctx) {
			changed()
			continue
		}
		if !wait(ctx, names, poll.C, events, failures) {
			return nil
		}
	}
}

// wait returns when it is time to look: after an event that is about the names, after a failure, which means that events
// may be lost, and from time to time. It reports whether ctx still lives.
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

// settled waits until the files stay as they are for a while, and reports whether they are then still not those that
// were read.
func (f *File) settled(ctx context.Context) bool {
	for before := f.stamps(); ; {
		timer := time.NewTimer(quiet)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		now := f.stamps()
		if maps.Equal(now, before) {
			return f.stale(ctx)
		}
		before = now
	}
}

// stamps are the times at which the files were written last, and their lengths.
func (f *File) stamps() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamps := map[string]string{}
	for path := range f.read {
		if info, err := os.Stat(path); err == nil {
			stamps[path] = fmt.Sprint(info.ModTime().UnixNano(), info.Size())
		}
	}
	return stamps
}

// stale reports whether a file is not what it was when it was read.
func (f *File) stale(ctx context.Context) bool {
	now := f.now(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	return !maps.Equal(now, f.read)
}

// now is what the files that were read are now.
func (f *File) now(ctx context.Context) reads {
	f.mu.Lock()
	paths := slices.Collect(maps.Keys(f.read))
	f.mu.Unlock()
	now := reads{}
	for _, path := range paths {
		if path == f.Path {
			now[path] = sum(f.itself(ctx))
		} else {
			now[path] = sum(f.content(path))
		}
	}
	return now
}

// watched are the names whose change may change what is read: the files, and the links on the way to them.
func (f *File) watched() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := map[string]bool{}
	for path := range f.read {
		if whole, err := filepath.Abs(path); err == nil {
			chain(whole, names)
		}
	}
	return names
}

// chain adds a file and the links on the way to it, each under the name that it has in a directory without links.
func chain(path string, names map[string]bool) {
	for range maxLinks {
		dir := string(filepath.Separator)
		parts := strings.Split(strings.Trim(path, string(filepath.Separator)), string(filepath.Separator))
		linked := false
		for i, part := range parts {
			name := filepath.Join(dir, part)
			target, err := os.Readlink(name)
			if err != nil {
				dir = name
				continue
			}
			names[name] = true
			if !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			path = filepath.Join(append([]string{target}, parts[i+1:]...)...)
			linked = true
			break
		}
		if !linked {
			names[path] = true
			names[filepath.Dir(path)] = true
			return
		}
	}
}

// follow makes a watcher watch the directories of names, and no others.
func follow(w *fsnotify.Watcher, names map[string]bool) {
	dirs := map[string]bool{}
	for name := range names {
		dirs[filepath.Dir(name)] = true
	}
	for _, dir := range w.WatchList() {
		if !dirs[dir] {
			_ = w.Remove(dir) // it may have gone by itself
		}
	}
	for dir := range dirs {
		_ = w.Add(dir) // one that cannot be watched is looked at from time to time
	}
}
