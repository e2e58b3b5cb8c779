// Package tool builds the MCP servers of the binary. A tool has schemas, annotations and a function; a server of tools checks
// arguments, bounds concurrency, survives panics and reports failures as results that an agent can read. The package
// knows nothing of particular tools.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

// maxCalls is the number of calls that one server runs at once; further calls wait. It equals the largest concurrency of
// a for_each, and it bounds the memory of results.
const maxCalls = 64

// A Tool is one tool of a server.
type Tool struct {
	Name        string
	Description string
	Input       string // JSON Schema of the arguments, an object schema; published as it is
	Output      string // JSON Schema of the structured result, or empty
	Annotations *mcp.ToolAnnotations
	Call        Func
}

// ReadOnly returns the annotations of a tool that changes nothing, and may reach beyond this machine.
func ReadOnly(openWorld bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &openWorld}
}

// Changing returns the annotations of a tool that may change something, and whether it may overwrite or remove it.
func Changing(destructive, openWorld bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &openWorld}
}

// A Func runs a tool. Each call must return a new result. An error becomes a result too (see [Error]).
type Func struct {
	args []strictjson.Field
	call func(ctx context.Context, s *mcp.ServerSession, args json.RawMessage, required []string) (*mcp.CallToolResult, error)
}

// New makes a Func from a function with a struct of arguments, whose json tags must name the properties of the tool's
// input schema.
func New[A any](call func(context.Context, A) (*mcp.CallToolResult, error)) Func {
	return NewInSession(func(ctx context.Context, _ *mcp.ServerSession, args A) (*mcp.CallToolResult, error) {
		return call(ctx, args)
	})
}

// NewInSession is [New] for a function that depends on the session of the call.
func NewInSession[A any](call func(context.Context, *mcp.ServerSession, A) (*mcp.CallToolResult, error)) Func {
	fields := strictjson.Fields[A]()
	return Func{
		args: fields,
		call: func(ctx context.Context, s *mcp.ServerSession, raw json.RawMessage, required []string) (*mcp.CallToolResult, error) {
			var args A
			if err := strictjson.DecodeFields("argument", raw, &args, fields, required...); err != nil {
				return nil, &Error{Kind: InvalidArgument, Msg: err.Error()}
			}
			return call(ctx, s, args)
		},
	}
}

// Routed returns t with one more required argument, a string. Each call goes to the Func that pick returns for its value, and
// then calls done.
func Routed(t Tool, name, description string, pick func(value string) (f Func, done func(), err error)) (Tool, error) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(t.Input), &schema); err != nil {
		return t, fmt.Errorf("tool %q: reading the input schema: %w", t.Name, err)
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	properties[name] = map[string]any{"type": "string", "description": description}
	schema["required"] = append([]any{name}, required...)
	input, err := Encode(schema)
	if err != nil {
		return t, err
	}
	t.Input = string(input)
	t.Call = Func{
		args: append([]strictjson.Field{{Name: name, Usage: description, Type: reflect.TypeFor[string]()}}, t.Call.args...),
		call: func(ctx context.Context, s *mcp.ServerSession, raw json.RawMessage, required []string) (*mcp.CallToolResult, error) {
			value, rest, err := strictjson.Take("argument", raw, name)
			if err != nil {
				return nil, &Error{Kind: InvalidArgument, Msg: err.Error()}
			}
			f, done, err := pick(value)
			if err != nil {
				return nil, err
			}
			defer done()
			return f.call(ctx, s, rest, slices.DeleteFunc(slices.Clone(required), func(r string) bool { return r == name }))
		},
	}
	return t, nil
}

// A Server describes an MCP server.
type Server struct {
	Name         string // in the initialize result
	Title        string // a few words for people
	Instructions string // for agents: the purpose of the tools, in a sentence or two
	Tools        []Tool

	// Aliases are other names by which calls may name tools. Lists leave them out.
	Aliases map[string]string

	Before func(context.Context) error // runs before each call, which fails with its error; nil: nothing does
}

