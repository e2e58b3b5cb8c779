package logins

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// refreshWait bounds a refresh: the wait for another process that refreshes the login, and the issuer.
const refreshWait = 60 * time.Second

// A flight is a refresh that this process is making.
type flight struct {
	stale string        // the access token that it replaces
	done  chan struct{} // closed at its end
	login Login         // after done
	err   error         // after done
}

// Refresh replaces the access token of a login, by one process of the machine at a time. Where the stored token is no longer
// stale, because another caller or process has replaced it, it returns that login and asks nobody. The end of ctx ends the wait
// of the caller and not the refresh, whose answer could be lost: only its own limit of time ends that. A login that its issuer
// refuses, with an error that wraps [ErrEnded], is marked as ended.
func (s *Store) Refresh(ctx context.Context, k Key, stale string, refresh func(context.Context, Login) (Login, error)) (Login, error) {
	f, err := s.join(k, stale, func(f *flight) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), refreshWait, fmt.Errorf("the refresh took longer than %s", refreshWait))
		defer cancel()
		f.login, f.err = s.refresh(ctx, k, stale, refresh)
	})
	if err != nil {
		return Login{}, err
	}
	select {
	case <-f.done:
		return f.login, f.err
	case <-ctx.Done():
		return Login{}, context.Cause(ctx)
	}
}

// join returns the flight that replaces the stale token, which it starts if there is none.
func (s *Store) join(k Key, stale string, fly func(*flight)) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the store of logins is closed")
	}
	if f := s.flights[k]; f != nil && f.stale == stale {
		return f, nil
	}
	f := &flight{stale: stale, done: make(chan struct{})}
	s.flights[k] = f
	s.running.Go(func() {
		fly(f)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flights[k] == f {
			delete(s.flights, k)
		}
		close(f.done)
	})
	return f, nil
}

// refresh makes a refresh while it has the lock of the login.
func (s *Store) refresh(ctx context.Context, k Key, stale string, refresh func(context.Context, Login) (Login, error)) (Login, error) {
	unlock, err := s.lockLogin(ctx, k)
	if err != nil {
		return Login{}, err
	}
	defer unlock()
	old, err := s.stored(ctx, k)
	switch {
	case err != nil:
		return Login{}, err
	case !old.Ended.IsZero():
		return old, fmt.Errorf("%s: %w", k.Server, ErrEnded)
	case old.AccessToken != stale:
		return old, nil
	}
	// What can fail on this machine fails before the issuer is asked.
	if err := s.change(ctx, func(list []Login) ([]Login, error) { return list, nil }); err != nil {
		return Login{}, err
	}
	step("asking")
	fresh, err := refresh(ctx, old)
	step("answered")
	ended := errors.Is(err, ErrEnded)
	switch {
	case ended:
		fresh = old.ended(time.Now())
	case err != nil:
		return Login{}, err
	}
	fresh.Key = k
	if err := fresh.check(); err != nil {
		return Login{}, err
	}
	kept, saving := s.swap(context.WithoutCancel(ctx), old, fresh)
	switch {
	case saving != nil:
		return fresh, saving
	case ended && !kept.Ended.IsZero():
		return kept, fmt.Errorf("%s: %w", k.Server, err)
	}
	return kept, nil
}

// stored returns a login as the file has it.
func (s *Store) stored(ctx context.Context, k Key) (Login, error) {
	now, err := s.read(ctx)
	if err != nil {
		return Login{}, err
	}
	at, found := find(now.logins, k)
	if !found {
		return Login{}, fmt.Errorf("%s: %w", k.Server, ErrNone)
	}
	return now.logins[at], nil
}

// swap replaces a login, unless somebody has signed in again or out meanwhile. It returns the login that counts now.
func (s *Store) swap(ctx context.Context, old, fresh Login) (kept Login, err error) {
	err = s.change(ctx, func(list []Login) ([]Login, error) {
		at, found := find(list, old.Key)
		switch {
		case !found:
			return nil, fmt.Errorf("%s: %w", old.Server, ErrNone)
		case list[at].sameTokens(old):
			list[at] = fresh
		}
		kept = list[at]
		return list, nil
	})
	return kept, err
}
