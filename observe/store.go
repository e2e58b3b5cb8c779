package observe

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsh-dev/mcsh/store"
)

// StoreMetrics are those of the store that gateways share, which is open before the gateway has others.
type StoreMetrics struct {
	operations *prometheus.CounterVec
	time       *prometheus.HistogramVec
}

// NewStoreMetrics makes the metrics of a store.
func NewStoreMetrics() *StoreMetrics {
	return &StoreMetrics{
		prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcsh_store_operations_total",
			Help: "Operations of the shared store, by operation (put, get, list, delete) and outcome: ok, exists, not_found, unreadable, cancelled or failed.",
		}, []string{"operation", "outcome"}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcsh_store_operation_duration_seconds", Help: "How long operations of the shared store took, by operation.", Buckets: callBuckets,
		}, []string{"operation"}),
	}
}

// AddStore adds the metrics of the shared store.
func (m *Metrics) AddStore(s *StoreMetrics) { m.registry.MustRegister(s.operations, s.time) }

// Watch returns a store whose operations are counted and timed.
func (m *StoreMetrics) Watch(next store.Store) store.Store { return watchedStore{next, m} }

// outcomes of operations, by what their errors are; any other is failed.
var outcomes = []struct {
	err     error
	outcome string
}{
	{nil, "ok"},
	{store.ErrExists, "exists"},
	{store.ErrNotFound, "not_found"},
	{store.ErrDamaged, "unreadable"},
	{store.ErrKey, "unreadable"},
	{context.Canceled, "cancelled"},
}

// ended counts an operation.
func (m *StoreMetrics) ended(operation string, took time.Duration, err error) {
	outcome := "failed"
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			outcome = o.outcome
			break
		}
	}
	m.operations.WithLabelValues(operation, outcome).Inc()
	m.time.WithLabelValues(operation).Observe(took.Seconds())
}

type watchedStore struct {
	next    store.Store
	metrics *StoreMetrics
}

// Put implements [store.Store].
func (s watchedStore) Put(ctx context.Context, name string, data []byte) error {
	begun := time.Now()
	err := s.next.Put(ctx, name, data)
	s.metrics.ended("put", time.Since(begun), err)
	return err
}

// Get implements [store.Store].
func (s watchedStore) Get(ctx context.Context, name string) ([]byte, error) {
	begun := time.Now()
	data, err := s.next.Get(ctx, name)
	s.metrics.ended("get", time.Since(begun), err)
	return data, err
}

// List implements [store.Store]. The time of those who read the list does not count.
func (s watchedStore) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		var took time.Duration
		var failed error
		begun := time.Now()
		for o, err := range s.next.List(ctx, prefix) {
			took += time.Since(begun)
			failed = err
			if !yield(o, err) {
				s.metrics.ended("list", took, failed)
				return
			}
			begun = time.Now()
		}
		s.metrics.ended("list", took+time.Since(begun), failed)
	}
}

// Delete implements [store.Store].
func (s watchedStore) Delete(ctx context.Context, name string) error {
	begun := time.Now()
	err := s.next.Delete(ctx, name)
	s.metrics.ended("delete", time.Since(begun), err)
	return err
}
