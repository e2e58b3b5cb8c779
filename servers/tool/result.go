package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Kinds of failure of any tool. Servers add their own.
const (
	InvalidArgument = "InvalidArgument" // the arguments make no sense
	LimitExceeded   = "LimitExceeded"   // more data than the server allows
	Timeout         = "Timeout"         // the call took too long
	Cancelled       = "Cancelled"       // the caller has cancelled the call
	Internal        = "Internal"        // a bug of the server
)

// An Error is a failure that becomes a result with isError and the text "KIND: message; hint".
type Error struct {
	Kind string
	Msg  string // lower case, no final period; names the wrong value
	Hint string // what to do next, or empty
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Hint
}

// ErrorKind returns the kind.
func (e *Error) ErrorKind() string { return e.Kind }

// kinded is an error with a kind, such as *Error and *workspace.Error.
type kinded interface {
	error
	ErrorKind() string
}

// Failure returns the result for an error: its kind, if it has an ErrorKind method, and its text.
func Failure(err error) *mcp.CallToolResult {
	kind := Internal
	if k, ok := errors.AsType[kinded](err); ok {
		kind = k.ErrorKind()
	} else if errors.Is(err, context.DeadlineExceeded) {
		kind = Timeout
	} else if errors.Is(err, context.Canceled) {
		kind = Cancelled
	}
	res := &mcp.CallToolResult{}
	res.SetError(fmt.Errorf("%s: %w", kind, err))
	return res
}

// Text returns a result with one text block.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// JSON returns a structured result, with the same JSON as text for clients that read only text.
func JSON(v any) (*mcp.CallToolResult, error) {
	data, err := Encode(v)
	if err != nil {
		return nil, err
	}
	res := Text(string(data))
	res.StructuredContent = data
	return res, nil
}

// Encode is json.Marshal without escapes for "<", ">" and "&".
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a result: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
