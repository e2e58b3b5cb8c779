package cli

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// faultyStore fails at one kind of operation.
type faultyStore struct {
	store.Store
	at string
}

var errFaulty = errors.New("access denied")

func (s faultyStore) Put(ctx context.Context, name string, data []byte) error {
	if s.at == "writing" {
		return errFaulty
	}
	return s.Store.Put(ctx, name, data)
}

func (s faultyStore) Get(ctx context.Context, name string) ([]byte, error) {
	if s.at == "reading" {
		return nil, errFaulty
	}
	return s.Store.Get(ctx, name)
}

func (s faultyStore) Delete(ctx context.Context, name string) error {
	if s.at == "deleting" {
		return errFaulty
	}
	return s.Store.Delete(ctx, name)
}

func (s faultyStore) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if s.at == "listing" {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, errFaulty) }
	}
	return s.Store.List(ctx, prefix)
}

// TestTryStore: the doctor names the operation that fails, and leaves no object behind where it may delete.
func TestTryStore(t *testing.T) {
	for _, at := range []string{"", "writing", "listing", "reading", "deleting"} {
		under := storetest.Directory(t)
		err := tryStore(t.Context(), faultyStore{under, at})
		if (err != nil) != (at != "") || err != nil && !strings.HasPrefix(err.Error(), at) {
			t.Errorf("%q: got %v", at, err)
		}
		for o, err := range under.List(t.Context(), "") {
			if at != "deleting" {
				t.Errorf("%q: %v is left, %v", at, o, err)
			}
		}
	}
}
