package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

func sharedStore(t *testing.T) store.Store {
	t.Helper()
	d := storetest.Directory(t)
	t.Cleanup(func() { _ = d.Close() }) // a test may have closed it
	return d
}

// objects returns the names and texts of all objects.
func objects(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	found := map[string]string{}
	for o, err := range s.List(t.Context(), "shapes/") {
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Get(t.Context(), o.Name)
		if err != nil {
			t.Fatal(err)
		}
		found[o.Name] = string(b)
	}
	return found
}

// TestSharedShapes: gateways that learn at the same time lose nothing, and leave one object behind the next change. Names that may be
// data are not written.
func TestSharedShapes(t *testing.T) {
	inner := sharedStore(t)
	var wg sync.WaitGroup
	const many = 8
	for g := range many {
		s := state.NewShared(inner)
		wg.Go(func() {
			for i := range 5 {
				own := state.Shapes{fmt.Sprint("t", g): toolShape("1", "id"), fmt.Sprint("u", i): toolShape("1", "alice")}
				if _, err := s.SaveShapes(t.Context(), key, own, all, common); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := state.NewShared(inner)
	for range 2 { // the first one sees eight objects at most
		if _, err := s.SaveShapes(t.Context(), key, nil, all, common); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Shapes(t.Context(), key)
	if err != nil || len(got) != many+5 {
		t.Errorf("got %d tools, %v", len(got), err)
	}
	left := objects(t, inner)
	for name, text := range left {
		if strings.Contains(text, "alice") {
			t.Errorf("%s holds data: %s", name, text)
		}
	}
	if len(left) != 1 {
		t.Errorf("%d objects are left", len(left))
	}
	if _, err := s.SaveShapes(t.Context(), key, state.Shapes{"t0": toolShape("1", "id")}, all, common); err != nil {
		t.Fatal(err)
	}
	for name := range objects(t, inner) {
		if _, same := left[name]; !same {
			t.Error("an object was written that says no more than the one before")
		}
	}
	if other, err := s.Shapes(t.Context(), state.Key{Server: "another"}); err != nil || len(other) != 0 {
		t.Errorf("another server has %v, %v", other, err)
	}
}

// TestSharedShapesDamaged: an object that holds no shapes is an empty one, and goes with the next change.
func TestSharedShapesDamaged(t *testing.T) {
	inner := sharedStore(t)
	s := state.NewShared(brokenSeals{inner})
	save := func(tool string) {
		t.Helper()
		if _, err := s.SaveShapes(t.Context(), key, state.Shapes{tool: toolShape("1", "id")}, all, common); err != nil {
			t.Fatal(err)
		}
	}
	save("a")
	var name, good string
	for name, good = range objects(t, inner) {
	}
	for what, bad := range map[string]string{
		"empty": "", "half": good[:len(good)/2], "null": "null", "other version": strings.Replace(good, `"version":2`, `"version":1`, 1),
		"other key": strings.Replace(good, `"key":"`, `"key":"x`, 1), "null shapes": strings.Replace(good, `"result":{`, `"result":null,"x":{`, 1),
		"large": strings.Repeat(" ", 5<<20) + good, "broken seal": brokenSeal + good,
	} {
		bad = strings.Replace(bad, `"a":`, `"bad":`, 1)
		if err := inner.Put(t.Context(), name+"x", []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Shapes(t.Context(), key); err != nil || len(got) != 1 {
			t.Errorf("%s: got %v, %v", what, got, err)
		}
		save("a")
		if left := objects(t, inner); len(left) != 1 {
			t.Errorf("%s: %d objects are left", what, len(left))
		}
	}
}

// TestSharedShapesRotated: shapes whose key has left the key file are learned again.
func TestSharedShapesRotated(t *testing.T) {
	inner := sharedStore(t)
	gateway := func(lines ...string) *state.Shared {
		return state.NewShared(store.Seal(inner, storetest.Keys(t, lines...)))
	}
	for _, s := range []*state.Shared{gateway("old"), gateway("new", "old"), gateway("new")} {
		if _, err := s.Shapes(t.Context(), key); err != nil {
			t.Error(err)
		}
		if got, err := s.SaveShapes(t.Context(), key, state.Shapes{"a": toolShape("1", "id")}, all, common); err != nil || len(got) != 1 {
			t.Errorf("saved %v, %v", got, err)
		}
	}
	if got, err := gateway("new").Shapes(t.Context(), key); err != nil || len(got) != 1 {
		t.Errorf("with the new key there are %v, %v", got, err)
	}
}

const brokenSeal = "what the store cannot open"

// brokenSeals is a store that cannot open some of its objects.
type brokenSeals struct{ store.Store }

func (s brokenSeals) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Store.Get(ctx, name)
	if strings.HasPrefix(string(data), brokenSeal) {
		return nil, store.ErrDamaged
	}
	return data, err
}

// TestSharedShapesDown: a store that fails is an error, and a caller that has ended waits for nothing.
func TestSharedShapesDown(t *testing.T) {
	inner := sharedStore(t)
	s := state.NewShared(inner)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Shapes(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := inner.(*store.Directory).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveShapes(t.Context(), key, state.Shapes{"a": toolShape("1", "id")}, all, common); err == nil {
		t.Error("it was saved in a store that is closed")
	}
}
