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

	Paginate *Paginate `json:"paginate,omitempty" jsonschema_description:"true: fetch all pages of a list; output is one array of all items. An object says how."`

	collect string // the form of the items of all pages
}

// collectAs implements [collecting]: pages are collected as the results of a for_each are.
func (t *ToolStage) collectAs(form string) bool {
	t.collect = form
	return t.pages()
}

func (t *ToolStage) pages() bool { return t.Paginate != nil && !t.Paginate.off }

// paging compiles paginate; nil where the tool is called once.
func (t *ToolStage) paging(info *Tool, s Scope) (*paging, error) {
	if !t.pages() {
		return nil, nil
	}
	return t.Paginate.compile(info, s)
}

// Label names the stage in messages.
func (t *ToolStage) Label() string {
	if t.Server == "" || t.Name == "" {
		return "tool"
	}
	return fmt.Sprintf("tool %s/%s", shown(t.Server), shown(t.Name))
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
	pg, err := t.paging(info, s)
	if err != nil {
		return nil, err
	}
	if info, err = checkLiteral(info, encodeObject(pg.with(args)), s.Fed); err != nil {
		return nil, err
	}
	step := &Step{
		Label: t.Label(), Effect: effect(info), alone: !sideBySide(info), takesValue: true, accepts: s.Limits.Input,
		Does:    fmt.Sprintf("calls %s%s", info.Signature, pg.does()),
		Expects: "nothing, a JSON object of arguments, or one value for the only argument that is open",
		tool:    info, repeats: info.ReadOnly || info.Idempotent && s.direct,
	}
	step.clock = t.clock(timeout, info, s.Limits)
	step.most.time = step.clock.given
	if pg != nil {
		step.most.pages = pg.max
	}
	caller := func(r *Run, m *Meter) *caller {
		c := &caller{
			r: r, m: m, tool: info, args: args, fallback: pg.fallback(), clock: step.clock, show: s.Last && s.Site == AtTop,
			repeats: step.repeats, each: s.Each,
		}
		if once := s.distinct; s.Each && (once == nil && info.ReadOnly && !step.stale || once != nil && *once) {
			c.shared = &shared{c: c, forever: !info.ReadOnly, answers: map[callKey]*answer{}}
		}
		if s.Each && !info.ReadOnly {
			if n := r.log.nextTool(); c.shared != nil {
				c.shared.log, c.shared.tool = r.log, n
			}
		}
		return c
	}
	step.Bind = func(ctx context.Context, r *Run, m *Meter) (Filter, error) {
		if pg == nil {
			return caller(r, m).filter, nil
		}
		return bindPager(ctx, caller(r, m), pg, t.collect == collectLines)
	}
	step.rehearse = func(r *Run, m *Meter, note func(undone) error) Filter {
		return caller(r, m).rehearse(note)
	}
	return step, nil
}

// clock is the time of one call: what the stage asks for, or what is configured for the server.
func (t *ToolStage) clock(asked time.Duration, info *Tool, l Limits) clock {
	c := clock{asked, l.Call, "call", `the stage's "timeout"`}
	if t.Timeout == 0 && info.Timeout > 0 {
		c.given, c.field = info.Timeout, `the stage's "timeout" (what counts now is the server's configuration)`
	}
	return c
}

// rehearse is a call that is noted and not made. Calls that would share one result are noted once.
func (c *caller) rehearse(note func(undone) error) Filter {
	return func(_ context.Context, in io.Reader, _ io.Writer) error {
		args, err := c.arguments(in)
		if err != nil || c.shared != nil && !c.shared.first(args) {
			return err
		}
		return note(undone{args: args})
	}
}

// readingVerbs begin the names of tools that only read, as far as a name can tell.
var readingVerbs = []string{"get", "list", "read", "search", "find", "query", "fetch", "describe", "count", "show"}

// sideBySide reports whether calls of a tool may run at the same time unasked (pipeline.md §4, concurrency).
func sideBySide(info *Tool) bool {
	if info.Annotated {
		return info.ReadOnly || info.Idempotent
	}
	return info.ReadOnly || slices.Contains(readingVerbs, strings.ToLower(firstWord(info.Name)))
}