// An Opened is a server with its tools.
type Opened struct {
	*mcp.Server
	Info *mcp.Implementation

	// Handlers answer calls as the server does, by the names and the aliases of its tools. They share its bound of calls. They
	// read only the session and the arguments of a request, and their error is nil.
	Handlers map[string]mcp.ToolHandler

	// Begin is called when a session begins, and what it returns when the session has ended, after its calls: the server may
	// free what it holds when no session is left, and take it again for the next one. A process that serves this server alone
	// calls it once for all sessions. Nil: there is nothing to free.
	Begin func() (end func() error)
}

// Open makes the server. It fails only if the description of a tool is invalid.
func Open(s Server) (*Opened, error) {
	info := &mcp.Implementation{Name: s.Name, Title: s.Title, Version: version()}
	server := mcp.NewServer(info, &mcp.ServerOptions{
		Instructions: s.Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	handlers := map[string]mcp.ToolHandler{}
	slots := make(chan struct{}, maxCalls)
	for _, t := range s.Tools {
		required, err := check(t)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		handlers[t.Name] = s.handler(t, required, slots)
		server.AddTool(describe(t), handlers[t.Name])
	}
	for alias, name := range s.Aliases {
		handlers[alias] = handlers[name]
	}
	server.AddReceivingMiddleware(onlyTools, s.renamed)
	return &Opened{Server: server, Info: info, Handlers: handlers}, nil
}

// describe returns the tool's description for clients.
func describe(t Tool) *mcp.Tool {
	d := &mcp.Tool{
		Name:        t.Name,
		Description: t.Description,
		InputSchema: json.RawMessage(t.Input),
		Annotations: t.Annotations,
	}
	if t.Output != "" {
		d.OutputSchema = json.RawMessage(t.Output)
	}
	return d
}

// check compares a tool's input schema with the arguments of its function and returns the required ones.
func check(t Tool) (required []string, err error) {
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal([]byte(t.Input), &schema); err != nil {
		return nil, fmt.Errorf("reading the input schema: %w", err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("the input schema is of type %q, want object", schema.Type)
	}
	for _, arg := range t.Call.args {
		if schema.Properties[arg.Name] == nil {
			return nil, fmt.Errorf("argument %q is not in the input schema", arg.Name)
		}
		delete(schema.Properties, arg.Name)
	}
	for name := range schema.Properties {
		return nil, fmt.Errorf("property %q of the input schema is not an argument", name)
	}
	return schema.Required, nil
}

// handler wraps a tool's function: it bounds concurrent calls by slots, recovers from panics, and turns errors into
// results.
func (s Server) handler(t Tool, required []string, slots chan struct{}) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return Failure(ctx.Err()), nil
		}
		defer func() {
			if p := recover(); p != nil {
				res, err = Failure(&Error{Kind: Internal, Msg: fmt.Sprintf("the tool %s broke: %v", t.Name, p)}), nil
			}
		}()
		if s.Before != nil {
			err = s.Before(ctx)
		}
		if err == nil {
			res, err = t.Call.call(ctx, req.Session, req.Params.Arguments, required)
		}
		if err == nil && res == nil {
			err = &Error{Kind: Internal, Msg: fmt.Sprintf("the tool %s has given no result", t.Name)}
		}
		if err != nil {
			return Failure(err), nil
		}
		return res, nil
	}
}

// onlyTools refuses requests for capabilities that the server does not declare, as the specification demands. The SDK
// would send empty lists.
func onlyTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		for _, prefix := range []string{"prompts/", "resources/", "completion/"} {
			if strings.HasPrefix(method, prefix) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
			}
		}
		return next(ctx, method, req)
	}
}

// renamed gives calls by an alias the name of the tool.
func (s Server) renamed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && s.Aliases[call.Params.Name] != "" {
			params := *call.Params
			params.Name = s.Aliases[params.Name]
			req = &mcp.CallToolRequest{Session: call.Session, Params: &params, Extra: call.Extra}
		}
		return next(ctx, method, req)
	}
}

// version returns the version of this module in the build information.
func version() string {
	const module = "github.com/mcsh-dev/mcsh"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return "(unknown)"
}
