package pipelines

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/store"
)

// maxRemoved is how many pipelines that were removed keep their versions. Those of the one removed first go first.
const maxRemoved = MaxPipelines / 2

func (m *shared) hold(ctx context.Context, name string) (release func(), err error) {
	if err := m.refreshOne(ctx, name); err != nil {
		return nil, fmt.Errorf("%w; nothing was changed: %w", ErrStore, err)
	}
	return func() {}, nil
}

func (m *shared) save(ctx context.Context, name string, text []byte, p *Saved, author Author) (Version, error) {
	if hash := hashOf(text); p == nil || p.Version.Hash != hash {
		return m.put(ctx, name, entry{Version: Version{Hash: hash, Author: author, Text: string(text)}})
	}
	return p.Version, nil
}

func (m *shared) adopt(ctx context.Context, p *Saved) (Version, error) {
	return m.put(ctx, p.Name, entry{Version: p.Version.adopted()})
}

func (m *shared) remove(ctx context.Context, p *Saved) error {
	if _, err := m.put(ctx, p.Name, entry{Removed: true}); err != nil {
		return err
	}
	m.purge(ctx)
	return nil
}

// put writes the next entry of a pipeline, and then removes the oldest ones beyond those that are kept.
func (m *shared) put(ctx context.Context, name string, e entry) (Version, error) {
	h := m.head(name)
	if h != nil {
		e.Number = h.Number
	}
	if e.Number++; e.Number > mostNumber {
		return Version{}, fmt.Errorf("%w: %s has no version after %d", ErrFull, name, mostNumber)
	}
	if e.Saved.IsZero() {
		e.Saved = time.Now().UTC() // to the nanosecond: no two are equal
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Version{}, err
	}
	if err := m.write(ctx, objectOf(name, e.Number), data); err != nil {
		return Version{}, err
	}
	defer m.announce(ctx)
	old, ids, err := m.written(ctx, name, e.Number)
	if err != nil {
		return Version{}, err
	}
	m.mu.Lock()
	if m.heads[name] == h { // else it was read meanwhile, or a later one
		m.now++
		m.heads[name] = &head{entry: e, ids: ids, learned: m.now}
	}
	m.mu.Unlock()
	m.drop(ctx, name, old)
	return e.Version, nil
}

// written returns the ids of the entries up to one that was just written: the old ones, which go, and those that are kept. The number of
// that entry may have been free because others have written and deleted more meanwhile: then it does not count and goes.
func (m *shared) written(ctx context.Context, name string, number int) (old, kept []id, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	l, err := m.list(ctx, sharedRoot+name+"/", mostObjects)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	ids := l.ids[name]
	i := indexOf(ids, number)
	if i < max(0, len(ids)-MaxVersions) || number > 1 && indexOf(ids, number-1) < 0 {
		m.drop(ctx, name, []id{{number: number}})
		return nil, nil, errOutrun
	}
	first := max(0, i+1-MaxVersions)
	return ids[:first], ids[first : i+1], nil
}

// write writes an object. If the store fails on the way, it looks whether the object is there.
func (m *shared) write(ctx context.Context, object string, data []byte) error {
	putting, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	failed := m.objects.Put(putting, object, data)
	if failed == nil {
		return nil
	}
	there, err := m.get(context.WithoutCancel(ctx), object) // the caller may have ended on the way
	switch {
	case err == nil && bytes.Equal(there, data): // a repeated request finds what it has made itself
		return nil
	case err == nil, errors.Is(failed, store.ErrExists):
		return errOutrun
	}
	return fmt.Errorf("%w: %w", ErrUnsettled, failed)
}

// announce leaves a mark, so that other gateways read the store again. Without the mark they notice the change within a minute.
func (m *shared) announce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	l, err := m.list(ctx, sharedMarks, mostMarks)
	if m.objects.Put(ctx, sharedMarks+rand.Text(), nil) != nil || err != nil {
		return
	}
	for _, mark := range l.marks {
		_ = m.objects.Delete(ctx, mark) // the next time
	}
}

// drop deletes entries of a pipeline, and reports whether it could.
func (m *shared) drop(ctx context.Context, name string, ids []id) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	for _, one := range ids {
		if m.objects.Delete(ctx, objectOf(name, one.number)) != nil {
			return false // the rest stays until the next time
		}
	}
	return true
}

// purge deletes the versions of the pipeline that was removed first, if there are too many. Its removal goes last, so that it is
// never back.
func (m *shared) purge(ctx context.Context) {
	m.mu.Lock()
	removed, name, first := 0, "", &head{}
	for other, h := range m.heads {
		if !h.Removed {
			continue
		}
		if removed++; name == "" || h.Saved.Before(first.Saved) {
			name, first = other, h
		}
	}
	m.mu.Unlock()
	if removed <= maxRemoved || !m.drop(ctx, name, first.ids) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heads[name] == first {
		delete(m.heads, name)
	}
}
