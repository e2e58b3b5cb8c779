package observe_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// away is a store that cannot be reached, or has another key.
type away struct {
	store.Store
	err error
}

// Get implements [store.Store].
func (a *away) Get(ctx context.Context, name string) ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.Store.Get(ctx, name)
}

// List implements [store.Store].
func (a *away) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if a.err != nil {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, a.err) }
	}
	return a.Store.List(ctx, prefix)
}

// TestStore: operations of the shared store are counted by how they end, and do what they did.
func TestStore(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	metrics := observe.NewStoreMetrics()
	w.metrics.AddStore(metrics)
	inner := &away{Store: storetest.Directory(t)}
	s := metrics.Watch(inner)
	ctx := t.Context()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	names := func() (n int, failed error) {
		for _, err := range s.List(ctx, "") {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	first, second := s.Put(ctx, "a/b", []byte("x")), s.Put(ctx, "a/b", []byte("y"))
	if first != nil || !errors.Is(second, store.ErrExists) {
		t.Errorf("put: %v, %v", first, second)
	}
	if data, err := s.Get(ctx, "a/b"); string(data) != "x" || err != nil {
		t.Errorf("get: %q, %v", data, err)
	}
	if _, err := s.Get(ctx, "c"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Get(cancelled, "a/b"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
	if n, err := names(); n != 1 || err != nil {
		t.Errorf("list: %d, %v", n, err)
	}
	for range s.List(ctx, "") {
		break
	}
	for _, err := range []error{store.ErrKey, store.ErrDamaged, errors.New("no route to host")} {
		inner.err = err
		if _, got := s.Get(ctx, "a/b"); got != err {
			t.Errorf("get: %v, want %v", got, err)
		}
	}
	if _, err := names(); err != inner.err {
		t.Errorf("list: %v", err)
	}
	if err := s.Delete(ctx, "a/b"); err != nil {
		t.Error(err)
	}
	got, _ := w.scrape()
	for name, n := range map[string]float64{
		"put,outcome=ok": 1, "put,outcome=exists": 1, "get,outcome=ok": 1, "get,outcome=not_found": 1, "get,outcome=cancelled": 1,
		"get,outcome=unreadable": 2, "get,outcome=failed": 1, "list,outcome=ok": 2, "list,outcome=failed": 1, "delete,outcome=ok": 1,
	} {
		if name = "mcsh_store_operations_total{operation=" + name + "}"; got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	for operation, n := range map[string]float64{"put": 2, "get": 6, "list": 3, "delete": 1} {
		if name := "mcsh_store_operation_duration_seconds{operation=" + operation + "}"; got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

// TestJobs: attempts at durable runs and parts of runs are counted by how they end.
func TestJobs(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	watch := observe.Watch{Metrics: w.metrics}
	failed := errors.New("failed")
	watch.Job(false)(false, nil)
	watch.Job(true)(true, failed)
	watch.Job(true)(false, failed)
	watch.Job(true)
	got, _ := w.scrape()
	for name, n := range map[string]float64{
		"total{kind=run,outcome=done}": 1, "total{kind=part,outcome=left}": 1, "total{kind=part,outcome=failed}": 1, "active{kind=run}": 0, "active{kind=part}": 1,
	} {
		if v, ok := got["mcsh_durable_attempts_"+name]; !ok || v != n {
			t.Errorf("%s is %v, want %v", name, v, n)
		}
	}
}
