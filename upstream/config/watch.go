package config

import (
	"context"
	"maps"

	"github.com/mcsh-dev/mcsh/internal/following"
)

// Watch implements [upstream.Watcher]. Only a changed content counts: size and times of a file miss a write within their
// resolution, and a new owner who makes the file readable.
func (f *File) Watch(ctx context.Context, changed func()) error {
	now := func() checksums { return f.now(ctx, f.lastRead()) }
	following.Watch(ctx, f.lastRead, now, maps.Equal, changed)
	return nil
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
