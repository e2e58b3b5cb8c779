package schemas

import (
	"cmp"
	"context"
	"fmt"
)

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
