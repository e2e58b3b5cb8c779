package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answer is a message that answers a call.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *callResult     `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// notification is a message that is not answered.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// callResult is the result of a call as it is written. The SDK's own type keeps to itself whether it is complete.
type callResult struct {
	Meta       mcp.Meta `json:"_meta,omitempty"`
	Content    []any    `json:"content"`
	Structured any      `json:"structuredContent,omitempty"`
	IsError    bool     `json:"isError,omitempty"`
	Type       string   `json:"resultType,omitempty"`
}

// textBlock is a block of text without anything else.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// encode writes the answer to c.
func (c *Call) encode(result mcp.Result, err error) []byte {
	a := answer{Version: "2.0", ID: c.id}
	if r, ok := result.(*mcp.CallToolResult); ok && err == nil {
		a.Result = c.result(r)
	} else if !errors.As(err, &a.Error) {
		a.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	}
	text, err := encoded(a)
	if err != nil { // the result holds what JSON does not know
		a.Result, a.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
		text, _ = encoded(a)
	}
	return text
}

// encoded is a message, with a newline at its end and no other.
func encoded(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(message)
	return b.Bytes(), err
}

func (c *Call) result(r *mcp.CallToolResult) *callResult {
	written := &callResult{Meta: r.Meta, Content: make([]any, len(r.Content)), Structured: r.StructuredContent, IsError: r.IsError}
	for i, block := range r.Content {
		written.Content[i] = block
		if text, ok := block.(*mcp.TextContent); ok && text.Meta == nil && text.Annotations == nil {
			written.Content[i] = textBlock{"text", text.Text}
		}
	}
	if c.marked {
		written.Type = "complete"
	}
	if c.modern {
		written.Meta = maps.Clone(r.Meta)
		if written.Meta == nil {
			written.Meta = mcp.Meta{}
		}
		written.Meta[mcp.MetaKeyServerInfo] = c.front.self
	}
	return written
}
