package toollist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// fixed are the arguments that the operator adds to every call of a tool.
type fixed map[string]json.RawMessage

// in returns the fixed arguments that a tool takes, and its input schema without them: no schema if that fails, since
// agents must not see them. A tool that takes only declared arguments gets no others: it would refuse every call.
func (f fixed) in(ctx context.Context, r *Reader, schema json.RawMessage) (fixed, json.RawMessage, error) {
	if len(f) == 0 || len(schema) == 0 {
		return f, schema, nil
	}
	steps := r.steps(ctx)
	said, _ := schemas.Describe(steps, "", schema) // the part that can be read is enough
	r.Allowance.Charge(steps)
	takes := fixed{}
	for name, value := range f {
		if !said.Input.Closed || slices.Contains(said.Input.Properties, name) {
			takes[name] = value
		}
	}
	steps = r.steps(ctx)
	defer r.Allowance.Charge(steps)
	shown, err := schemas.Without(steps, schema, takes.names())
	if err != nil {
		return takes, nil, fmt.Errorf("taking the fixed arguments out of the input schema: %w", err)
	}
	return takes, shown, nil
}

func (f fixed) names() []string { return slices.Sorted(maps.Keys(f)) }

// apply makes a tool check calls against the schema that the server sent, with the fixed arguments added. If those are
// wrong by themselves, the tool cannot be called.
func (f fixed) apply(ctx context.Context, c *CatalogTool, check checkFunc) {
	if len(f) == 0 {
		return
	}
	if c.Flaw != "" {
		check = c.Tool.Input.Check
	}
	c.Tool.Input.Fixed = f.names()
	c.Tool.Input.Check = func(ctx context.Context, args json.RawMessage, partial bool) ([]string, string) {
		whole, err := f.Into(args)
		if err != nil {
			return []string{err.Msg}, ""
		}
		return check(ctx, whole, partial)
	}
	if wrong, _ := check(ctx, f.object(), true); len(wrong) > 0 && c.Denied == "" {
		c.Denied = "the operator's fixed arguments (with) are wrong: " + strings.Join(wrong, "; ")
	}
}

// checkFunc is the Check of a [stages.Input].
type checkFunc func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string)

// object returns all fixed arguments as JSON.
func (f fixed) object() json.RawMessage {
	return json.RawMessage(texts.JSON(map[string]json.RawMessage(f)))
}

// has reports whether arguments have a name in any case: many servers accept ROOT for root.
func has(given map[string]json.RawMessage, name string) bool {
	for other := range given {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// Into adds the fixed arguments to those of a call, whose bytes stay as they are. Arguments that repeat one are refused.
func (f fixed) Into(args json.RawMessage) (json.RawMessage, *stages.Error) {
	if len(f) == 0 {
		return args, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil || given == nil {
		return args, nil // the check or the call reports the mistake
	}
	for _, name := range f.names() {
		if has(given, name) {
			return nil, stages.Errorf(stages.InvalidArguments, "leave it out", "the argument %q is fixed by the operator and cannot be given", name)
		}
	}
	whole := f.object()
	if len(given) > 0 {
		whole = append(whole[:len(whole)-1], ',')
		whole = append(whole, bytes.TrimSpace(args)[1:]...)
	}
	return whole, nil
}
