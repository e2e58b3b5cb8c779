package logins

import (
	"context"
	"slices"
	"time"
)

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