// firstWord returns what stands before the first separator or capital letter of a name: "get" of get_item and getItem.
func firstWord(name string) string {
	for i, c := range name {
		lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
		if i > 0 && !lower || i == 0 && !lower && !upper {
			return name[:i]
		}
	}
	return name
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

// checkLiteral validates the arguments that stand in the plan. Where nothing flows in they are all that there is, and the
// tool that is returned does not check them again.
func checkLiteral(info *Tool, args json.RawMessage, fed bool) (*Tool, error) {
	check := info.Input.Check
	if check == nil {
		return info, nil
	}
	var errs []error
	for _, problem := range check(args, fed) {
		errs = append(errs, fielded("args", Errorf(InvalidArguments, "signature: "+info.Signature, "%s", problem)))
	}
	if fed || errs != nil {
		return info, errors.Join(errs...)
	}
	knowing := *info
	knowing.Input.Check = func(other json.RawMessage, partial bool) []string {
		if !partial && bytes.Equal(args, other) {
			return nil
		}
		return check(other, partial)
	}
	return &knowing, nil
}

// within returns seconds as a duration, or the limit where none are given.
func within(seconds float64, limit time.Duration, name string) (time.Duration, error) {
	if seconds == 0 {
		return limit, nil
	}
	d := time.Duration(seconds * float64(time.Second))
	if d <= 0 || d > limit {
		return 0, fielded("timeout", OverLimit(name, fmt.Sprintf("at most %g seconds", limit.Seconds()),
			"timeout %g s is not within the operator's limit of %s", seconds, limit))
	}
	return d, nil
}

// caller is a tool stage bound to a run.
type caller struct {
	r       *Run
	m       *Meter
	tool    *Tool
	args    []member
	clock   clock
	show    bool // the result's blocks are the reply's
	repeats bool // a call that has left does not keep its item from being tried again
	shared  *shared
	each    bool // it runs once per item

	fallback []member // arguments for what neither data nor args give
}

// arguments makes the call's arguments of what flows in.
func (c *caller) arguments(in io.Reader) (json.RawMessage, error) {
	limit := c.r.deps.Limits.Input
	input, more, err := readAll(in, limit)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, OverLimit("input", `set "for_each": true to call the tool once per item, or shrink the data with a command before`,
			"the tool would get more than %s in one call", size(limit))
	}
	args, leftOut, err := arguments(c.tool, c.args, c.fallback, input)
	if err != nil {
		return nil, c.perItem(err, input)
	}
	c.m.leave(leftOut)
	return args, nil
}

// perItem adds to the refusal of an array that the tool can be called for each of its elements.
func (c *caller) perItem(err error, input []byte) error {
	var e *Error
	if rest := trimBlank(input); !errors.As(err, &e) || c.each || len(rest) == 0 || rest[0] != '[' {
		return err
	}
	first, none := newItems(bytes.NewReader(input), c.r.deps.Limits.Item).next()
	if none != nil {
		return err
	}
	if _, _, refused := arguments(c.tool, c.args, c.fallback, first.data); refused != nil {
		return err
	}
	item := *e
	item.Hint = `the input is an array: "for_each": true calls the tool once per element; ` + e.Hint
	item.Fix = json.RawMessage(`{"for_each": true}`)
	return &item
}

func (c *caller) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	args, err := c.arguments(in)
	if err != nil {
		return err
	}
	result, err := c.once(ctx, args)
	if err != nil {
		return err
	}
	if err := c.r.hold(int64(len(result.Data))); err != nil {
		return err
	}
	defer c.r.held.Add(-int64(len(result.Data)))
	if c.show {
		c.r.show(result.Blocks)
	}
	lastWrite(out)
	_, err = out.Write(result.Data)
	return err
}

// once makes the call, or takes the result of an equal one. What has left counts for the attempt that it belongs to;
// so does a failure that is shared: its call may have taken effect, and must not be made again.
func (c *caller) once(ctx context.Context, args json.RawMessage) (Result, error) {
	around, number := attemptOf(ctx), 1
	if around != nil {
		number = around.number
	}
	var o outcome
	own := c.shared == nil
	if own {
		o = c.call(ctx, args)
	} else {
		o, own = c.shared.call(ctx, number, args)
	}
	if o.left && (own || o.err != nil) {
		around.left(c.repeats, o.unsure)
	}
	return o.result, o.err
}

// call makes the call, whose time begins when it is sent. A call with effects that was sent is let finish, whatever ends
// around it; one that still waits for its turn ends with its stage.
func (c *caller) call(ctx context.Context, args json.RawMessage) outcome {
	if ctx.Err() != nil {
		return outcome{err: context.Cause(ctx)}
	}
	if err := c.r.called(); err != nil {
		return outcome{err: err}
	}
	d := &departure{m: c.m, stage: ctx, around: attemptOf(ctx)}
	if effect(c.tool) == Changes {
		var cancel context.CancelFunc
		ctx, cancel = d.letFinish(c.r)
		defer cancel()
	}
	result, err := c.r.deps.Tools.CallTool(ctx, Call{
		Server: c.tool.Server, Name: c.tool.Name, Args: args, Timeout: c.clock.given,
		Reading: effect(c.tool) == ReadOnly, Trace: c.r.trace, Sent: d.sent, Unsent: d.unsent,
	})
	if err == nil && !d.left {
		c.m.calls.Add(1)
		d.left = true
	}
	if err != nil {
		err = c.ofCall(err, d.left)
	}
	var failed *Error
	unsure := d.left && effect(c.tool) == Changes && !(errors.As(err, &failed) && failed.Answered)
	if unsure {
		c.m.took.Add(1)
	}
	return outcome{result: result, left: d.left, unsure: unsure, err: err}
}

// ofCall marks the failure of a call, and says of one that took too long which limit that was, what became of it and how
// to get more time. Whoever made the error may keep it and give it to others.
func (c *caller) ofCall(err error, left bool) error {
	var failed *Error
	if !errors.As(err, &failed) {
		return err
	}
	own := *failed
	own.call = true
	if own.Code == Timeout && !own.Answered {
		own.Msg += fmt.Sprintf(" (%s)", c.clock.words())
		own.Limit = c.clock.reached()
		own.Hint = "ask the tool for less, or " + c.clock.more()
		if left && effect(c.tool) == Changes {
			own.Msg += "; it was sent and may have taken effect"
			own.Hint = "find out what was changed (with a tool that reads) before another call, or " + c.clock.more()
		}
	}
	return &own
}
