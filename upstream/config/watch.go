package config

import (
	"context"
	"maps"
	"time"
)

const (
	pollEvery = 500 * time.Millisecond
	stableFor = 200 * time.Millisecond // without a change, so that no file is read half written
)

// Watch implements [upstream.Watcher]. It reads the files again and again: editors, Kubernetes and checkouts each replace
// files in their own way, and network file systems report nothing. Only a changed content counts: size and times of a file
// miss a write within their resolution, and a new owner who makes the file readable.
func (f *File) Watch(ctx context.Context, changed func()) error {
	for pause(ctx, pollEvery) {
		if f.stale(ctx) {
			changed()
		}
	}
	return nil
}

// pause waits, and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// stale reports whether the files differ from what was read, once they have stayed as they are for a while.
func (f *File) stale(ctx context.Context) bool {
	read := f.lastRead()
	for before := f.now(ctx, read); !maps.Equal(before, read) && pause(ctx, stableFor); {
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
