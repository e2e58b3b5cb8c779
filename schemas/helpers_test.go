package schemas_test

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

func steps() *schemas.Steps { return schemas.NewSteps(context.Background(), 1<<18) }

// compileInput reads a schema and compiles it at once. Check is nil where that cannot be done.
func compileInput(schema json.RawMessage) (stages.Input, error) {
	d, err := schemas.Describe(steps(), "tool", schema)
	in := d.Input
	if err != nil {
		return in, err
	}
	in.Check = schemas.NewCache(1<<30, nil, schemas.Limits{}).Check(schema)
	if _, note := in.Check(context.Background(), json.RawMessage(`{}`), true); note != "" {
		in.Check = nil
		return in, errors.New(note)
	}
	return in, nil
}

// check returns the mistakes of arguments, or why they cannot be checked.
func check(in stages.Input, args json.RawMessage, partial bool) []string {
	wrong, note := in.Check(context.Background(), args, partial)
	if note != "" {
		return append(wrong, note)
	}
	return wrong
}

func signature(name string, schema json.RawMessage) string {
	d, _ := schemas.Describe(steps(), name, schema)
	return d.Signature
}
