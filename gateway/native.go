package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// native decodes content blocks, so that images reach the agent as images.
func native(blocks []json.RawMessage) ([]mcp.Content, error) {
	if blocks == nil {
		return nil, nil
	}
	list, err := json.Marshal(blocks)
	if err != nil {
		return nil, err
	}
	var result mcp.CallToolResult
	if err := json.Unmarshal(fmt.Appendf(nil, `{"content":%s}`, list), &result); err != nil {
		return nil, stages.Errorf(stages.ToolError, "", "the tool's content blocks cannot be read: %w", err)
	}
	return result.Content, nil
}

// textOf points to the text of a block that is text, and is nil for images and the like.
func textOf(block mcp.Content) *string {
	switch block := block.(type) {
	case *mcp.TextContent:
		return &block.Text
	case *mcp.EmbeddedResource:
		if block.Resource != nil && block.Resource.Blob == nil {
			return &block.Resource.Text
		}
	}
	return nil
}

// charactersOf counts the characters of the texts of blocks.
func charactersOf(blocks []mcp.Content) (n int64) {
	for _, block := range blocks {
		if text := textOf(block); text != nil {
			n += int64(utf8.RuneCountInString(*text))
		}
	}
	return n
}

// blocks returns the blocks with texts of at most left characters: of a text that is longer the shape takes its place.
// What is not text stays as it is.
func (r *reply) blocks(blocks []mcp.Content, left int) ([]mcp.Content, error) {
	if charactersOf(blocks) <= int64(left) {
		return blocks, nil
	}
	var texts []string
	for _, block := range blocks {
		if text := textOf(block); text != nil {
			texts = append(texts, *text)
		}
	}
	kept, out, err := share(texts, max(0, left-leftOutRoom), r.shapeOf)
	if err != nil {
		return nil, err
	}
	var shown []mcp.Content
	for _, block := range blocks {
		text := textOf(block)
		if text == nil {
			shown = append(shown, block)
			continue
		}
		if kept[0] != nil {
			*text = *kept[0]
			left -= utf8.RuneCountInString(*text)
			shown = append(shown, block)
		}
		kept = kept[1:]
	}
	if out > 0 {
		shown = append(shown, &mcp.TextContent{Text: prefix(leftOut(out, "text block"), left)})
	}
	return shown, nil
}

// shapeOf says within n characters what a text block is that is longer.
func (r *reply) shapeOf(text string, n int) (string, error) {
	shape, err := r.look.safely(strings.NewReader(text), n-reserved)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("This text block has %d characters (%s), more than max_output (%d) has room for. ",
		utf8.RuneCountInString(text), shape.Summary, r.budget)
	if n < 2*reserved {
		return shorten(head+"Raise max_output.\n", n), nil
	}
	return shorten(head+"This is its shape. Reduce it with a further stage (jq, head, grep ...) or raise max_output.\n"+shape.Text, n), nil
}
