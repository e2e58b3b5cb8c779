package logins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options say how a store seals its file.
type Options struct {
	KeyFile string  // with a key of 32 bytes; empty: none
	Keyring Keyring // nil: none

	KeyringWait time.Duration // for one answer of the keyring; 0: 2 s
}

// A Store keeps logins in a directory, which processes share. Its methods may be called concurrently.
type Store struct {
	path string // of the file
	keys *keys

	reading sync.Mutex // held while the file is read
	last    snapshot   // guarded by reading

	mu      sync.Mutex
	unsaved []unsaved       // guarded by mu
	closing context.Context // ends when the store closes; ended under mu
	end     context.CancelCauseFunc
	running sync.WaitGroup // refreshes, and those that save later

	refreshes singleflight.Group // of this process, by login and stale token
}

// A snapshot is the file as it was read.
type snapshot struct {
	file   *os.File // which is kept open, so that its inode names no other file; nil: there is none
	info   fs.FileInfo
	header header
	logins []Login
}

// step is called at the steps of a change. Tests replace it to end the process there.
var step = func(string) {}

// Open opens the store of a directory. A change makes the directory and the file in it if they are missing. A directory or file
// that cannot be used is an error of the first method that needs it.
func Open(dir string, o Options) (*Store, error) {
	if o.KeyFile != "" {
		if _, err := readKeyFile(o.KeyFile); err != nil {
			return nil, err
		}
	}
	closing, end := context.WithCancelCause(context.Background())
	return &Store{
		path:    filepath.Join(dir, "logins"),
		keys:    &keys{file: o.KeyFile, ring: guarded(o.Keyring, o.KeyringWait)},
		closing: closing, end: end,
	}, nil
}

// errClosed is the error of refreshes that a closed store does not begin.
var errClosed = errors.New("the store of logins is closed")

// Close ends refreshes that wait for another process, waits for those that have asked the issuer, and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.end(errClosed)
	s.mu.Unlock()
	s.running.Wait()
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.forget()
}

// forget makes the next reader read the file. The caller holds reading.
func (s *Store) forget() error {
	f := s.last.file
	s.last = snapshot{}
	if f == nil {
		return nil
	}
	return f.Close()
}

// All returns all logins, sorted by server.
func (s *Store) All() ([]Login, error) {
	now, err := s.read(context.Background())
	return s.withUnsaved(now.logins), err
}

// Of returns the logins of one configured server, or those of them with a resource unless that is empty.
func (s *Store) Of(server, resource string) ([]Login, error) {
	now, err := s.read(context.Background())
	if err != nil {
		return nil, err
	}
	var found []Login
	for _, l := range s.withUnsaved(now.logins) {
		if l.Server == server && (resource == "" || l.Resource == resource) {
			found = append(found, l)
		}
	}
	return found, nil
}

// Place says where the tokens are, for people, and whether they are sealed. Without a file it is empty.
func (s *Store) Place() (text string, sealed bool, err error) {
	now, err := s.read(context.Background())
	if err != nil || now.header.kind == "" {
		return "", false, err
	}
	return map[string]string{
		inKeyring: s.path + ", sealed with a key in the keyring",
		inKeyFile: s.path + ", sealed with the key file",
		plain:     s.path + ", not sealed: only its permissions protect it",
	}[now.header.kind], now.header.kind != plain, nil
}

// Usable says why the directory cannot be used, if so. It neither makes it nor reads the file, whose key may be slow to get.
func (s *Store) Usable() error {
	if err := checkDir(filepath.Dir(s.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory of logins: %w", err)
	}
	return nil
}

// Writable fails if a change would fail now. It writes the file as it is.
func (s *Store) Writable(ctx context.Context) error {
	return s.change(ctx, func(list []Login) ([]Login, error) { return list, nil })
}

// read returns the content of the file, which it reads if it has changed.
func (s *Store) read(ctx context.Context) (snapshot, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if err := s.Usable(); err != nil {
		return snapshot{}, err
	}
	there, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return snapshot{}, s.forget()
	case err != nil:
		return snapshot{}, s.broken(err)
	case s.last.file != nil && os.SameFile(there, s.last.info) && there.ModTime().Equal(s.last.info.ModTime()) && there.Size() == s.last.info.Size():
		return s.last, nil
	}
	now, err := s.load(ctx)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // somebody removed it just now
			return snapshot{}, s.forget()
		}
		return snapshot{}, s.broken(err)
	}
	if err := s.forget(); err != nil {
		return snapshot{}, errors.Join(err, now.file.Close())
	}
	s.last = now
	return now, nil
}

// load reads the file.
func (s *Store) load(ctx context.Context) (now snapshot, err error) {
	f, err := openOwn(s.path, os.O_RDONLY)
	if err != nil {
		return now, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return now, err
	}
	data, err := readFile(f)
	if err != nil {
		return now, err
	}
	h, rest, err := parseHeader(data)
	if err != nil {
		return now, err
	}
	key, err := s.keys.of(ctx, h)
	if err != nil {
		return now, err
	}
	list, err := h.open(key, rest)
	return snapshot{f, info, h, list}, err
}

