package logins

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/store"
)

// The names of the objects: listFolder NUMBER is a version of the list, claimFolder LOGIN/NUMBER a claim.
const (
	listFolder  = "logins/list/"
	claimFolder = "logins/refresh/"
	digits      = 12 // of a number, so that names sort
)

const (
	objectWait = 10 * time.Second       // for one reading, and for one object that is written
	staleAfter = time.Second            // readers use what was read, and wait for what is new while they have something older
	outage     = 30 * time.Second       // a store that does not answer for so long has no logins
	writePause = 100 * time.Millisecond // at most, after the change of another gateway

	keptVersions = 2    // a reader may have the name of the one before
	keptChanges  = 32   // a change is in so many versions that follow it
	mostNames    = 1000 // of a folder, the newest ones
	emptyLists   = 3    // in a row, until there is no version where there was one: a list leaves out what others delete meanwhile
)

// OpenShared opens the logins in a store that gateways share, and that is sealed; at names it for people.
func OpenShared(objects store.Store, at string) *Store {
	o := &shared{objects: objects, at: at}
	s := newStore(o, sharedTurnWait)
	o.closing = s.closing
	return s
}

// shared keeps logins in a store of objects. Each version of the whole list is one.
type shared struct {
	objects store.Store
	at      string
	closing context.Context // ends the readings that nobody waits for

	readings singleflight.Group

	mu      sync.Mutex
	last    version   // guarded by mu
	failing time.Time // since when readings fail; zero: they do not; guarded by mu
}

// A version is the list as it was read; its name is empty before the first change.
type version struct {
	name string
	read time.Time // before which it was not replaced
	content
	logins []Login
}

// content is what an object holds.
type content struct {
	Changes []string        `json:"changes"` // random, of this change and those before it, the newest last
	Logins  json.RawMessage `json:"logins"`
}

// where implements [place].
func (o *shared) where(context.Context) (text string, sealed bool, err error) {
	return "the shared store " + o.at + ", sealed with its key file", true, nil
}

// usable implements [place]: the store was tried when it was opened.
func (o *shared) usable() error { return nil }

// close implements [place]: the opener of the store closes it.
func (o *shared) close() error { return nil }

// read implements [place].
func (o *shared) read(ctx context.Context, newest bool) ([]Login, error) {
	if newest {
		now, _, err := o.newest(ctx)
		return now.logins, err
	}
	last, late := o.known(), o.lateAfter()
	if time.Since(last.read) < staleAfter {
		return last.logins, nil
	}
	news := o.readings.DoChan("", func() (any, error) {
		begun := time.Now()
		now, _, err := o.newest(o.closing)
		if err != nil {
			o.fail(begun)
		}
		return now.logins, err
	})
	select {
	case r := <-news:
		if r.Err == nil || late == nil {
			return r.Val.([]Login), r.Err
		}
	case <-late:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return last.logins, nil
}

// lateAfter returns a channel that ends the wait of a reader that has an older list: at once while readings fail. It is nil if the older
// list must not be used.
func (o *shared) lateAfter() <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.last.read.IsZero() || !o.failing.IsZero() && time.Since(o.failing) >= outage:
		return nil
	case o.failing.IsZero():
		return time.After(staleAfter)
	}
	return time.After(0)
}

// fail notes that a reading has failed.
func (o *shared) fail(begun time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing.IsZero() && begun.After(o.last.read) {
		o.failing = begun
	}
}

// known returns what was read last.
func (o *shared) known() version {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// learn keeps what was read, unless something was read later.
func (o *shared) learn(v version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !v.read.Before(o.last.read) {
		o.last, o.failing = v, time.Time{}
	}
}

// newest reads the newest version. It returns the names of all.
func (o *shared) newest(ctx context.Context) (now version, names []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, objectWait, errSlow)
	defer cancel()
	last := o.known()
	for empty := 1; ; empty++ {
		begun := time.Now()
		now = version{}
		names, err = o.names(ctx, listFolder)
		switch {
		case err != nil:
			return version{}, nil, unreadable(err)
		case len(names) > 0:
			empty = 0
			now, err = o.get(ctx, names[len(names)-1])
		case empty < emptyLists && (last.name != "" || last.read.IsZero()):
			err = store.ErrNotFound
		}
		switch {
		case err == nil:
			now.read = begun
			o.learn(now)
			return now, names, nil
		case !errors.Is(err, store.ErrNotFound): // which is gone if others have written two others meanwhile
			return version{}, nil, unreadable(err)
		}
		if err := pause(ctx, writePause); err != nil {
			return version{}, nil, unreadable(err)
		}
	}
}

