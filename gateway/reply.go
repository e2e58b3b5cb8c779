package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// reply receives the output of a pipeline. It keeps an output that fits the budget; it counts and previews a longer one. It
// never cuts silently, and the budget bounds its memory.
type reply struct {
	budget  int // characters
	look    look
	request string // the name of the run in logs

	kept       bytes.Buffer  // the output, while it may fit
	partial    []byte        // the bytes of an incomplete character
	characters int64         // of the whole output
	bytes      int64         // of the whole output
	replaced   int64         // invalid UTF-8, in bytes
	shape      *shapeOfReply // nil while the output fits
}

// look is [preview.Preview] for this call.
type look func(r io.Reader, o preview.Options) (preview.Result, error)

// safely returns a panic of look as an error: in its own goroutine it would end the process.
func (l look) safely(r io.Reader, chars int) (result preview.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			e := stages.Errorf(stages.Internal, "this is a bug in the gateway; please report it", "internal error while the shape of the output was read")
			e.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			err = e
		}
	}()
	return l(r, preview.Options{Chars: max(1, chars)})
}

// shapeOfReply previews the output while it comes.
type shapeOfReply struct {
	feed   *io.PipeWriter
	done   chan struct{}
	result preview.Result // valid after done
	err    error          // valid after done
}

func newReply(budget int, l look) *reply { return &reply{budget: budget, look: l} }

// Write counts p, and keeps it or passes it to the preview.
func (r *reply) Write(p []byte) (int, error) {
	r.bytes += int64(len(p))
	r.count(p)
	if r.shape == nil {
		if r.characters <= int64(r.budget) {
			return r.kept.Write(p)
		}
		r.shape = startShape(r.look, r.budget)
		_, err := r.kept.WriteTo(r.shape.feed)
		r.kept = bytes.Buffer{}
		if err != nil {
			return 0, err
		}
	}
	return r.shape.feed.Write(p)
}

// count counts characters and invalid bytes, also across writes.
func (r *reply) count(p []byte) {
	if len(r.partial) > 0 {
		p = append(r.partial, p...)
	}
	for len(p) > 0 && utf8.FullRune(p) {
		c, n := utf8.DecodeRune(p)
		if c == utf8.RuneError && n == 1 {
			r.replaced++
		}
		r.characters++
		p = p[n:]
	}
	r.partial = bytes.Clone(p)
}

// startShape starts a preview of at most budget characters, with its explanation.
func startShape(l look, budget int) *shapeOfReply {
	pr, pw := io.Pipe()
	s := &shapeOfReply{feed: pw, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.result, s.err = l.safely(pr, budget-reserved)
		pr.CloseWithError(s.err)
	}()
	return s
}

// reserved is the characters of the sentence above a preview.
const reserved = 300

// close ends the preview if one runs.
func (r *reply) close() {
	if r.shape != nil {
		r.shape.feed.Close()
		<-r.shape.done
	}
}

// result returns the reply of a successful run: the note, the windows and the output, within the budget. It calls kept only
// for an output that is too long.
func (r *reply) result(report stages.Report, kept func() fullOutput) (*mcp.CallToolResult, error) {
	if n := len(r.partial); n > 0 { // the output ends inside a character
		r.characters, r.replaced, r.partial = r.characters+int64(n), r.replaced+int64(n), nil
	}
	size := r.characters
	blocks, err := native(report.Blocks)
	if err != nil {
		return nil, err
	}
	if report.Blocks != nil {
		size = charactersOf(blocks)
	}
	content, left := r.note(report, size)
	dry := report.DryRun != nil && report.DryRun.Place != ""
	if dry {
		size = int64(utf8.RuneCountInString(DryRunText(report)))
	}
	// The windows get the budget that the output leaves, but at least half.
	room := left - int(min(size, int64(left/2)))
	windows, left := windowTexts(report.Windows, room, left)
	content = append(content, windows...)
	if dry {
		return &mcp.CallToolResult{Content: append(content, &mcp.TextContent{Text: dryRunText(report, left)})}, nil
	}
	if report.Blocks != nil {
		blocks, err = r.blocks(blocks, left)
		return &mcp.CallToolResult{Content: append(content, blocks...)}, err
	}
	text, err := r.text(left, kept)
	return &mcp.CallToolResult{Content: append(content, text...)}, err
}

