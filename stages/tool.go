package stages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// ToolStage calls one tool of one upstream MCP server (docs/pipeline.md, tool).
type ToolStage struct {
	Server  string          `json:"server" jsonschema:"minLength=1" jsonschema_description:"Upstream server, as named by list_all_tools."`
	Name    string          `json:"name" jsonschema:"minLength=1" jsonschema_description:"Tool of that server."`
	Args    json.RawMessage `json:"args,omitempty" jsonschema:"type=object" jsonschema_description:"Arguments. The fields of an incoming JSON object are added to them; args win."`
	As      string          `json:"as,omitempty" jsonschema:"enum=text,enum=json" jsonschema_description:"text: the result is one text, even if it is JSON (to copy files). json: it must be JSON."`
	Timeout float64         `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds for one call."`

	Paginate *Paginate `json:"paginate,omitempty" jsonschema_description:"true: fetch all pages of a list; output is one array of all items. An object says how."`

	collect string // the form of the items of all pages
}

// collectAs implements [collecting]: pages are collected as the results of a for_each are.
func (t *ToolStage) collectAs(form string) bool {
	t.collect = form
	return t.Paginate.on()
}

func (t *ToolStage) label() Label {
	if t.Server == "" || t.Name == "" {
		return Label{}
	}
	return Label{Server: shown(t.Server), Name: shown(t.Name)}
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
	as := as(t.As)
	args, _ := readObject(t.Args) // anything but an object is a mistake of its shape
	info, err := t.find(ctx, s.Tools)
	if err := errors.Join(terr, err); err != nil {
		return nil, err
	}
	if info.IsPipeline && t.Paginate.on() {
		return nil, fielded("paginate", Errorf(InvalidPipeline, "leave it out; stages of the saved pipeline can fetch all pages", "a saved pipeline has no pages"))
	}
	pg, err := t.Paginate.compile(info, s)
	if err != nil {
		return nil, err
	}
	if err := checkLiteral(ctx, info, encodeObject(merge(pg.fallback(), args)), s.Fed); err != nil {
		return nil, err
	}
	step := &Step{
		Changes: !info.ReadOnly, Traits: Traits{Blocking: true}, clock: t.clock(timeout, info, s.Limits), most: s.Limits.Input,
		Does:    fmt.Sprintf("calls %s%s%s", info.Signature, pg.does(), as.does()),
		Expects: "nothing, a JSON object of arguments, or one value for the only argument that is open",
	}
	step.tool = &toolCall{
		info: info, args: args, fallback: pg.fallback(), as: as, show: s.Last && s.ListKind == AtTop,
		each: s.Each, joins: s.joins, distinct: s.distinct, limited: t.Timeout != 0 || info.Timeout > 0,
		repeats: info.ReadOnly || info.Idempotent && s.direct,
	}
	if pg != nil {
		step.tool.pages = pg.max
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		if pg == nil {
			return step.tool.bind(r, m).filter, nil
		}
		return pg.filter(step.tool.bind(r, m), t.collect == collectLines), nil
	}
	step.rehearse = func(r *Run, m *Meter, note noteCall) Filter {
		return step.tool.bind(r, m).rehearse(note)
	}
	return step, nil
}

// find looks the tool up. A name SERVER/TOOL that is not found gets a correction if that server has that tool.
func (t *ToolStage) find(ctx context.Context, tools Tools) (*Tool, error) {
	info, err := tools.Tool(ctx, t.Server, t.Name)
	e, failed := errors.AsType[*Error](err)
	server, name, ok := strings.Cut(t.Name, "/")
	if !ok || !failed || e.Code != UnknownTool && e.Code != UnknownServer {
		return info, err
	}
	if _, none := tools.Tool(ctx, server, name); none != nil {
		return nil, err
	}
	fix, merr := json.Marshal(map[string]string{"server": server, "name": name})
	if merr != nil {
		return nil, err
	}
	own := *e
	own.Hint, own.Fix = "server and name are two fields", fix
	return nil, &own
}

