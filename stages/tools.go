package stages

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

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

	// Reading says that the plan was checked with a tool that only reads. Should it be known by now as one that may
	// change something, the call is DENIED.
	Reading bool

	// Trace is what the run's caller said of the trace that it belongs to, passed on to the server.
	Trace Trace

	// Sent is asked immediately before the request leaves, and whether it may: after a false, CallTool returns the
	// error of its context and nothing has left. From a true on, the request counts as made, unless Unsent is called.
	// Unsent tells that the request has certainly not reached the tool; before it leaves again, Sent is asked again.
	// An error without a Sent, or after an Unsent, means that nothing has happened. A success is always a call made.
	// The two are not called at the same time. A nil Sent allows everything, a nil Unsent is not told.
	Sent   func() bool
	Unsent func()
}

// Trace is the context of a trace, in the form of the W3C headers. Empty members are not there.
type Trace struct {
	Parent  string // traceparent
	State   string // tracestate
	Baggage string // baggage

	Hops int // gateways that the call has gone through before this one
}

// ID is the id of the trace, or empty where Parent has not the form that W3C gives it: agents write it.
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

	// Timeout bounds one call where a stage names none, instead of the limit of the run; 0: the limit.
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
	Closed     bool     // additionalProperties is false: what is not declared is refused by the tool

	// Declared tells more of the properties. Of those that are not in it nothing is known.
	Declared map[string]Property

	// Check validates args, a JSON object, and returns one sentence per mistake, each naming the field, what was
	// expected and what came. With partial set, more fields may still be added: only the fields present are judged.
	// A nil Check means that the schema cannot be compiled here and the server is left to judge.
	Check func(args json.RawMessage, partial bool) []string
}

// A Property is what a schema says of one property.
type Property struct {
	Types   []string        // the JSON types that it may have: "integer", "string"; none: any
	Default json.RawMessage // nil: none
}

// A Result is what a tool returned, as pipeline data.
type Result struct {
	// Data is the result's bytes as they flow into the next stage (pipeline.md §3): exact, and ending in a newline
	// unless empty.
	Data []byte

	// Blocks holds the result's content blocks as MCP writes them when not all of them are text, else nil. They are
	// used when the tool is the last stage, so that images reach the agent as images.
	Blocks []json.RawMessage
}
