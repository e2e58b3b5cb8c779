package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// An expression is a jq expression that a field of a stage holds. A mere path is followed here, in the bytes as they
// are; anything else is a hostile program and runs as the command jq, in the sandbox, whose process stays from one
// value to the next.
type expression struct {
	field   string // of the stage, such as "paginate.next"
	text    string
	path    path
	program *Command // nil for a path
}

// compileExpression checks an expression with the plan. It returns nil for an empty one.
func compileExpression(field, text string, s Scope) (*expression, error) {
	if text == "" {
		return nil, nil
	}
	e := &expression{field: field, text: text}
	if p, ok := parsePath(text); ok {
		e.path = p
		return e, nil
	}
	if s.Commands == nil {
		return nil, fielded(field, Errorf(DisallowedCommand, "write a path such as .meta.cursor, or start the gateway with a sandbox",
			"%s is a jq program, and there is no sandbox to run it in", quoted(text)))
	}
	// The brackets collect what it gives into one value; alone it must be a program too.
	e.program = &Command{Name: "jq", Args: []string{"-c", "--", "[\n" + text + "\n]"}, Timeout: s.Limits.Command, Each: true}
	alone := *e.program
	alone.Args = []string{"-c", "--", text}
	for _, c := range []Command{alone, *e.program} {
		if _, err := s.Commands.CheckCommand(c); err != nil {
			return nil, withField(err, field)
		}
	}
	return e, nil
}

// withField says that the errors in err are about a field of the stage.
func withField(err error, field string) error {
	var all []error
	for _, e := range flatten(err) {
		c := *e
		c.Field = field
		all = append(all, &c)
	}
	return errors.Join(all...)
}

// An evaluator gives what an expression makes of a JSON value, one by one, to yield.
type evaluator func(ctx context.Context, value json.RawMessage, yield func(json.RawMessage) error) error

// bind readies an expression for a run; nil stays nil.
func (e *expression) bind(ctx context.Context, r *Run) (evaluator, error) {
	if e == nil {
		return nil, nil
	}
	if e.program == nil {
		return e.follow, nil
	}
	session, err := r.commands(ctx)
	if err != nil {
		return nil, err
	}
	filter, err := session.Prepare([]Command{*e.program}, func(int, Usage) {})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, value json.RawMessage, yield func(json.RawMessage) error) error {
		out := holder{r: r}
		defer out.release()
		if err := filter(ctx, bytes.NewReader(value), &out); err != nil {
			return e.failed(err)
		}
		list := values(out.buf.Bytes())
		if len(list) != 1 || list[0][0] != '[' {
			return fmt.Errorf("jq gave no array for [%s]", e.text)
		}
		return yieldAll(list[0], yield)
	}, nil
}

func (e *expression) follow(_ context.Context, value json.RawMessage, yield func(json.RawMessage) error) error {
	var stopped error
	err := e.path.each(value, func(v json.RawMessage) error {
		stopped = yield(v)
		return stopped
	})
	if err == nil || stopped != nil {
		return err
	}
	return e.failed(Errorf(CommandFailed, `look at the result with a preview stage; a "?" behind a step passes over what does not fit`, "%w", err))
}

// failed says which expression has failed. What a chain of commands says of its place means nothing here.
func (e *expression) failed(err error) error {
	var cause *Error
	if !errors.As(err, &cause) {
		return err
	}
	c := *cause
	c.Place, c.Label, c.Field, c.Sample = "", "", e.field, nil
	if cause.Code == Timeout {
		c.Hint = "write a path such as .a.b, or ask the tool for smaller pages"
	}
	c.Msg = fmt.Sprintf("%s %s: %s", e.field, quoted(e.text), c.Msg)
	return &c
}

func yieldAll(array json.RawMessage, yield func(json.RawMessage) error) error {
	for v := range elements(array) {
		if err := yield(v); err != nil {
			return err
		}
	}
	return nil
}

// single returns the one value that an expression gives; null if it gives none.
func (e *expression) single(ctx context.Context, eval evaluator, value json.RawMessage) (json.RawMessage, error) {
	found, n := null, 0
	err := eval(ctx, value, func(v json.RawMessage) error {
		found, n = bytes.Clone(v), n+1
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n > 1 {
		return nil, e.failed(Errorf(CommandFailed, "take one of them, such as first(…)", "it gives %d values, one is needed", n))
	}
	return found, nil
}
