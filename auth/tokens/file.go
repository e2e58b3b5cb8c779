package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// pause is the time between two readings of the file without calls. Each call checks whether the file has changed.
const pause = time.Second

// Permissions of other users.
const (
	othersWrite = 0o022 // a writer of the file can become any caller
	othersRead  = 0o004 // hashes of random tokens reveal nothing, but names do
)

// Options are the callbacks of a [File].
type Options struct {
	// Notify is called with messages for operators: the file is invalid and the old one in use, it is valid again, or everybody
	// can read it. It may be nil.
	Notify func(text string)

	// Ended is called with the identity of each caller one of whose tokens was removed or has expired. It may be nil.
	Ended func(id string)
}

// A File verifies tokens by a file. Its methods may be called concurrently.
type File struct {
	path string
	o    Options

	wake chan struct{} // Verify has read the file

	mu      sync.Mutex // held also while the file is read
	last    reading    // the latest one, guarded by mu
	entries []Entry    // of the latest valid reading, guarded by mu

	grouped bool // an entry has had groups; guarded by mu

	known map[Entry]bool // without their ends: the valid ones whose end is not reported yet; guarded by mu
}

// A reading is the result of one reading of the file.
type reading struct {
	info    fs.FileInfo // nil: there is no file
	entries []Entry
	err     error
}

// Open reads a file, which must be valid. A later invalid version leaves the last valid one in use.
func Open(path string, o Options) (*File, error) {
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Ended == nil {
		o.Ended = func(string) {}
	}
	f := &File{path: path, o: o, known: map[Entry]bool{}, wake: make(chan struct{}, 1)}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// Len returns the number of tokens.
func (f *File) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.entries)
}

// identity returns the identity of a name.
func identity(name string) string { return "token " + name }

// Verify implements [auth.Verifier].
func (f *File) Verify(_ context.Context, token string) (auth.Identity, error) {
	if f.changed() {
		_ = f.load() // it has notified of the error
		select {
		case f.wake <- struct{}{}:
		default:
		}
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
	groups, all := e.groups()
	return auth.Identity{ID: identity(e.Name), Name: e.Name, Expires: e.Expires, Groups: groups, All: all, Operator: e.Operator}, nil
}

// Grouped implements [auth.Grouper]. It stays true when the last entry with groups has gone: else that would show all servers
// to those who saw none.
func (f *File) Grouped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grouped
}

// changed reports whether the file has changed since the last reading.
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

// Follow reads the file regularly and reports ended access, until ctx is done.
func (f *File) Follow(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = f.load() // it has notified of the error
		case <-f.wake:
		}
		for _, id := range f.endings(time.Now()) {
			f.o.Ended(id)
		}
	}
}

// load reads the file and uses it.
func (f *File) load() error {
	f.mu.Lock()
	var r reading
	r.read(f.path)
	note := f.take(r)
	f.mu.Unlock()
	if note != "" {
		f.o.Notify(note)
	}
	return r.err
}

// read reads a file.
func (r *reading) read(path string) {
	// A pipe cannot be read again, so only a regular file will do.
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

// take puts a valid reading into use, and returns a message for operators, or "". mu is held.
func (f *File) take(r reading) string {
	was, first := f.last, f.last.info == nil && f.last.err == nil
	f.last = r
	if r.err != nil {
		if text := r.err.Error(); !first && (was.err == nil || was.err.Error() != text) {
			return fmt.Sprintf("the tokens that were read before are in use, because the file is wrong: %s", text)
		}
		return ""
	}
	f.entries = r.entries
	f.grouped = f.grouped || Grouped(r.entries)
	maps.Copy(f.known, valid(r.entries, f.grouped, time.Now())) // their end is reported even if the next reading comes before the report
	readable := r.info.Mode().Perm()&othersRead != 0
	switch {
	case readable && (was.info == nil || was.info.Mode().Perm()&othersRead == 0):
		return fmt.Sprintf("%s: everybody on this machine may read it (mode %04o), and so who may call; chmod 600 %s", f.path, r.info.Mode().Perm(), f.path)
	case was.err != nil:
		return fmt.Sprintf("%s is right again and in use", f.path)
	}
	return ""
}

// Grouped reports whether any entry has groups.
func Grouped(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Groups != "" })
}

// valid returns the entries that have not ended, without their ends: a different end in the future does not matter. Other groups
// do: what was begun with the old ones ends. They also change for entries without groups when the file gets its first groups.
func valid(entries []Entry, grouped bool, now time.Time) map[Entry]bool {
	set := map[Entry]bool{}
	for _, e := range entries {
		if !e.Ended(now) {
			e.Expires = time.Time{}
			if e.Groups == "" && grouped {
				e.Groups = "-" // none; no entry has it
			}
			set[e] = true
		}
	}
	return set
}

// endings returns the identities with a token that was removed, has expired or has other groups since the last call.
func (f *File) endings(now time.Time) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	still := valid(f.entries, f.grouped, now)
	for e := range f.known {
		if !still[e] {
			ids = append(ids, identity(e.Name))
		}
	}
	f.known = still
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Hint proposes what to do about a file that cannot be used.
func Hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "mcsh token new NAME --file FILE makes it"
	case errors.Is(err, fs.ErrPermission):
		return "give read permission to the user that the gateway runs as"
	}
	return "fix it; mcsh token new NAME --file FILE writes lines as they should be"
}
