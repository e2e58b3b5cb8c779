package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// pause is how often the file is read where nobody calls. Each call looks whether it is another file.
const pause = time.Second

// Rights of a file that others have.
const (
	othersWrite = 0o022 // whoever may write the file may come in as anybody
	othersRead  = 0o004 // hashes of random tokens tell nothing, names do
)

// Options say what happens beside.
type Options struct {
	// Told is told of what people should know of the file: that it is wrong and the one before is in use, that it is right
	// again, who may read it. It may be nil.
	Told func(text string)

	// Ended is called with the identities of callers of whom a token has gone or run out. It may be nil.
	Ended func(id string)
}

// A File is one that is served from. Its methods may be called concurrently.
type File struct {
	path string
	o    Options

	mu      sync.Mutex
	begun   int           // readings that have begun, guarded by mu
	last    reading       // the latest that was taken, guarded by mu
	entries []Entry       // of the latest that was right, guarded by mu
	seen    time.Time     // until when those that ran out are known, guarded by mu
	ended   []string      // of whom nobody has been told, guarded by mu
	wake    chan struct{} // there are some in ended
}

// A reading is what was found in a file.
type reading struct {
	number  int
	info    fs.FileInfo // nil: there is none
	entries []Entry
	err     error
}

// Open reads a file. Later ones that are wrong leave it in use; a first one must be right.
func Open(path string, o Options) (*File, error) {
	if o.Told == nil {
		o.Told = func(string) {}
	}
	if o.Ended == nil {
		o.Ended = func(string) {}
	}
	f := &File{path: path, o: o, seen: time.Now(), wake: make(chan struct{}, 1)}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// Len is how many tokens there are.
func (f *File) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.entries)
}

// identity is who the tokens of a name belong to.
func identity(name string) string { return "token " + name }

// Verify implements [auth.Verifier].
func (f *File) Verify(_ context.Context, token string) (auth.Identity, error) {
	if f.changed() {
		_ = f.load() // it has been told of
	}
	f.mu.Lock()
	entries := f.entries
	f.mu.Unlock()
	e, ok := find(entries, token)
	switch {
	case !ok:
		return auth.Identity{}, auth.ErrUnknown
	case e.Ended(time.Now()):
		return auth.Identity{}, auth.Invalid(fmt.Sprintf("the token of %s ran out at %s", e.Name, e.Expires.Format(time.RFC3339)),
			"ask the operator of this gateway for a new one, who makes it with: mcsh token new "+e.Name+" --another")
	}
	return auth.Identity{ID: identity(e.Name), Name: e.Name, Expires: e.Expires}, nil
}

// changed reports whether there is another file than the one that was read last.
func (f *File) changed() bool {
	info, err := os.Stat(f.path)
	f.mu.Lock()
	was := f.last.info
	f.mu.Unlock()
	if err != nil || was == nil {
		return (err == nil) != (was != nil)
	}
	return !os.SameFile(info, was) || !info.ModTime().Equal(was.ModTime()) || info.Size() != was.Size() || info.Mode() != was.Mode()
}

// Follow reads the file again and again, and says whose access has ended, until ctx is done.
func (f *File) Follow(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = f.load() // it has been told of
		case <-f.wake:
		}
		for _, id := range f.endings(time.Now()) {
			f.o.Ended(id)
		}
	}
}

// load reads the file and takes what it says, unless a reading that has begun later was taken.
func (f *File) load() error {
	f.mu.Lock()
	f.begun++
	r := reading{number: f.begun}
	f.mu.Unlock()
	r.read(f.path)
	if told := f.take(r); told != "" {
		f.o.Told(told)
	}
	return r.err
}

// read reads a file.
func (r *reading) read(path string) {
	// It is read again and again: what is read once from a pipe is not there the next time.
	file, info, err := namedfile.OpenRegular(path)
	if err != nil {
		r.err = err
		return
	}
	defer file.Close()
	r.info = info
	var data []byte
	if mode := info.Mode().Perm(); mode&othersWrite != 0 {
		r.err = fmt.Errorf("%s: others may write it (mode %04o), and so come in as anybody: chmod 600 %s", path, mode, path)
	} else {
		data, r.err = io.ReadAll(io.LimitReader(file, MaxFile+1))
	}
	if r.err != nil {
		return
	}
	if r.entries, r.err = Parse(data); r.err != nil {
		r.err = fmt.Errorf("%s: %w", path, r.err)
	}
}

// take makes a reading the one in use, if it is right, and returns what people should know of it.
func (f *File) take(r reading) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.number < f.last.number {
		return ""
	}
	was := f.last
	f.last = r
	if r.err != nil {
		if text := r.err.Error(); was.number > 0 && (was.err == nil || was.err.Error() != text) {
			return fmt.Sprintf("the tokens that were read before are in use, because the file is wrong: %s", text)
		}
		return ""
	}
	now := time.Now()
	if was.number > 0 {
		f.end(gone(f.entries, r.entries, f.seen, now))
	}
	f.entries = r.entries
	readable := r.info.Mode().Perm()&othersRead != 0
	switch {
	case readable && (was.info == nil || was.info.Mode().Perm()&othersRead == 0):
		return fmt.Sprintf("%s: everybody on this machine may read it (mode %04o), and so who may call; chmod 600 %s", f.path, r.info.Mode().Perm(), f.path)
	case was.err != nil:
		return fmt.Sprintf("%s is right again and in use", f.path)
	}
	return ""
}

// end takes note that the access of callers has ended. It is called with mu held.
func (f *File) end(ids []string) {
	if len(ids) == 0 {
		return
	}
	f.ended = append(f.ended, ids...)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// endings are those of whom nobody has been told, with those whose tokens have run out.
func (f *File) endings(now time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if e.Ended(now) && !e.Ended(f.seen) {
			f.ended = append(f.ended, identity(e.Name))
		}
	}
	f.seen = now
	ids := f.ended
	f.ended = nil
	slices.Sort(ids)
	return slices.Compact(ids)
}

// gone are the identities that have had a token which is not there any more, or runs out earlier. Of those that had run
// out by seen they know.
func gone(was, is []Entry, seen, now time.Time) []string {
	still := map[Entry]bool{}
	for _, e := range is {
		still[e.kept(now)] = true
	}
	var ids []string
	for _, e := range was {
		if !e.Ended(seen) && !still[e.kept(now)] {
			ids = append(ids, identity(e.Name))
		}
	}
	return ids
}

// kept is an entry by which a token is the same one: another end that has not come makes none of it.
func (e Entry) kept(now time.Time) Entry {
	if !e.Ended(now) {
		e.Expires = time.Time{}
	}
	return e
}

// Hint says what to do about a file that cannot be opened.
func Hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "mcsh token new NAME --file FILE makes it"
	case errors.Is(err, fs.ErrPermission):
		return "let the user that the gateway runs as read it"
	}
	return "mend it; mcsh token new NAME --file FILE writes lines as they should be"
}