// clock is the time of one call: what the stage asks for, or what is configured for the server.
func (t *ToolStage) clock(asked time.Duration, info *Tool, l Limits) clock {
	c := clock{asked, l.Call, "call", `the stage's "timeout"`}
	if t.Timeout == 0 && info.Timeout > 0 {
		c.given, c.field = info.Timeout, `the stage's "timeout" (what counts now is the server's configuration)`
	}
	return c
}

// readingVerbs begin the names of tools that only read, as far as a name can tell.
var readingVerbs = []string{"get", "list", "read", "search", "find", "query", "fetch", "describe", "count", "show"}

// sideBySide reports whether calls of a tool may run at the same time unasked (docs/pipeline.md, for_each, concurrency).
func sideBySide(info *Tool) bool {
	if info.Annotated {
		return info.ReadOnly || info.Idempotent
	}
	return info.ReadOnly || NamedReading(info.Name)
}

// NamedReading reports whether the name of a tool begins with a verb of reading.
func NamedReading(name string) bool {
	return slices.Contains(readingVerbs, strings.ToLower(firstWord(name)))
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

// checkLiteral validates the arguments that stand in the plan. Where nothing flows in they are all that there is.
func checkLiteral(ctx context.Context, info *Tool, args json.RawMessage, fed bool) error {
	if info.Input.Check == nil {
		return nil
	}
	var errs []error
	wrong, _ := info.Input.Check(ctx, args, fed)
	for _, problem := range wrong {
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
		return 0, fielded("timeout", OverLimit(name, fmt.Sprintf("at most %g seconds", limit.Seconds()),
			"timeout %g s is not within the operator's limit of %s", seconds, limit))
	}
	return d, nil
}

// Tools calls the tools of MCP servers. It is implemented by *upstream.Pool. All methods may be called concurrently.
type Tools interface {
	// Tool returns what is known of a tool. It waits for a server that is still starting until ctx is done. The
	// error is an *Error: UNKNOWN_SERVER, UNKNOWN_TOOL (both with the nearest names), DENIED or SERVER_UNAVAILABLE.
	Tool(ctx context.Context, server, name string) (*Tool, error)

	// CallTool makes a call and returns its result as pipeline data. A failure is an *Error (TOOL_ERROR with the tool's
	// own words, SERVER_UNAVAILABLE, TIMEOUT, LIMIT_EXCEEDED, DENIED) or wraps ctx.Err().
	CallTool(ctx context.Context, call Call) (Result, error)
}

// A Call is one call of a tool.
type Call struct {
	Server, Name string
	Args         json.RawMessage // a JSON object; empty: {}

	// Timeout bounds the call itself, from when it is sent, and reaching it is TIMEOUT: "the tool did not answer
	// within 1s". Waiting for other calls, or for a server to start, is bounded by the context only: it is
	// no fault of the tool. Zero means what is configured for the server, or the implementation's default.
	Timeout time.Duration

	// Limited says that somebody has chosen Timeout. Then it also bounds the wait for a task that the tool answers with; else
	// the time configured for the server does, or only the context.
	Limited bool

	// Task keeps the task that the tool may answer with. Nil: nothing does, and it is cancelled when the call ends before it.
	Task *Task

	// Reading says that the plan was checked with a tool that only reads. Should it be known by now as one that may
	// change something, the call is DENIED.
	Reading bool

	// Whole asks for the result as the server has written it, in Data, for a client that gets it unread. The result of a tool
	// that failed comes together with its error then.
	Whole bool

	// Trace is what the run's caller said of the trace that it belongs to, passed on to the server.
	Trace Trace

	// Run is the run that makes the call, for a tool that runs a pipeline as a part of it ([Pipeline.RunWithin]), and Nests takes
	// the reports on the stages of that pipeline until over is called. Nil: the call belongs to no run.
	Run   *Run
	Nests func(stages func() []StageReport) (over func())

	// Progress is called with the progress that the tool reports, and must not block. Nil: the tool is not asked.
	Progress func(ToolProgress)

	// Waits is called when the call begins to wait for something that the run may want to know of, such as the rate of its
	// server. The function that it returns is called when that wait is over, but not if the context has ended it. Nil: nobody
	// wants to know.
	Waits func(why string) (over func())

	// Asker asks the caller what the server asks in the middle of the call. Nil: nobody can be asked.
	Asker *Asker

	// Item names the item of a for_each that the call is for, in questions; empty outside.
	Item string

	// MaySend is called immediately before the request is sent, each time. After false, CallTool sends nothing and returns the
	// error of its context. After true, the request counts as made, unless Unsent is called: it has certainly not reached the
	// tool. An error without a MaySend, or after an Unsent, means that nothing has happened. A success is always a call made.
	// The two are not called at the same time. Nil allows everything; Unsent may be nil.
	MaySend func() bool
	Unsent  func()
}

// Trace is the context of a trace, in the form of the W3C headers. Empty members are not there.
type Trace struct {
	Parent  string // traceparent
	State   string // tracestate
	Baggage string // baggage

	Hops int // gateways that the call has gone through before this one
}

// ID is the id of the trace, or empty where Parent does not have the form that W3C gives it: agents write it.
func (t Trace) ID() string {
	const start, end, least = 3, 35, 55 // 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
	if len(t.Parent) < least || t.Parent[start-1] != '-' || t.Parent[end] != '-' {
		return ""
	}
	id := t.Parent[start:end]
	if strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// A Tool is what the engine knows of one tool of one server before it calls it.
type Tool struct {
	Server, Name string

	Annotated  bool // whether the server says anything of the tool's effects
	ReadOnly   bool // annotated readOnlyHint, or declared so by the operator
	Idempotent bool // annotated idempotentHint
	Additive   bool // annotated destructiveHint: false

	// IsPipeline says that a call runs a pipeline as a part of the run: it ends with the time of the run, and counts as sent with its
	// first effect. Chains is how many commands that pipeline may run at the same time, Calls how many tools it calls, at most.
	IsPipeline bool
	Chains     int
	Calls      int64

	// Sticky says that calls of one run belong to one session of one process.
	Sticky bool

	// Timeout bounds one call where the stage names none, instead of limit call; 0: limit call.
	Timeout time.Duration

	// Signature is the compact form that messages print: "get_issue(owner: string, number: integer, body?: string)".
	Signature string

	// Input is what the tool's inputSchema says about arguments.
	Input Input
}

// Input is the part of a tool's inputSchema that decides how pipeline data becomes arguments.
type Input struct {
	Properties []string // declared properties, in the schema's order
	Required   []string
	Fixed      []string // what the operator gives with every call: no stage gives it, and no field of the data becomes it
	Closed     bool     // additionalProperties is false: the tool refuses other properties

	// Declared tells more of the properties. Of those that are not in it nothing is known.
	Declared map[string]Property

	// Check validates args, a JSON object, and returns one sentence per mistake, each naming the field, what was
	// expected and what came. With partial set, more fields may still be added: only the fields present are judged.
	// Where it cannot decide, within its bounds or before ctx is done, the note says why, and the server is left to judge.
	// A nil Check means that nothing is checked here.
	Check func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string)
}

// A Property is what a schema says of one property.
type Property struct {
	Types   []string        // the JSON types that it may have: "integer", "string"; none: any
	Default json.RawMessage // nil: none
}

// A Result is what a tool returned, as pipeline data.
type Result struct {
	// Data is the result's bytes as they flow into the next stage (docs/pipeline.md, tool), exactly as the tool gave them.
	Data []byte

	Kind  DataKind // Values: structured content, or blocks that all are JSON; else ToolText
	Spans []Span   // the content blocks in Data, if there are several
	None  bool     // there is no content, not even an empty text

	Several bool // of Values: Data may be several JSON values, one after another

	// Blocks holds the result's content blocks as MCP writes them when not all of them are text, else nil. They are
	// used when the tool is the last stage, so that images reach the agent as images.
	Blocks []json.RawMessage

	// Memory is what Data and Blocks take of the memory of the process. The caller closes it when it needs them no
	// more. Nil: it is not counted.
	Memory *memory.Lease
}

// A Span is a stretch of bytes.
type Span struct{ From, To int64 }
