package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ToolStage calls one tool of one upstream MCP server (pipeline.md §3).
type ToolStage struct {
	Server  string          `json:"server" jsonschema:"minLength=1" jsonschema_description:"Upstream server, as named by list_all_tools."`
	Name    string          `json:"name" jsonschema:"minLength=1" jsonschema_description:"Tool of that server."`
	Args    json.RawMessage `json:"args,omitempty" jsonschema:"type=object" jsonschema_description:"Arguments. The fields of an incoming JSON object are added to them; args win."`
	Timeout float64         `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds for one call."`
}

// Label names the stage in messages.
func (t *ToolStage) Label() string {
	if t.Server == "" || t.Name == "" {
		return "tool"
	}
	return fmt.Sprintf("tool %s/%s", t.Server, t.Name)
}

// Compile checks that the tool exists and that the literal arguments fit its schema as far as they are known: wholly
// where nothing flows into the stage.
func (t *ToolStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	if err := errors.Join(missing("server", t.Server), missing("name", t.Name)); err != nil {
		return nil, err
	}
	if s.Tools == nil {
		return nil, Errorf(ServerUnavailable, "start the gateway with a config file that names servers", "there are no MCP servers here")
	}
	timeout, terr := within(t.Timeout, s.Limits.Call, "call")
	args, aerr := t.args()
	info, err := s.Tools.Tool(ctx, t.Server, t.Name)
	if err := errors.Join(terr, aerr, err); err != nil {
		return nil, err
	}
	if err := checkLiteral(info, args, s.Fed); err != nil {
		return nil, err
	}
	step := &Step{
		Label: t.Label(), Effect: effect(info), alone: !sideBySide(info), takesValue: true,
		Does:    fmt.Sprintf("calls %s", info.Signature),
		Expects: "nothing, a JSON object of arguments, or one value for the only argument that is open",
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		c := &caller{r: r, m: m, tool: info, args: args, timeout: timeout, show: s.Last && s.Site == AtTop}
		return c.filter, nil
	}
	return step, nil
}

// readingVerbs begin the names of tools that only read, as far as a name can tell.
var readingVerbs = []string{"get", "list", "read", "search", "find", "query", "fetch", "describe", "count", "show"}

// sideBySide reports whether calls of a tool may run at the same time unasked (pipeline.md §4, concurrency).
func sideBySide(info *Tool) bool {
	if info.Annotated {
		return info.ReadOnly || info.Idempotent
	}
	name := strings.ToLower(info.Name)
	for _, verb := range readingVerbs {
		rest, ok := strings.CutPrefix(name, verb)
		if ok && (rest == "" || !identifier(rest[:1]) || rest[0] == '_' || info.Name[len(verb)] != rest[0]) {
			return true
		}
	}
	return info.ReadOnly
}

// missing is the mistake of a stage without a field that it cannot do without.
func missing(field, value string) error {
	if value != "" {
		return nil
	}
	return fielded(field, Errorf(InvalidPipeline, "", "missing field %q, a string", field))
}

func effect(info *Tool) Effect {
	if info.ReadOnly {
		return ReadOnly
	}
	return Changes
}

func (t *ToolStage) args() ([]member, error) {
	if len(t.Args) == 0 {
		return nil, nil
	}
	args, err := parseObject(t.Args)
	if err != nil {
		return nil, fielded("args", Errorf(InvalidPipeline, `give arguments by name: "args": {"name": value}`,
			"args must be an object, got %s", describe(t.Args)))
	}
	return args, nil
}

// checkLiteral validates the arguments that stand in the plan. Where nothing flows in they are all that there is.
func checkLiteral(info *Tool, args []member, fed bool) error {
	if info.Input.Check == nil {
		return nil
	}
	var errs []error
	for _, problem := range info.Input.Check(encodeObject(args), fed) {
		errs = append(errs, fielded("args", Errorf(InvalidArguments, "signature: "+info.Signature, "%s", problem)))
	}
	return errors.Join(errs...)
}

// within returns seconds as a duration, or the limit where none are given.
func within(seconds float64, limit time.Duration, name string) (time.Duration, error) {
	if seconds == 0 {
		return limit, nil
	}
	d := time.Duration(seconds * float64(time.Second))
	if d <= 0 || d > limit {
		return 0, fielded("timeout", Errorf(LimitExceeded, fmt.Sprintf("at most %g seconds", limit.Seconds()),
			"timeout %g s is not within the operator's limit of %s (limit %s)", seconds, limit, name))
	}
	return d, nil
}

// caller is a tool stage bound to a run.
type caller struct {
	r       *Run
	m       *Meter
	tool    *Tool
	args    []member
	timeout time.Duration
	show    bool // the result's blocks are the reply's
}

