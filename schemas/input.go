package schemas

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"weak"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxSentences = 12       // sentences that one check returns
	maxArguments = 64 << 20 // bytes of arguments
	maxValues    = 1 << 18  // values and names in arguments that are checked

	memoryPerByte = 8        // estimated bytes of memory for a byte of arguments
	freeDecoded   = 64 << 10 // bytes of memory that a check uses without a reservation
)

// A checker checks arguments against one schema, which it compiles when it is first used.
type checker struct {
	schema    json.RawMessage
	cache     *Cache
	compiling chan struct{} // a semaphore of one
	refused   error         // why the schema cannot be compiled; guarded by compiling

	// The cache guards the fields below.
	compiled weak.Pointer[validator]
	kept     *validator    // nil: not in the cache
	element  *list.Element // of kept
}

// check returns a sentence for each mistake in args, or a note that explains why they were not checked. See
// [github.com/mcsh-dev/mcsh/stages.Input].
func (c *checker) check(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string) {
	if _, err := bounded(args, maxArguments, maxValues); err != nil && !errors.As(err, new(manyValues)) {
		return []string{"the arguments cannot be checked: " + err.Error()}, ""
	} else if err != nil {
		return nil, unchecked(err)
	}
	if memory := int64(memoryPerByte * len(args)); memory > freeDecoded {
		if !c.cache.share.Try(memory) {
			return nil, unchecked(errors.New("there is no memory left for it"))
		}
		defer c.cache.share.Give(memory)
	}
	v, refused := c.validator(ctx) // before the arguments are read, which may start a garbage collection
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return []string{"the arguments are not valid JSON: " + err.Error()}, ""
	}
	if _, ok := value.(map[string]any); !ok {
		return []string{"the arguments must be an object, got " + show(value)}, ""
	}
	if refused != nil {
		return nil, unchecked(refused)
	}
	flaws, err := v.check(c.cache.steps(ctx), value, partial)
	if err != nil {
		return nil, unchecked(fmt.Errorf("too costly: %w", err))
	}
	return sentences(flaws, teller{value, "the arguments", NewSteps(ctx, maxHintSteps)}), ""
}

func unchecked(why error) string { return "arguments not checked here: " + why.Error() }

// validator returns the compiled schema.
func (c *checker) validator(ctx context.Context) (*validator, error) {
	if v := c.cache.get(c); v != nil {
		return v, nil
	}
	select {
	case c.compiling <- struct{}{}:
		defer func() { <-c.compiling }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.refused != nil {
		return nil, c.refused
	}
	if v := c.cache.get(c); v != nil { // compiled meanwhile
		return v, nil
	}
	v, err := compile(c.cache.steps(ctx), c.schema)
	if err != nil {
		err = fmt.Errorf("compiling the input schema: %w", err)
		if ctx.Err() == nil {
			c.refused = err
		}
		return nil, err
	}
	c.cache.put(c, v)
	return v, nil
}

// sentences describes at most maxSentences flaws of arguments and counts the others.
func sentences(flaws []flaw, t teller) []string {
	var all []string
	for _, fl := range flaws[:min(len(flaws), maxSentences)] {
		said, hint := t.tell(fl)
		if hint != "" {
			said += " (" + hint + ")"
		}
		all = append(all, said)
	}
	if left := len(flaws) - maxSentences; left > 0 {
		all = append(all, fmt.Sprintf("and %s more", texts.Count(left, "mistake")))
	}
	return all
}

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
