package logins

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounds of a refresh.
const (
	askWait  = 60 * time.Second // for the issuer, and for the checks before
	turnWait = 60 * time.Second // for another process that refreshes the login in a file
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

// refresh makes a refresh in a turn of its own.
func (s *Store) refresh(ctx context.Context, k Key, stale string, refresh func(context.Context, Login) (Login, error)) (Login, error) {
	old, err := s.working(ctx, k)
	if err != nil || old.AccessToken != stale {
		return old, err
	}
	turn, err := s.lockInTurn(ctx, old)
	switch {
	case errors.Is(err, errMoved):
		return s.working(ctx, k)
	case err != nil:
		return Login{}, err
	}
	var how outcome
	defer func() { turn.end(how) }()
	ctx, cancel := context.WithTimeoutCause(ctx, askWait, fmt.Errorf("the refresh took longer than %s", askWait))
	defer cancel()
	// Before the issuer is asked, this write shows what can fail here, and that the login is still the one of the turn.
	err = s.change(ctx, func(list []Login) ([]Login, error) {
		_, err := indexOf(list, old)
		return list, err
	})
	switch {
	case errors.Is(err, errMoved):
		return s.working(ctx, k)
	case err != nil:
		return Login{}, err
	case turn.late():
		return Login{}, errLate
	}
	kept, how, err := s.ask(ctx, old, refresh)
	return kept, err
}

// ask has the issuer refresh a login, and keeps the answer.
func (s *Store) ask(ctx context.Context, old Login, refresh func(context.Context, Login) (Login, error)) (kept Login, how outcome, err error) {
	step("asking")
	fresh, err := refresh(ctx, old)
	step("answered")
	ended := errors.Is(err, ErrEnded)
	switch {
	case ended:
		fresh = old.ended(time.Now())
	case err != nil:
		return Login{}, unchanged, err
	}
	fresh.Key = old.Key
	if err := fresh.check(); err != nil {
		return Login{}, unchanged, err
	}
	kept, saving := s.swap(context.WithoutCancel(ctx), old, fresh)
	switch {
	case errors.Is(saving, ErrNone):
		return fresh, replaced, saving
	case saving != nil:
		s.saveLater(old, fresh)
		kept = fresh
	}
	if saving != nil || !kept.sameTokens(old) {
		how = replaced
	}
	if ended && !kept.Ended.IsZero() {
		return kept, how, fmt.Errorf("%s: %w", old.Server, err)
	}
	return kept, how, nil
}

// A turn is the right to replace a login, or to delete it.
type turn struct {
	until time.Time         // the issuer is asked before that; zero: at any time
	end   func(how outcome) // gives it up
}

// late reports whether the turn may have passed to others. The clock of the machine counts, too: the other one stops while the
// machine is suspended.
func (t turn) late() bool {
	now := time.Now()
	return !t.until.IsZero() && (now.After(t.until) || now.Round(0).After(t.until.Round(0)))
}

// errLate is the error of a turn that was given up before the issuer was asked.
var errLate = errors.New("the place of the logins is so slow that the issuer was not asked; try again")

// An outcome is how a turn ends.
type outcome int

const (
	unchanged outcome = iota // others may replace the login at once
	replaced                 // the login is another one, even if that could not be written yet
	deleted
)

// lockInTurn takes the lock of a login that another process may be refreshing. The end of the store ends the wait.
func (s *Store) lockInTurn(ctx context.Context, l Login) (turn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closing, func() { cancel(errClosed) })()
	ctx, stop := context.WithTimeoutCause(ctx, s.turnWait, fmt.Errorf("others have been refreshing it for %s", s.turnWait))
	defer stop()
	return s.place.lock(ctx, l, func(ctx context.Context) error {
		now, err := s.place.read(ctx, true)
		if err == nil {
			_, err = indexOf(s.withUnsaved(now), l)
		}
		return err
	})
}

// working returns a login as [Store.stored] does. The error of one that its issuer has refused wraps [ErrEnded].
func (s *Store) working(ctx context.Context, k Key) (Login, error) {
	l, err := s.stored(ctx, k)
	if err == nil && !l.Ended.IsZero() {
		err = fmt.Errorf("%s: %w", k.Server, ErrEnded)
	}
	return l, err
}

// stored returns a login as it is kept, or a fresher one that could not be written.
func (s *Store) stored(ctx context.Context, k Key) (Login, error) {
	now, err := s.place.read(ctx, true)
	if err != nil {
		return Login{}, err
	}
	list := s.withUnsaved(now)
	at, found := find(list, k)
	if !found {
		return Login{}, fmt.Errorf("%s: %w", k.Server, ErrNone)
	}
	return list[at], nil
}

// swap replaces a login, unless somebody has signed in again or out meanwhile. It returns the login that counts now.
func (s *Store) swap(ctx context.Context, old, fresh Login) (kept Login, err error) {
	err = s.change(ctx, func(list []Login) ([]Login, error) {
		at, err := indexOf(list, old)
		switch {
		case errors.Is(err, errMoved):
			kept = list[at]
			return nil, err
		case err != nil:
			return nil, err
		}
		list[at], kept = fresh, fresh
		return list, nil
	})
	if errors.Is(err, errMoved) {
		err = nil
	}
	return kept, err
}
