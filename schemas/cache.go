package schemas

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"weak"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// A Cache keeps the most recently used compiled schemas within a number of bytes. It may be used concurrently.
type Cache struct {
	most   int64
	share  *memory.Share
	limits Limits

	mu     sync.Mutex // guards the fields below and the entries of all checkers
	size   int64
	recent list.List // of *checker, the most recently used first
}

// NewCache returns a cache of at most an estimated number of bytes, which it takes from a share.
func NewCache(most int64, share *memory.Share, l Limits) *Cache {
	return &Cache{most: most, share: share, limits: l.withDefaults()}
}

// Limits returns the limits of the schemas that the cache compiles.
func (c *Cache) Limits() Limits { return c.limits }

// steps returns the steps of one check.
func (c *Cache) steps(ctx context.Context) *Steps { return c.limits.steps(ctx, c.limits.Steps) }

// Size returns the estimated bytes of all entries.
func (c *Cache) Size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// Check returns a check of arguments against the input schema of a tool, for stages.Input. The first call compiles the
// schema in the dialect that it declares, or in the first of 2020-12, draft-07 and draft-04 that accepts it. References
// to other documents are never fetched, and formats are not checked. An empty schema accepts anything.
func (c *Cache) Check(schema json.RawMessage) func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string) {
	if skipSpace(schema, 0) == len(schema) {
		schema = json.RawMessage("{}")
	}
	return (&checker{schema: schema, cache: c, compiling: make(chan struct{}, 1)}).check
}

// get returns the compiled schema if the cache has it, or if another check uses it or has just used it: a schema that is
// too large for the cache is not compiled again for each of many checks.
func (c *Cache) get(of *checker) *validator {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.element != nil {
		c.recent.MoveToFront(of.element)
	}
	return of.compiled.Value()
}

// put adds a compiled schema if there is memory for it, and evicts the least recently used ones.
func (c *Cache) put(of *checker, v *validator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of.compiled = weak.Make(v)
	if v.size > c.most {
		return
	}
	for c.size+v.size > c.most || !c.share.Try(v.size) {
		if c.recent.Len() == 0 {
			return
		}
		last := c.recent.Remove(c.recent.Back()).(*checker)
		c.size -= last.kept.size
		c.share.Give(last.kept.size)
		last.kept, last.element = nil, nil
	}
	of.kept, of.element = v, c.recent.PushFront(of)
	c.size += v.size
}