func (c *caller) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	limit := c.r.deps.Limits.Input
	input, more, err := readAll(in, limit)
	if err != nil {
		return err
	}
	if more {
		return Errorf(LimitExceeded, `set "for_each": true to call the tool once per item, or shrink the data with a command before`,
			"the tool would get more than %s in one call (limit input)", size(limit))
	}
	args, leftOut, err := arguments(c.tool, c.args, input)
	if err != nil {
		return err
	}
	c.m.leave(leftOut)
	result, err := c.call(ctx, args)
	if err != nil {
		return err
	}
	if c.show {
		c.r.show(result.Blocks)
	}
	_, err = io.Copy(out, bytes.NewReader(result.Data))
	return err
}

// call makes the call within its time. A call with effects that has begun is let finish, whatever ends around it.
func (c *caller) call(ctx context.Context, args json.RawMessage) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err := c.r.called(c.m); err != nil {
		return Result{}, err
	}
	if effect(c.tool) == Changes {
		free, cancel := c.r.letFinish(ctx)
		defer cancel()
		ctx = free
	}
	call, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	result, err := c.r.deps.Tools.CallTool(call, c.tool.Server, c.tool.Name, args)
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		return Result{}, Errorf(Timeout, "ask the tool for less, or raise the stage's timeout if the operator allows more",
			"the tool did not answer within %s (limit call)", c.timeout)
	}
	return result, err
}

// arguments builds a call's arguments from what flows in and what the plan says, and names the fields of the data
// that the tool does not take (pipeline.md §3).
func arguments(tool *Tool, args []member, input []byte) (json.RawMessage, []string, error) {
	input = bytes.TrimSpace(input)
	if at := invalidUTF8(input); at >= 0 {
		return nil, nil, Errorf(InvalidArguments, "decode the data before, or leave out what is not text",
			"the data for the tool's arguments is not valid UTF-8 at byte %d (line %d)", at+1, 1+bytes.Count(input[:at], []byte("\n")))
	}
	merged := []member{}
	var leftOut []string
	object, err := parseObject(input)
	switch {
	case len(input) == 0:
	case err == nil:
		for _, m := range object {
			if tool.Input.Closed && !slices.Contains(tool.Input.Properties, m.key) {
				leftOut = append(leftOut, m.key)
				continue
			}
			merged = set(merged, m.key, m.value)
		}
	default:
		key, err := openArgument(tool, args, input)
		if err != nil {
			return nil, nil, err
		}
		merged = set(merged, key, bareValue(tool, args, key, input))
	}
	for _, m := range args {
		merged = set(merged, m.key, m.value)
	}
	final := encodeObject(merged)
	return final, leftOut, checkFinal(tool, final)
}

func checkFinal(tool *Tool, final json.RawMessage) error {
	if tool.Input.Check == nil {
		return nil
	}
	if problems := tool.Input.Check(final, false); len(problems) > 0 {
		return Errorf(InvalidArguments, "signature: "+tool.Signature, "%s; the arguments were %s",
			strings.Join(problems, "; "), shortened(string(final), 200))
	}
	return nil
}

// openArgument chooses the argument that takes a value which is no object.
func openArgument(tool *Tool, args []member, input []byte) (string, error) {
	in := tool.Input
	if slices.Contains(in.Properties, "input") || len(in.Properties) == 0 && !in.Closed {
		return "input", nil
	}
	var open []string
	for _, name := range in.Required {
		if !given(args, name) {
			open = append(open, name)
		}
	}
	if len(open) == 1 {
		return open[0], nil
	}
	names := open
	if len(names) == 0 {
		names = in.Properties
	}
	hint := "signature: " + tool.Signature
	if len(names) > 0 {
		hint = fmt.Sprintf(`build an object before, for example with jq -c '%s' (signature: %s)`, objectProgram(names, input), tool.Signature)
	}
	return "", Errorf(InvalidArguments, hint, "the tool takes arguments by name, and it is not clear which one %s is for", shortened(string(input), 80))
}

func given(args []member, name string) bool {
	for _, m := range args {
		if m.key == name {
			return true
		}
	}
	return false
}

// objectProgram is a jq program that makes an object of the first name, and of more where the input has more values.
func objectProgram(names []string, input []byte) string {
	var b strings.Builder
	isArray := len(input) > 0 && input[0] == '['
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		key, _ := json.Marshal(name)
		if identifier(name) {
			key = []byte(name)
		}
		if isArray {
			fmt.Fprintf(&b, "%s: .[%d]", key, i)
		} else {
			fmt.Fprintf(&b, "%s: .", key)
		}
	}
	return "{" + b.String() + "}"
}

func identifier(name string) bool {
	for i, c := range name {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

// bareValue is input as the value of argument key: the JSON value that it is, else a string. A value such as 17 or
// [1] is given as text where the tool's schema wants a string there: a line of text has no type of its own.
func bareValue(tool *Tool, args []member, key string, input []byte) json.RawMessage {
	text := json.RawMessage(appendString(nil, input))
	if !json.Valid(input) {
		return text
	}
	if check := tool.Input.Check; check != nil {
		only := func(v json.RawMessage) bool { return len(check(encodeObject([]member{{key, v}}), true)) == 0 }
		if !only(input) && only(text) {
			return text
		}
	}
	return input
}
