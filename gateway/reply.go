package gateway

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// reply takes the output of a pipeline. What fits the budget is kept; an output that is longer is counted, and its
// shape takes its place: nothing is cut silently. Memory is bounded by the budget.
type reply struct {
	budget int // characters
	look   look

	kept       bytes.Buffer  // the output from its beginning, while it may fit
	partial    []byte        // the beginning of a character that is not complete yet
	characters int64         // of the whole output
	bytes      int64         // of the whole output
	replaced   int64         // bytes that are no UTF-8
	shape      *shapeOfReply // set when the output is longer than the budget
}

// look makes a preview.
type look func(r io.Reader, o preview.Options) (preview.Result, error)

// safely is look, with a panic as its error: in a goroutine of its own it would end the process.
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

// shapeOfReply is a preview that runs while the output comes.
type shapeOfReply struct {
	feed   *io.PipeWriter
	done   chan struct{}
	result preview.Result // once done is closed
	err    error          // once done is closed
}

func newReply(budget int, l look) *reply { return &reply{budget: budget, look: l} }

// Write counts p and keeps it or hands it to the preview. What does not fit is never copied.
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

// count counts characters and bytes that are none, across the borders of writes.
func (r *reply) count(p []byte) {
	if begun := len(r.partial); begun > 0 {
		head := append(r.partial, p[:min(len(p), utf8.UTFMax)]...)
		r.partial = nil
		if !utf8.FullRune(head) {
			r.partial = head
			return
		}
		at := 0
		for at < begun {
			at += r.countOne(head[at:])
		}
		p = p[at-begun:]
	}
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			r.partial = bytes.Clone(p)
			return
		}
		p = p[r.countOne(p):]
	}
}

// countOne counts the character that p begins with, and returns how many bytes it has.
func (r *reply) countOne(p []byte) int {
	c, n := utf8.DecodeRune(p)
	if c == utf8.RuneError && n == 1 {
		r.replaced++
	}
	r.characters++
	return n
}

// startShape begins a preview that takes at most budget characters, its explanation included.
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

// reserved is how many characters of the budget the sentence above a preview may take.
const reserved = 300

// close ends the preview if one runs.
func (r *reply) close() {
	if r.shape != nil {
		r.shape.feed.Close()
		<-r.shape.done
	}
}

// result makes the reply of a run that succeeded: the windows, then the output, all text within the budget.
// kept is asked only where a reader needs it.
func (r *reply) result(report stages.Report, kept func() rest) (*mcp.CallToolResult, error) {
	if n := len(r.partial); n > 0 { // the output ends within a character
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
	content, left := r.note(report)
	dry := report.DryRun != nil && report.DryRun.Place != ""
	if dry {
		size = int64(utf8.RuneCountInString(DryRunText(report)))
	}
	// The windows take what the output leaves, and half of the budget where it would leave less.
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

// note returns the block of the note, if there is something to say, and what it leaves of the budget: it takes no more
// than half of it.
func (r *reply) note(report stages.Report) ([]mcp.Content, int) {
	replaced := r.replaced
	if report.Blocks != nil {
		replaced = 0
	}
	text := noteText(report, replaced)
	if text == "" {
		return nil, r.budget
	}
	text = prefix(text, r.budget/2)
	return []mcp.Content{&mcp.TextContent{Text: text}}, r.budget - utf8.RuneCountInString(text)
}

// windowTexts returns the blocks of windows, which take at most room characters, and what they leave of the budget.
func windowTexts(windows []stages.Window, room, budget int) (content []mcp.Content, left int) {
	texts := make([]string, len(windows))
	total := 0
	for i, w := range windows {
		texts[i] = fmt.Sprintf("Stage %s sees:\n%s", w.Place, w.Text)
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

// text returns the output if it fits left characters, else its shape, what to do, and where the whole is.
func (r *reply) text(left int, kept func() rest) ([]mcp.Content, error) {
	if r.shape == nil && r.characters <= int64(left) {
		return []mcp.Content{&mcp.TextContent{Text: valid(r.kept.Bytes())}}, nil
	}
	if r.shape == nil { // it is the note or the windows that leave too little room
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

// allowed names what the output is longer than: the budget, or what stands above the output has left of it.
func (r *reply) allowed(left int) string {
	if r.characters > int64(r.budget) {
		return fmt.Sprintf("max_output allows (%d)", r.budget)
	}
	return fmt.Sprintf("the %d that the blocks above leave of max_output (%d)", left, r.budget)
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

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func failure(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