// errSlow is the error of a store that does not answer within objectWait.
var errSlow = fmt.Errorf("the store has not answered for %s", objectWait)

func unreadable(err error) error { return fmt.Errorf("the logins of the shared store: %w", err) }

// names returns the newest names in a folder, sorted. Those of others are left out.
func (o *shared) names(ctx context.Context, folder string) (names []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, objectWait, errSlow)
	defer cancel()
	for object, err := range o.objects.List(ctx, folder) {
		if err != nil {
			return nil, err
		}
		if len(names) == 2*mostNames {
			names = slices.Delete(names, 0, mostNames)
		}
		if strings.TrimSuffix(object.Name, endMark) == folder+numbered(numberOf(object.Name)) {
			names = append(names, object.Name)
		}
	}
	return names, nil
}

func numbered(n int) string { return fmt.Sprintf("%0*d", digits, n) }

// numberOf returns the number in a name, or 0.
func numberOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], endMark))
	return n
}

// get reads a version. A damaged one stays as it is.
func (o *shared) get(ctx context.Context, name string) (v version, err error) {
	if last := o.known(); last.name == name {
		return last, nil
	}
	data, err := o.objects.Get(ctx, name)
	if err == nil && len(data) > maxFile {
		err = store.ErrDamaged
	}
	if err == nil {
		v.name = name
		if err = strictly(data, &v.content); err == nil {
			v.logins, err = decode(v.Logins)
		}
	} else if !errors.Is(err, store.ErrDamaged) {
		return v, err
	}
	if err != nil {
		err = fmt.Errorf("the object %s was left as it is; removing it brings back the list before it, of which some sign-ins may have ended: %w", name, err)
	}
	return v, err
}

// change implements [place]. Only one of two gateways writes the next version. A change counts once its id is found in the newest
// version: so it does not matter whether an answer is lost, or whether the name was free because others had written and deleted that
// version before.
func (o *shared) change(ctx context.Context, edit func([]Login) ([]Login, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, changeWait, errors.New("others are changing the logins"))
	defer cancel()
	id := rand.Text()
	var was, is []Login
	var unknown error // of the last write whose outcome is unknown
	for tries := 0; ; {
		now, names, err := o.newest(ctx)
		switch {
		case err != nil:
			return errors.Join(unknown, err)
		case slices.Contains(now.Changes, id):
			o.clean(ctx, names, was, is)
			return nil
		case tries > 1:
			return fmt.Errorf("writing the logins: %w", unknown)
		}
		was = now.logins
		if is, err = edit(was); err != nil {
			return err
		}
		switch err = o.write(ctx, now, id, is); {
		case err == nil:
			continue
		case errors.Is(err, errFull):
			return err
		case !errors.Is(err, store.ErrExists):
			tries, unknown = tries+1, err
		}
		if err := pause(ctx, writePause); err != nil {
			return errors.Join(unknown, fmt.Errorf("waiting to change the logins: %w", err))
		}
	}
}

// write writes the version after one.
func (o *shared) write(ctx context.Context, after version, id string, list []Login) error {
	next := version{name: listFolder + numbered(numberOf(after.name)+1), logins: list}
	logins, err := json.Marshal(list)
	if err != nil {
		return err
	}
	next.content = content{append(after.Changes[max(0, len(after.Changes)-keptChanges+1):len(after.Changes):len(after.Changes)], id), logins}
	data, err := json.Marshal(next.content)
	switch {
	case err != nil:
		return err
	case len(data) > maxFile:
		return errFull
	}
	if err := o.put(ctx, next.name, data); err != nil {
		return err
	}
	next.read = time.Now()
	o.learn(next)
	return nil
}

// put writes an object.
func (o *shared) put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, objectWait, errSlow)
	defer cancel()
	return o.objects.Put(ctx, name, data)
}

// clean deletes earlier versions after a change, and the claims of logins that it has replaced. The next one deletes what stays.
func (o *shared) clean(ctx context.Context, versions []string, was, is []Login) {
	o.remove(ctx, versions[:max(0, len(versions)-keptVersions)])
	for _, l := range was {
		if _, err := indexOf(is, l); err != nil {
			o.forget(ctx, l)
		}
	}
}

// remove deletes objects that nobody needs, as far as that is possible within objectWait.
func (o *shared) remove(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, objectWait)
	defer cancel()
	for _, name := range names {
		_ = o.objects.Delete(ctx, name)
	}
}

// pause waits for a random part of a time.
func pause(ctx context.Context, most time.Duration) error {
	if pausing.For(ctx, most/4+mathrand.N(most*3/4)) != nil {
		return context.Cause(ctx)
	}
	return nil
}
