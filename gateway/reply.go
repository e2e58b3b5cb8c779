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

	alone bool     // the output stands alone: the note and the windows become notes
	notes []string // not in the content

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
	for len(r.partial) > 0 && len(p) > 0 {
		r.partial, p = append(r.partial, p[0]), p[1:]
		for len(r.partial) > 0 && utf8.FullRune(r.partial) {
			r.partial = r.partial[r.countOne(r.partial):]
		}
	}
	for len(p) > 0 && utf8.FullRune(p) {
		p = p[r.countOne(p):]
	}
	r.partial = append(r.partial, p...)
}

// countOne counts the first character of p and returns its bytes.
func (r *reply) countOne(p []byte) int {
	c, n := utf8.DecodeRune(p)
	if c == utf8.RuneError && n == 1 {
		r.replaced++
	}
	r.characters++
	return n
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
	out := contents{left: r.budget}
	r.note(&out, report, size)
	if r.alone {
		r.putAside(&out, report)
		report.Windows = nil
	}
	dry := report.DryRun != nil && report.DryRun.Place != ""
	if dry {
		size = int64(utf8.RuneCountInString(DryRunText(report)))
	}
	// The windows get the budget that the output leaves, but at least half.
	out.windows(report.Windows, out.left-int(min(size, int64(out.left/2))))
	switch {
	case dry:
		out.add(dryRunText(report, out.left))
	case report.Blocks != nil:
		err = r.blocks(&out, blocks)
	default:
		err = r.text(&out, kept)
	}
	return &mcp.CallToolResult{Content: out.list}, err
}

// contents are the blocks of a reply.
type contents struct {
	list []mcp.Content
	left int // characters of the budget
}

// add adds a text, cut to the budget.
func (c *contents) add(text string) {
	text = prefix(text, c.left)
	c.left -= utf8.RuneCountInString(text)
	c.list = append(c.list, &mcp.TextContent{Text: text})
}

// note adds the note, if any. It takes at most half of the budget, and leaves out the run's id if that would displace an
// output of that size.
func (r *reply) note(out *contents, report stages.Report, size int64) {
	replaced := r.replaced
	if report.Blocks != nil {
		replaced = 0
	}
	text := noteText(report, r.request, replaced)
	if n := utf8.RuneCountInString(text); n > r.budget/2 || size <= int64(r.budget) && size+int64(n) > int64(r.budget) {
		report.Run = ""
		text = noteText(report, "", replaced)
	}
	if text != "" {
		out.add(prefix(text, r.budget/2))
	}
}

// windows adds the blocks of windows, of at most room characters.
func (c *contents) windows(windows []stages.Window, room int) {
	list := make([]string, len(windows))
	total := 0
	first := map[string]stages.Place{} // of each preview
	for i, w := range windows {
		list[i] = WindowText(w)
		if at, twice := first[w.Text]; !twice {
			first[w.Text] = w.Place
		} else if again := fmt.Sprintf("Stage %s sees the same as stage %s.\n", texts.Plain(string(w.Place), false), texts.Plain(string(at), false)); len(again) < len(list[i]) {
			list[i] = again
		}
		total += utf8.RuneCountInString(list[i])
	}
	if total > room {
		room = max(0, room-leftOutRoom)
	}
	kept, out, _ := share(list, room, func(text string, n int) (string, error) { return shorten(text, n), nil })
	for _, text := range kept {
		if text != nil {
			c.add(*text)
		}
	}
	if out > 0 {
		c.add(leftOut(out, "window"))
	}
}

// text adds the output if it fits, else its shape, advice and a link to the whole.
func (r *reply) text(out *contents, kept func() fullOutput) error {
	if r.shape == nil && r.characters <= int64(out.left) {
		out.list = append(out.list, &mcp.TextContent{Text: valid(r.kept.Bytes())})
		return nil
	}
	if r.shape == nil { // the note or the windows leave too few characters
		r.shape = startShape(r.look, out.left)
		if _, err := io.Copy(r.shape.feed, &r.kept); err != nil {
			return err
		}
	}
	r.close()
	if r.shape.err != nil {
		return r.shape.err
	}
	whole := kept()
	text := fmt.Sprintf("The output has %d characters (%s), more than %s. This is its shape. %s\n",
		r.characters, r.shape.result.Summary, r.allowed(out.left), whole.advice())
	if out.left >= reserved {
		text = shorten(text+r.shape.result.Text, out.left)
	}
	out.add(text)
	out.list = append(out.list, whole.link()...)
	return nil
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

// blocks adds blocks, and limits their texts together: a shape replaces a longer text. Other blocks stay.
func (r *reply) blocks(out *contents, blocks []mcp.Content) error {
	if charactersOf(blocks) <= int64(out.left) {
		out.list = append(out.list, blocks...)
		return nil
	}
	var list []string
	for _, block := range blocks {
		if text := textOf(block); text != nil {
			list = append(list, *text)
		}
	}
	kept, omitted, err := share(list, max(0, out.left-leftOutRoom), r.shapeOf)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		if text := textOf(block); text != nil {
			short := kept[0]
			if kept = kept[1:]; short == nil {
				continue
			}
			*text = *short
			out.left -= utf8.RuneCountInString(*text)
		}
		out.list = append(out.list, block)
	}
	if omitted > 0 {
		out.add(leftOut(omitted, "text block"))
	}
	return nil
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
