package schemas

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
)

// Steps bounds work on text from a server or a caller: the work ends when its steps are spent or its context is done. A
// step is a schema applied, a value visited or compared, or some tens of bytes scanned; it takes at most about 100 ns and
// allocates at most about 100 bytes. Steps are for one goroutine.
type Steps struct {
	ctx         context.Context
	limits      Limits // the origin of the steps; zero: no operator can set them
	most, spent int
	checked     int // the value of spent at the last check of the context
	err         error
}

// checkEvery is the number of steps between two checks of the context.
const checkEvery = 1024

// NewSteps returns n steps for work that ends with ctx.
func NewSteps(ctx context.Context, n int) *Steps {
	return &Steps{ctx: ctx, most: n, err: context.Cause(ctx)}
}

// Take spends n steps and reports whether the work may continue.
func (s *Steps) Take(n int) bool {
	if s.err != nil {
		return false
	}
	s.spent += n
	switch {
	case s.spent > s.most:
		s.err = s.tooMany()
	case s.spent-s.checked >= checkEvery:
		s.checked = s.spent
		s.err = context.Cause(s.ctx)
	}
	return s.err == nil
}

// stop ends the work for a reason, unless it has ended already.
func (s *Steps) stop(why error) { s.err = cmp.Or(s.err, why) }

// Spent returns the number of steps spent, at most the number given.
func (s *Steps) Spent() int { return min(s.spent, s.most) }

// Err returns the reason why the work must end, nil while it may continue.
func (s *Steps) Err() error { return s.err }

func (s *Steps) tooMany() error {
	if s.limits.Steps == 0 {
		return fmt.Errorf("it takes more than %d steps", s.most)
	}
	return fmt.Errorf("it takes more than %d steps (limit schema-steps: %d; raise it with --limit schema-steps=VALUE)", s.most, s.limits.Steps)
}

// An Allowance holds the steps for describing all tools of one list. It may be used concurrently.
type Allowance struct {
	limits Limits
	left   atomic.Int64
}

// Allowance returns the steps for one list of tools: twice those of one check.
func (l Limits) Allowance() *Allowance {
	a := &Allowance{limits: l.withDefaults()}
	a.left.Store(2 * int64(a.limits.Steps))
	return a
}

// Steps returns the steps for describing one tool, which are part of those left.
func (a *Allowance) Steps(ctx context.Context) *Steps {
	return a.limits.steps(ctx, int(max(0, min(int64(a.limits.Steps/toolPart), a.left.Load()))))
}

// Charge subtracts the spent steps of a piece of work.
func (a *Allowance) Charge(s *Steps) { a.left.Add(-int64(s.Spent())) }

// The defaults of [Limits].
const (
	DefaultSchema = 1 << 20
	DefaultSteps  = 1 << 21
)

// toolPart: describing one tool may take 1/toolPart of the steps of a check.
const toolPart = 8

// Limits bound the work on the schemas of servers. A zero field has its default.
type Limits struct {
	Schema int64 // bytes of one schema
	Steps  int   // of compiling one schema, and of one check of arguments: references can make both exponential
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Schema, DefaultSchema), cmp.Or(l.Steps, DefaultSteps)}
}

// steps returns n steps for work within l, all fields of which are set.
func (l Limits) steps(ctx context.Context, n int) *Steps {
	s := NewSteps(ctx, n)
	s.limits = l
	return s
}

// admit returns the number of values of a schema. It refuses one that is larger than the limit, too deep or too costly to
// read.
func (l Limits) admit(schema []byte) (values int, err error) {
	if most := l.withDefaults().Schema; int64(len(schema)) > most {
		return 0, fmt.Errorf("%d bytes are more than %d (limit schema; raise it with --limit schema=SIZE)", len(schema), most)
	}
	return bounded(schema, len(schema), maxSchemaValues)
}
