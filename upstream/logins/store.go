package logins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// A Store keeps logins in a place that processes share. Its methods may be called concurrently.
type Store struct {
	place    place
	turnWait time.Duration // for others that refresh or delete the same login

	mu      sync.Mutex
	unsaved []unsaved       // guarded by mu
	closing context.Context // ends when the store closes; ended under mu
	end     context.CancelCauseFunc
	running sync.WaitGroup // refreshes, and those that save later

	refreshes singleflight.Group // of this process, by login and stale token
}

// A place is where the logins are. Its methods may be called concurrently, and end in a bounded time.
type place interface {
	// read returns the logins, which its caller leaves as they are. Unless they have to be the newest, they may be those of a moment ago.
	read(ctx context.Context, newest bool) ([]Login, error)

	// change replaces the logins by those that edit makes of the newest ones, which it leaves as they are. No change of others gets lost
	// between the two. It may call edit again; the last call counts.
	change(ctx context.Context, edit func([]Login) ([]Login, error)) error

	// lock waits until no other process replaces the login, at most until still says that the login is no longer as it was. The error
	// is that of still then.
	lock(ctx context.Context, l Login, still func(context.Context) error) (turn, error)

	// where is [Store.Place].
	where(ctx context.Context) (text string, sealed bool, err error)

	// usable is [Store.Usable].
	usable() error

	close() error
}

func newStore(p place, turnWait time.Duration) *Store {
	closing, end := context.WithCancelCause(context.Background())
	return &Store{place: p, turnWait: turnWait, closing: closing, end: end}
}

// step is called at the steps of a change. Tests replace it to end the process there.
var step = func(string) {}

// errClosed is the error of refreshes that a closed store does not begin.
var errClosed = errors.New("the store of logins is closed")

// Close ends refreshes that wait for another process, waits for those that have asked the issuer, and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.end(errClosed)
	s.mu.Unlock()
	s.running.Wait()
	return s.place.close()
}

// All returns all logins, sorted by server.
func (s *Store) All() ([]Login, error) {
	now, err := s.place.read(context.Background(), true)
	return s.withUnsaved(now), err
}

// Of returns the logins of one configured server, or those of them with a resource unless that is empty. In a shared store they may
// be those of a second ago, or of 30 s ago while the store does not answer.
func (s *Store) Of(server, resource string) ([]Login, error) {
	now, err := s.place.read(context.Background(), false)
	if err != nil {
		return nil, err
	}
	var found []Login
	for _, l := range s.withUnsaved(now) {
		if l.Server == server && (resource == "" || l.Resource == resource) {
			found = append(found, l)
		}
	}
	return found, nil
}

// Place says where the tokens are, for people, and whether they are sealed. Without a file it is empty.
func (s *Store) Place() (text string, sealed bool, err error) {
	return s.place.where(context.Background())
}

// Usable says why the place cannot be used, if so, as far as that is known without reading it: its key may be slow to get.
func (s *Store) Usable() error { return s.place.usable() }

// Writable fails if a change would fail now. It writes the logins as they are.
func (s *Store) Writable(ctx context.Context) error {
	return s.change(ctx, func(list []Login) ([]Login, error) { return list, nil })
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
	for {
		old, err := s.stored(ctx, k)
		if err == nil {
			old, err = s.delete(ctx, old)
		}
		if !errors.Is(err, errMoved) {
			return old, err
		}
	}
}

func (s *Store) delete(ctx context.Context, old Login) (Login, error) {
	turn, err := s.lockInTurn(ctx, old)
	if err != nil {
		return Login{}, err
	}
	var how outcome
	defer func() { turn.end(how) }()
	err = s.change(ctx, func(list []Login) ([]Login, error) {
		at, err := indexOf(list, old)
		if err != nil {
			return nil, err
		}
		return slices.Delete(list, at, at+1), nil
	})
	if err != nil {
		return Login{}, err
	}
	how = deleted
	return old, nil
}

func find(list []Login, k Key) (int, bool) {
	return slices.BinarySearchFunc(list, k, func(l Login, k Key) int { return l.compare(k) })
}

// errMoved is the error of a login that somebody has replaced.
var errMoved = errors.New("somebody has replaced the login meanwhile")

// indexOf returns where a login is. The error wraps [ErrNone] without it, and is errMoved if it is no longer as it was.
func indexOf(list []Login, old Login) (int, error) {
	at, found := find(list, old.Key)
	switch {
	case !found:
		return 0, fmt.Errorf("%s: %w", old.Server, ErrNone)
	case !list[at].sameTokens(old):
		return at, errMoved
	}
	return at, nil
}

// change replaces the logins by what edit makes of a copy of them, with the fresher ones of this process.
func (s *Store) change(ctx context.Context, edit func([]Login) ([]Login, error)) error {
	var list []Login
	err := s.place.change(ctx, func(now []Login) (_ []Login, err error) {
		list, err = edit(s.withUnsaved(now))
		return list, err
	})
	if err == nil {
		s.forgetSaved(list)
	}
	return err
}

// changeWait bounds the wait for changes of others, which take a moment.
const changeWait = 30 * time.Second

// savePause is the time between two attempts to write a fresh login.
const savePause = time.Second

// An unsaved login is fresh, and could not be written. It counts until somebody replaces or deletes the old one in the place.
type unsaved struct{ old, fresh Login }

// withUnsaved returns a copy of the logins of the place, with the fresher ones of this process.
func (s *Store) withUnsaved(list []Login) []Login {
	list = slices.Clone(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.unsaved {
		if at, err := indexOf(list, u.old); err == nil {
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

// forgetSaved forgets unsaved logins that the list has by now, or that were replaced in it.
func (s *Store) forgetSaved(list []Login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = slices.DeleteFunc(s.unsaved, func(u unsaved) bool {
		_, err := indexOf(list, u.old)
		return err != nil
	})
}
