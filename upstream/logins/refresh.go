package logins

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounds of a refresh.
const (
	turnWait = 60 * time.Second // for another process that refreshes the login
	askWait  = 60 * time.Second // for the issuer
)

// Refresh replaces the access token of a login, by one process of the machine at a time. Where the stored token is no longer
// stale, because another caller or process has replaced it, it returns that login and asks nobody. The end of ctx ends the wait
// of the caller and not the refresh, whose answer could be lost: only its own limits of time end that. A login that its issuer
// refuses, with an error that wraps [ErrEnded], is marked as ended. A fresh login that cannot be written counts in this process,
// which goes on trying to write it.
func (s *Store) Refresh(ctx context.Context, k Key, stale string, refresh func(context.Context, Login) (Login, error)) (Login, error) {
	end := s.refreshes.DoChan(k.text()+"\x00"+stale, func() (any, error) {
		if err := s.begin(); err != nil {
			return Login{}, err
		}
		defer s.running.Done()
		return s.refresh(context.WithoutCancel(ctx), k, stale, refresh)
	})
	select {
	case r := <-end:
		return r.Val.(Login), r.Err
	case <-ctx.Done():
		return Login{}, context.Cause(ctx)
	}
}

// begin counts work that Close waits for. It fails after Close.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(s.closing); err != nil {
		return err
	}
	s.running.Add(1)
	return nil
}

// refresh makes a refresh while it has the lock of the login.
func (s *Store) refresh(ctx context.Context, k Key, stale string, refresh func(context.Context, Login) (Login, error)) (Login, error) {
	unlock, err := s.lockInTurn(ctx, k)
	if err != nil {
		return Login{}, err
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, askWait, fmt.Errorf("the refresh took longer than %s", askWait))
	defer cancel()
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
	if err := s.Writable(ctx); err != nil {
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
	case errors.Is(saving, ErrNone):
		return fresh, saving
	case saving != nil:
		s.saveLater(old, fresh)
		kept = fresh
	}
	if ended && !kept.Ended.IsZero() {
		return kept, fmt.Errorf("%s: %w", k.Server, err)
	}
	return kept, nil
}

// lockInTurn takes the lock of a login that another process may be refreshing. The end of the store ends the wait.
func (s *Store) lockInTurn(ctx context.Context, k Key) (unlock func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closing, func() { cancel(errClosed) })()
	ctx, stop := context.WithTimeoutCause(ctx, turnWait, fmt.Errorf("another process has been refreshing it for %s", turnWait))
	defer stop()
	return s.lockLogin(ctx, k)
}

// stored returns a login as the file has it, or a fresher one that could not be written.
func (s *Store) stored(ctx context.Context, k Key) (Login, error) {
	now, err := s.read(ctx)
	if err != nil {
		return Login{}, err
	}
	list := s.withUnsaved(now.logins)
	at, found := find(list, k)
	if !found {
		return Login{}, fmt.Errorf("%s: %w", k.Server, ErrNone)
	}
	return list[at], nil
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
