package rpc

import "github.com/modelcontextprotocol/go-sdk/mcp"

// A Result is the result of a call on the wire. The SDK encodes it several times over, and does not export resultType.
type Result struct {
	Meta       mcp.Meta `json:"_meta,omitempty"`
	Content    []any    `json:"content,omitzero"` // nil: there is none, in a result that asks
	Structured any      `json:"structuredContent,omitempty"`
	IsError    bool     `json:"isError,omitempty"`
	Type       string   `json:"resultType,omitempty"`
	Requests   any      `json:"inputRequests,omitempty"`
	State      string   `json:"requestState,omitempty"`
}

// textBlock is a block with only a text.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ResultOf returns r as it is written.
func ResultOf(r *mcp.CallToolResult) *Result {
	written := &Result{Meta: r.Meta, Content: make([]any, len(r.Content)), Structured: r.StructuredContent, IsError: r.IsError}
	for i, block := range r.Content {
		written.Content[i] = block
		if text, ok := block.(*mcp.TextContent); ok && text.Meta == nil && text.Annotations == nil {
			written.Content[i] = textBlock{"text", text.Text}
		}
	}
	return written
}