// broken is the error of a file that cannot be used. It stays as it is.
func (s *Store) broken(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("the file of logins: %w", err)
	}
	return fmt.Errorf("the file of logins %s was left as it is: %w", s.path, err)
}

// Put keeps a login, in the place of one with the same key.
func (s *Store) Put(ctx context.Context, l Login) error {
	if err := l.check(); err != nil {
		return err
	}
	return s.change(ctx, func(list []Login) ([]Login, error) {
		at, found := find(list, l.Key)
		if found {
			list[at] = l
			return list, nil
		}
		if len(list) >= maxLogins {
			return nil, fmt.Errorf("there are %d logins already: sign out of servers that are no longer needed, with mcsh logout", maxLogins)
		}
		return slices.Insert(list, at, l), nil
	})
}

// Delete removes a login and returns it. It waits for a refresh of it, so that the returned tokens are the last ones. Without the
// login the error wraps [ErrNone].
func (s *Store) Delete(ctx context.Context, k Key) (Login, error) {
	unlock, err := s.lockLogin(ctx, k)
	if err != nil {
		return Login{}, err
	}
	defer unlock()
	var gone Login
	err = s.change(ctx, func(list []Login) ([]Login, error) {
		at, found := find(list, k)
		if !found {
			return nil, fmt.Errorf("%s: %w", k.Server, ErrNone)
		}
		gone = list[at]
		return slices.Delete(list, at, at+1), nil
	})
	if err == nil || errors.Is(err, ErrNone) {
		_ = os.Remove(s.lockOf(k)) // those who wait for it notice; an empty file that stays does no harm
	}
	return gone, err
}

func find(list []Login, k Key) (int, bool) {
	return slices.BinarySearchFunc(list, k, func(l Login, k Key) int { return l.compare(k) })
}

// change replaces the logins by what edit makes of a copy of them, in one process at a time.
func (s *Store) change(ctx context.Context, edit func([]Login) ([]Login, error)) error {
	if err := s.Usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeWait, errors.New("another process is changing the logins"))
	defer cancel()
	unlock, err := lockFile(ctx, s.path+".lock")
	if err != nil {
		return fmt.Errorf("waiting to change the logins: %w", err)
	}
	defer unlock()
	step("locked")
	now, err := s.read(ctx)
	if err != nil {
		return err
	}
	list, err := edit(s.withUnsaved(now.logins))
	if err != nil {
		return err
	}
	var was *header
	if now.header.kind != "" {
		was = &now.header
	}
	h, key, err := s.keys.choose(ctx, was, len(now.logins) == 0, len(list) > 0)
	if err != nil {
		return s.broken(err)
	}
	data, err := seal(h, key, list)
	if err != nil {
		return err
	}
	if err := replaceFile(s.path, data); err != nil {
		return fmt.Errorf("writing the logins: %w", err)
	}
	s.saved(list)
	return nil
}

// changeWait bounds the wait for a change of another process, which takes a moment.
const changeWait = 30 * time.Second

// lockOf names the file that is locked while a login is refreshed.
func (s *Store) lockOf(k Key) string {
	sum := sha256.Sum256([]byte(k.text()))
	return filepath.Join(filepath.Dir(s.path), "refresh-"+hex.EncodeToString(sum[:16])+".lock")
}

// lockLogin takes the lock of a login.
func (s *Store) lockLogin(ctx context.Context, k Key) (unlock func(), err error) {
	if unlock, err = lockFile(ctx, s.lockOf(k)); err != nil {
		return nil, fmt.Errorf("waiting for others that refresh the login of %s: %w", k.Server, err)
	}
	return unlock, nil
}

// savePause is the time between two attempts to write a fresh login.
const savePause = time.Second

// An unsaved login is fresh, and could not be written. It counts until somebody replaces or deletes the old one in the file.
type unsaved struct{ old, fresh Login }

// withUnsaved returns a copy of the logins of the file, with the fresher ones of this process.
func (s *Store) withUnsaved(list []Login) []Login {
	list = slices.Clone(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.unsaved {
		if at, found := find(list, u.old.Key); found && list[at].sameTokens(u.old) {
			list[at] = u.fresh
		}
	}
	return list
}

// saveLater keeps a fresh login, and tries to write it until that works. The end of the store is the last attempt.
func (s *Store) saveLater(old, fresh Login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = append(s.unsaved, unsaved{old, fresh})
	s.running.Go(func() {
		for last := false; !last; {
			select {
			case <-time.After(savePause):
			case <-s.closing.Done():
				last = true
			}
			if s.Writable(context.Background()) == nil {
				return
			}
		}
	})
}

// saved forgets what the file, with these logins now, has or no longer needs.
func (s *Store) saved(list []Login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = slices.DeleteFunc(s.unsaved, func(u unsaved) bool {
		at, found := find(list, u.old.Key)
		return !found || !list[at].sameTokens(u.old)
	})
}
