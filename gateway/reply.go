package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// reply takes the output of a pipeline. What fits the budget is kept; an output that is longer is counted, and its
// shape takes its place: nothing is cut silently. Memory is bounded by the budget.
type reply struct {
	ctx    context.Context
	budget int // characters

	kept       bytes.Buffer  // the output from its beginning, while it may fit
	partial    []byte        // the beginning of a character that is not complete yet
	characters int64         // of the whole output
	bytes      int64         // of the whole output
	replaced   int64         // bytes that are no UTF-8
	shape      *shapeOfReply // set when the output is longer than the budget
}

// shapeOfReply is a preview that runs while the output comes.
type shapeOfReply struct {
	feed   *io.PipeWriter
	done   chan struct{}
	result preview.Result // once done is closed
	err    error          // once done is closed
}

func newReply(ctx context.Context, budget int) *reply { return &reply{ctx: ctx, budget: budget} }

// Write counts p and keeps it or hands it to the preview.
func (r *reply) Write(p []byte) (int, error) {
	r.bytes += int64(len(p))
	r.count(p)
	if r.shape == nil {
		r.kept.Write(p)
		if r.characters <= int64(r.budget) {
			return len(p), nil
		}
		r.shape = startShape(r.ctx, r.budget)
		p, r.kept = bytes.Clone(r.kept.Bytes()), bytes.Buffer{}
	}
	if _, err := r.shape.feed.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// count counts characters and bytes that are none, across the borders of writes.
func (r *reply) count(p []byte) {
	if len(r.partial) > 0 {
		p = append(r.partial, p...)
		r.partial = nil
	}
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			r.partial = bytes.Clone(p)
			return
		}
		c, n := utf8.DecodeRune(p)
		if c == utf8.RuneError && n == 1 {
			r.replaced++
		}
		r.characters++
		p = p[n:]
	}
}

// startShape begins a preview that takes at most budget characters, its explanation included.
func startShape(ctx context.Context, budget int) *shapeOfReply {
	pr, pw := io.Pipe()
	s := &shapeOfReply{feed: pw, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.result, s.err = preview.Preview(ctx, pr, preview.Options{Chars: max(1, budget-reserved)})
		pr.CloseWithError(s.err)
	}()
	return s
}

// reserved is how many characters of the budget the sentence above a preview may take.
const reserved = 300

// close ends the preview if one runs.
func (r *reply) close() {
	if r.shape != nil {
		r.shape.feed.Close()
		<-r.shape.done
	}
}

// result makes the reply of a run that succeeded: the windows, then the output, both within the budget.
func (r *reply) result(report stages.Report) (*mcp.CallToolResult, error) {
	if n := len(r.partial); n > 0 { // the output ends within a character
		r.characters, r.replaced, r.partial = r.characters+int64(n), r.replaced+int64(n), nil
	}
	var content []mcp.Content
	left := int64(r.budget)
	for _, w := range report.Windows {
		text := fmt.Sprintf("Stage %s sees:\n%s", w.Place, w.Text)
		left -= int64(utf8.RuneCountInString(text))
		content = append(content, &mcp.TextContent{Text: text})
	}
	if report.Blocks != nil {
		blocks, err := native(report.Blocks)
		return &mcp.CallToolResult{Content: append(content, blocks...)}, err
	}
	text, err := r.text(max(left, 0))
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: append(content, &mcp.TextContent{Text: text})}, nil
}

// text returns the output if it fits left characters, else its shape and what to do.
func (r *reply) text(left int64) (string, error) {
	if r.shape == nil && r.characters <= left {
		return valid(r.kept.Bytes()), nil
	}
	if r.shape == nil { // it is the windows that leave too little room
		r.shape = startShape(r.ctx, int(left))
		if _, err := io.Copy(r.shape.feed, &r.kept); err != nil {
			return "", err
		}
	}
	r.close()
	if r.shape.err != nil {
		return "", r.shape.err
	}
	head := fmt.Sprintf("The output has %d characters (%s), more than max_output allows (%d). This is its shape. "+
		"Reduce it with further stages (jq, head, grep ...) or raise max_output.\n", r.characters, r.shape.result.Summary, r.budget)
	if left < int64(reserved) {
		return cut(head, int(left)), nil
	}
	return head + r.shape.result.Text, nil
}

// cut shortens text that must fit a budget too small even for it.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(n, 0)])
}

// valid returns b as text: every byte that is no UTF-8 becomes U+FFFD, once, here at the edge.
func valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		s.WriteRune(c)
		b = b[n:]
	}
	return s.String()
}

// native decodes content blocks, so that images reach the agent as images.
func native(blocks []json.RawMessage) ([]mcp.Content, error) {
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

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
