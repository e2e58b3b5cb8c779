package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

// maxWords bounds the words of a tool in a message.
const maxWords = 4 << 10

// callResult is the result of tools/call, decoded only as far as the rules of pipeline.md section 3 need.
type callResult struct {
	Content           json.RawMessage            `json:"content"`
	StructuredContent json.RawMessage            `json:"structuredContent"`
	IsError           bool                       `json:"isError"`
	ResultType        string                     `json:"resultType"`
	InputRequests     map[string]json.RawMessage `json:"inputRequests"`
	Task              json.RawMessage            `json:"task"`
}

// block is a content block: its text, if it is one of text, and what was sent.
type block struct {
	text   string
	isText bool
	raw    json.RawMessage
}

// resultOf turns the raw result of a call into pipeline data. wrapped says that the tool's output schema declares its
// structured content to be a mere wrapper. The error is an *Error with the tool's own words.
func resultOf(raw json.RawMessage, wrapped bool) (stages.Result, error) {
	var r callResult
	err := json.Unmarshal(raw, &r)
	if err == nil && isNull(bytes.TrimSpace(raw)) {
		err = errors.New("it is null")
	}
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

// decodeBlocks reads the content blocks. Some servers send null or a bare string where a list belongs.
func decodeBlocks(content json.RawMessage) ([]block, error) {
	if isNull(content) {
		return nil, nil
	}
	if content[0] == '"' {
		content = slices.Concat([]byte(`[{"type":"text","text":`), content, []byte(`}]`))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	blocks := make([]block, 0, len(list))
	for _, raw := range list {
		var b struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, err
		}
		if b.Type == "text" && b.Text != nil {
			blocks = append(blocks, block{*b.Text, true, raw})
		} else {
			blocks = append(blocks, block{raw: raw})
		}
	}
	return blocks, nil
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
		return toolError(r.words(blocks))
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
		if text := strings.TrimSpace(b.text); text != "" {
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	if text == "" && !isNull(r.StructuredContent) {
		text = string(r.StructuredContent)
	}
	if words := messageIn([]byte(text)); words != "" {
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

// errorCode matches a code that adds something to a message.
var errorCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// messageIn finds the message in the JSON of an error: {"error": "…"}, {"message": "…"}, {"error": {"message": "…"}}.
// It is empty if the text is anything else.
func messageIn(text []byte) string {
	type object struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
	}
	var o object
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &o) != nil {
		return ""
	}
	if len(o.Error) > 0 && o.Error[0] == '{' {
		return messageIn(o.Error)
	}
	words := stringIn(o.Error)
	switch message := stringIn(o.Message); {
	case words == "":
		words = message
	case message != "" && message != words:
		words += ": " + message
	}
	if code := stringIn(o.Code); words != "" && errorCode.MatchString(code) && !strings.Contains(words, code) {
		words += " (" + code + ")"
	}
	return words
}

func stringIn(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // anything but a string is no message
	return s
}

// data applies the rules in their order.
func (r *callResult) data(blocks []block, wrapped bool) []byte {
	if !isNull(r.StructuredContent) {
		inner, ok := unwrap(r.StructuredContent, blocks, wrapped)
		switch {
		case !ok:
			return line(r.StructuredContent)
		case inner[0] == '"':
			return line(stringIn(inner))
		case isNull(inner):
			return nil
		}
		return line(inner)
	}
	if len(blocks) == 1 && blocks[0].isText {
		return line(blocks[0].text)
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
		if len(blocks) == 1 && blocks[0].isText && value[0] == '"' && stringIn(value) == blocks[0].text {
			return value, true
		}
	}
	return nil, false
}

// joinBlocks puts blocks on lines of their own. When all texts are JSON each takes one line, and so does each other
// block.
func joinBlocks(blocks []block) []byte {
	allJSON := true
	for _, b := range blocks {
		allJSON = allJSON && (!b.isText || json.Valid([]byte(b.text)))
	}
	var out bytes.Buffer
	for _, b := range blocks {
		switch {
		case !b.isText:
			out.Write(oneLine(b.raw))
		case allJSON:
			out.Write(oneLine([]byte(b.text)))
		case b.text == "":
			continue
		default:
			out.WriteString(b.text)
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
