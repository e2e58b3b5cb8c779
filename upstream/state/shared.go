package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/store"
)

const (
	sharedTime  = 3 * time.Second // for one reading or change: the end of a gateway waits for it
	sharedMost  = 8               // objects of one server that are read; those beyond come next
	sharedBytes = 4 << 20         // of an object
)

// A Shared keeps the shapes of results in a store that gateways share. All objects shapes/KEY/ANYTHING of a server count together.
// A writer merges them into a new one and then deletes them. So nothing is lost if several do that at the same time, and what one
// has learned the others read when they start, or when they have learned something themselves.
type Shared struct{ objects store.Store }

// NewShared returns the shapes in a store.
func NewShared(objects store.Store) *Shared { return &Shared{objects} }

// Shapes reads the shapes of a server's tools. There may be none. Others have written them: use what [shape.Result.Writable] leaves of
// them.
func (s *Shared) Shapes(ctx context.Context, k Key) (Shapes, error) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	list, _, err := s.read(ctx, k)
	return list, err
}

func folderOf(k Key) string { return "shapes/" + k.hash() + "/" }

// read returns the shapes of a server and the names of their objects.
func (s *Shared) read(ctx context.Context, k Key) (list Shapes, names []string, err error) {
	for o, err := range s.objects.List(ctx, folderOf(k)) {
		if err != nil {
			return nil, nil, err
		}
		if names = append(names, o.Name); len(names) == sharedMost {
			break
		}
	}
	list = Shapes{}
	for _, name := range names {
		one, err := s.get(ctx, k, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) { // somebody has merged it into another one
			return nil, nil, err
		}
		for tool, l := range one {
			if have, ok := list[tool]; ok && have.Schema == l.Schema {
				l.Result = shape.MergeResults(have.Result, l.Result)
			}
			list[tool] = l
		}
	}
	return list, names, nil
}

// get reads an object. One that holds no shapes of the server, or whose key is gone, is an empty one: they are learned again.
func (s *Shared) get(ctx context.Context, k Key, name string) (Shapes, error) {
	b, err := s.objects.Get(ctx, name)
	if err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrKey) {
		return nil, err
	}
	list := Shapes{}
	e := envelope{Data: &list}
	if len(b) > sharedBytes || json.Unmarshal(b, &e) != nil || e.Version != versionOf("shapes") || e.Key != k.hash() {
		return nil, nil
	}
	maps.DeleteFunc(list, func(_ string, l ToolShape) bool { return !l.Result.Known() })
	return list, nil
}

// SaveShapes does what [Dir.SaveShapes] does, and returns what counts now. It writes nothing that says no more than what is there.
func (s *Shared) SaveShapes(
	ctx context.Context, k Key, own Shapes, keep func(tool, schema string) bool, known func(tool string) func(word string) bool,
) (all Shapes, err error) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	there, names, err := s.read(ctx, k)
	if err != nil {
		return nil, err
	}
	all = own.merged(there, keep, known)
	same := func(a, b ToolShape) bool { return a.Schema == b.Schema && shape.Same(a.Result, b.Result) }
	if len(names) < 2 && maps.EqualFunc(there, all, same) {
		return all, nil
	}
	b, err := json.Marshal(envelope{versionOf("shapes"), k.hash(), all})
	switch {
	case err != nil:
		return nil, err
	case len(b) > sharedBytes:
		return nil, fmt.Errorf("%d bytes of shapes are more than %d", len(b), sharedBytes)
	}
	if err := s.objects.Put(ctx, folderOf(k)+rand.Text(), b); err != nil {
		return nil, err
	}
	for _, name := range names {
		_ = s.objects.Delete(ctx, name) // or the next time
	}
	return all, nil
}
