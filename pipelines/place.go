package pipelines

import "context"

// A place keeps saved pipelines and their versions: a directory, or a store that gateways share. One caller at a time changes
// something or loads.
type place interface {
	// String names the place for people.
	String() string

	// path names a pipeline of the place for people: it is the path of its file, if it has one.
	path(name string) string

	// names returns the names of its pipelines, sorted.
	names() ([]string, error)

	// load reads a pipeline; nil: it is gone. It may keep what old has of the same content; held says that the place is held.
	load(ctx context.Context, name string, old *Saved, held bool) *Saved

	// hold brings the place up to date with a pipeline, and keeps other processes from changing it as far as the place can.
	hold(ctx context.Context, name string) (release func(), err error)

	// save writes a text, adopt and remove change what is there. They are called while the place is held, with the pipeline as
	// it is there now; nil: there is none. If another process was faster all the same, the error is errOutrun.
	save(ctx context.Context, name string, text []byte, p *Saved, author Author) (Version, error)
	adopt(ctx context.Context, p *Saved) (Version, error)
	remove(ctx context.Context, p *Saved) error

	// versions returns the versions of a pipeline that are kept, the newest first, and version one of them.
	versions(ctx context.Context, name string) ([]Version, error)
	version(ctx context.Context, name string, number int) (Version, error)

	// has reports whether versions of a pipeline are kept, which may be removed itself.
	has(name string) bool

	// sums adds the checksums of what the place holds now.
	sums(found sums)
}

var (
	_ place = directory("")
	_ place = (*shared)(nil)
)
