package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxWords bounds the words of a tool in a message.
const maxWords = 4 << 10

// callResult is the result of tools/call, decoded only as far as the rules of pipeline.md section 3 need.
type callResult struct {
	Content           json.RawMessage
	StructuredContent json.RawMessage
	IsError           bool
	ResultType        string
	InputRequests     map[string]json.RawMessage
	Task              json.RawMessage
}

// block is a content block: its text, as it is quoted, if it is one of text, and what was sent.
type block struct {
	quoted json.RawMessage
	isText bool
	raw    json.RawMessage
}

// text is the text of a block.
func (b *block) text() string { return rpc.Text(b.quoted) }

// resultOf turns the raw result of a call into pipeline data, which may use its memory. wrapped says that the tool's
// output schema declares its structured content to be a mere wrapper. The error is an *Error with the tool's own words.
func resultOf(raw json.RawMessage, wrapped bool) (stages.Result, error) {
	r, err := decodeResult(raw)
	if err != nil {
		return stages.Result{}, stages.Errorf(stages.ToolError, "report it to the makers of the server",
			"the server sent a result that is not valid: %w", err)
	}
	blocks, err := decodeBlocks(r.Content)
	if err != nil {
		return stages.Result{}, stages.Errorf(stages.ToolError, "report it to the makers of the server",
			"the server sent content that is not valid: %w", err)
	}
	if err := r.refusal(blocks); err != nil {
		return stages.Result{}, err
	}
	res := stages.Result{Data: r.data(blocks, wrapped)}
	if slices.ContainsFunc(blocks, func(b block) bool { return !b.isText }) {
		for _, b := range blocks {
			res.Blocks = append(res.Blocks, b.raw)
		}
	}
	return res, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// decodeResult finds the members of a result. They share its memory: a result may be many megabytes.
func decodeResult(raw json.RawMessage) (r callResult, err error) {
	if !rpc.Valid(raw) {
		var v json.RawMessage
		return r, json.Unmarshal(raw, &v) // says where
	}
	set := func(name string, value json.RawMessage, target any) {
		if err == nil && json.Unmarshal(value, target) != nil {
			err = fmt.Errorf("%s is %s", name, rpc.Shorten(string(value), 80))
		}
	}
	if !rpc.Members(raw, func(name, value []byte) {
		switch string(name) {
		case "content":
			r.Content = value
		case "structuredContent":
			r.StructuredContent = value
		case "task":
			r.Task = value
		case "isError":
			set("isError", value, &r.IsError)
		case "resultType":
			set("resultType", value, &r.ResultType)
		case "inputRequests":
			set("inputRequests", value, &r.InputRequests)
		}
	}) {
		err = fmt.Errorf("it is no object but %s", rpc.Shorten(string(bytes.TrimSpace(raw)), 80))
	}
	return r, err
}

// decodeBlocks reads the content blocks. Some servers send null or a bare string where a list belongs.
func decodeBlocks(content json.RawMessage) (blocks []block, err error) {
	if isNull(content) {
		return nil, nil
	}
	if content[0] == '"' {
		return []block{{content, true, slices.Concat([]byte(`{"type":"text","text":`), content, []byte(`}`))}}, nil
	}
	if !rpc.Elements(content, func(raw []byte) {
		b := block{raw: raw}
		var kind json.RawMessage
		object := rpc.Members(raw, func(name, value []byte) {
			switch string(name) {
			case "type":
				kind = value
			case "text":
				b.quoted = value
			}
		})
		if !object && err == nil {
			err = fmt.Errorf("a block is %s", rpc.Shorten(string(raw), 80))
		}
		if b.isText = string(kind) == `"text"` && len(b.quoted) > 0 && b.quoted[0] == '"'; !b.isText {
			b.quoted = nil
		}
		blocks = append(blocks, b)
	}) {
		err = fmt.Errorf("it is no list but %s", rpc.Shorten(string(content), 80))
	}
	return blocks, err
}

// refusal is the error of a result that is none: the tool failed, or wants something that cannot be given here.
func (r *callResult) refusal(blocks []block) error {
	switch {
	case r.ResultType == "input_required" || len(r.InputRequests) > 0:
		return stages.Errorf(stages.ToolError, "give what it asks for in args if the tool takes it, or use another tool",
			"the tool asks for input from a person (%s), which a pipeline cannot give", r.wanted())
	case r.ResultType == "task" || !isNull(r.Task) && len(blocks) == 0 && isNull(r.StructuredContent):
		return stages.Errorf(stages.ToolError, "use a tool that answers at once",
			"the tool answered with a task to be asked for later, which is not supported")
	case r.IsError:
		e := toolError(r.words(blocks))
		e.Answered = true
		return e
	}
	return nil
}

// wanted lists what the tool asks for.
func (r *callResult) wanted() string {
	var words []string
	for _, id := range slices.Sorted(maps.Keys(r.InputRequests)) {
		var q struct {
			Method string `json:"method"`
			Params struct {
				Message string `json:"message"`
			} `json:"params"`
		}
		if json.Unmarshal(r.InputRequests[id], &q) != nil {
			continue
		}
		if q.Params.Message != "" {
			words = append(words, shorten(q.Params.Message, 200))
		} else if q.Method != "" {
			words = append(words, q.Method)
		}
	}
	if len(words) == 0 {
		return "it does not say what"
	}
	return strings.Join(words, "; ")
}

// words is what the tool says about its failure.
func (r *callResult) words(blocks []block) string {
	var texts []string
	for _, b := range blocks {
		if text := strings.TrimSpace(b.text()); text != "" {
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if text == "" && !isNull(r.StructuredContent) {
		text = string(r.StructuredContent)
	}
	if words := rpc.Words([]byte(text)); words != "" {
		return words
	}
	return text
}

// toolError makes the one shape of error out of the four in which servers report the failure of a tool: isError with
// a text, with the text of a protocol error, or with JSON, and a protocol error.
func toolError(words string) *stages.Error {
	if strings.TrimSpace(words) == "" {
		words = "the tool failed and did not say why"
	}
	return stages.Errorf(stages.ToolError, "", "%s", shorten(words, maxWords))
}

// data applies the rules in their order.
func (r *callResult) data(blocks []block, wrapped bool) []byte {
	if !isNull(r.StructuredContent) {
		inner, ok := unwrap(r.StructuredContent, blocks, wrapped)
		switch {
		case !ok:
			return line(r.StructuredContent)
		case inner[0] == '"':
			return rpc.UnquoteLine(inner)
		case isNull(inner):
			return nil
		}
		return line(inner)
	}
	if len(blocks) == 1 && blocks[0].isText {
		return rpc.UnquoteLine(blocks[0].quoted)
	}
	return joinBlocks(blocks)
}

// unwrap returns what a wrapper wraps: one member whose value equals the only text block, or that the tool's output
// schema declares to be wrapped.
func unwrap(structured json.RawMessage, blocks []block, wrapped bool) (json.RawMessage, bool) {
	if structured[0] != '{' {
		return nil, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(structured, &members) != nil || len(members) != 1 {
		return nil, false
	}
	for _, value := range members {
		if wrapped {
			return value, true
		}
		if len(blocks) == 1 && blocks[0].isText && value[0] == '"' && (bytes.Equal(value, blocks[0].quoted) || rpc.Text(value) == blocks[0].text()) {
			return value, true
		}
	}
	return nil, false
}

// joinBlocks puts blocks on lines of their own. When all texts are JSON each takes one line, and so does each other
// block.
func joinBlocks(blocks []block) []byte {
	allJSON := true
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		texts[i] = b.text()
		allJSON = allJSON && (!b.isText || json.Valid([]byte(texts[i])))
	}
	var out bytes.Buffer
	for i, b := range blocks {
		switch {
		case !b.isText:
			out.Write(oneLine(b.raw))
		case allJSON:
			out.Write(oneLine([]byte(texts[i])))
		case texts[i] == "":
			continue
		default:
			out.WriteString(texts[i])
		}
		if !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// oneLine takes the whitespace between tokens out of JSON that spans lines. Numbers and strings stay as they are.
func oneLine(b []byte) []byte {
	b = bytes.TrimSpace(b)
	if bytes.IndexByte(b, '\n') < 0 {
		return b
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// line copies data and ends it with a newline, unless there is none.
func line[T ~string | ~[]byte](data T) []byte {
	if len(data) == 0 {
		return nil
	}
	b := append(make([]byte, 0, len(data)+1), data...)
	if b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	return b
}

// wrapsResult reports whether an output schema says that structured content is a mere wrapper, as FastMCP marks it.
func wrapsResult(outputSchema json.RawMessage) bool {
	if !bytes.Contains(outputSchema, []byte("x-fastmcp-wrap-result")) {
		return false
	}
	var s struct {
		Wrap bool `json:"x-fastmcp-wrap-result"`
	}
	return json.Unmarshal(outputSchema, &s) == nil && s.Wrap
}

// describe names a tool in messages. Names may hold spaces and parentheses.
func describe(server, tool string) string { return fmt.Sprintf("tool %q of server %q", tool, server) }