// note returns the block of the note, if any, and the rest of the budget. A note takes at most half of it, and leaves out the
// run's id if that would displace an output of that size.
func (r *reply) note(report stages.Report, size int64) ([]mcp.Content, int) {
	replaced := r.replaced
	if report.Blocks != nil {
		replaced = 0
	}
	text := noteText(report, r.request, replaced)
	if n := utf8.RuneCountInString(text); n > r.budget/2 || size <= int64(r.budget) && size+int64(n) > int64(r.budget) {
		report.Run = ""
		text = noteText(report, "", replaced)
	}
	if text == "" {
		return nil, r.budget
	}
	text = prefix(text, r.budget/2)
	return []mcp.Content{&mcp.TextContent{Text: text}}, r.budget - utf8.RuneCountInString(text)
}

// windowTexts returns the blocks of windows, of at most room characters, and the rest of the budget.
func windowTexts(windows []stages.Window, room, budget int) (content []mcp.Content, left int) {
	texts := make([]string, len(windows))
	total := 0
	first := map[string]stages.Place{} // of each preview
	for i, w := range windows {
		texts[i] = WindowText(w)
		if at, twice := first[w.Text]; !twice {
			first[w.Text] = w.Place
		} else if again := fmt.Sprintf("Stage %s sees the same as stage %s.\n", Plain(string(w.Place), false), Plain(string(at), false)); len(again) < len(texts[i]) {
			texts[i] = again
		}
		total += utf8.RuneCountInString(texts[i])
	}
	if total > room {
		room = max(0, room-leftOutRoom)
	}
	kept, out, _ := share(texts, room, func(text string, n int) (string, error) { return shorten(text, n), nil })
	left = budget
	add := func(text string) {
		text = prefix(text, left)
		left -= utf8.RuneCountInString(text)
		content = append(content, &mcp.TextContent{Text: text})
	}
	for _, text := range kept {
		if text != nil {
			add(*text)
		}
	}
	if out > 0 {
		add(leftOut(out, "window"))
	}
	return content, left
}

// text returns the output if it fits left characters, else its shape, advice and a link to the whole.
func (r *reply) text(left int, kept func() fullOutput) ([]mcp.Content, error) {
	if r.shape == nil && r.characters <= int64(left) {
		return []mcp.Content{&mcp.TextContent{Text: valid(r.kept.Bytes())}}, nil
	}
	if r.shape == nil { // the note or the windows leave too few characters
		r.shape = startShape(r.look, left)
		if _, err := io.Copy(r.shape.feed, &r.kept); err != nil {
			return nil, err
		}
	}
	r.close()
	if r.shape.err != nil {
		return nil, r.shape.err
	}
	whole := kept()
	head := fmt.Sprintf("The output has %d characters (%s), more than %s. This is its shape. %s\n",
		r.characters, r.shape.result.Summary, r.allowed(left), whole.advice())
	text := prefix(head, left)
	if left >= reserved {
		text = shorten(head+r.shape.result.Text, left)
	}
	return append([]mcp.Content{&mcp.TextContent{Text: text}}, whole.link()...), nil
}

// allowed names the exceeded bound: the budget, or the part that note and windows leave.
func (r *reply) allowed(left int) string {
	if r.characters > int64(r.budget) {
		return fmt.Sprintf("max_output allows (%d)", r.budget)
	}
	return fmt.Sprintf("the %d that the blocks above leave of max_output (%d)", left, r.budget)
}

// valid returns b as text. Only here each invalid byte becomes U+FFFD.
func valid(b []byte) string {
	text, _ := texts.Valid(b)
	return text
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

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

// textOf points to the text of a text block; nil for other blocks, such as images.
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

// blocks limits the texts of blocks to left characters together: a shape replaces a longer text. Other blocks stay.
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

// shapeOf describes a longer text block within n characters.
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
