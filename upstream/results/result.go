package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxErrorText = 4 << 10   // bytes of a tool's error in a message
	maxErrorRead = 256 << 10 // bytes of a failed result that are searched for the error
	maxRequested = 10        // inputs that a tool asks for and a message names
	maxBlocks    = 100_000   // content blocks of one result: each takes 20 times the memory of its three bytes
)

// Hints at a result that is too large.
const (
	askForLess = "ask the tool for less: a page, a filter, fewer fields"
	MoreResult = askForLess + "; the operator can raise the limit with --limit result=SIZE"
)

// NoMemory is the error of a result that does not fit in the memory of the process.
func NoMemory(what string, err error) *stages.Error {
	return stages.OverLimit("memory", "try again when less is running, or "+askForLess, "%s: %w", what, err)
}

// callResult is the result of tools/call, decoded only as far as the rules for results need.
type callResult struct {
	Content           json.RawMessage
	StructuredContent json.RawMessage
	IsError           bool
	ResultType        string
	InputRequests     json.RawMessage
	RequestState      json.RawMessage
	Task              json.RawMessage
}

// block is a content block as it was sent, with its text, still quoted, if it is a text block.
type block struct{ quoted, raw json.RawMessage }

func (b block) isText() bool { return b.quoted != nil }

func (b block) text() string { return rpc.Text(b.quoted) }

// Of turns the raw result of a call into pipeline data, which may use its memory. wrapped says that the tool's
// output schema declares its structured content to be a mere wrapper. The error is an *Error with the tool's own text.
func Of(raw json.RawMessage, wrapped bool) (stages.Result, error) {
	r, err := decodeResult(raw)
	if err != nil {
		return stages.Result{}, invalid("a result", err)
	}
	blocks, err := decodeBlocks(r.Content)
	if err != nil {
		return stages.Result{}, invalid("content", err)
	}
	if err := r.refusal(raw, blocks); err != nil {
		return stages.Result{}, err
	}
	res := r.data(blocks, wrapped)
	if slices.ContainsFunc(blocks, func(b block) bool { return !b.isText() }) {
		for _, b := range blocks {
			res.Blocks = append(res.Blocks, b.raw)
		}
	}
	return res, nil
}

// invalid is the error of something that a server sent and nobody can read.
func invalid(what string, err error) error {
	if errors.Is(err, errManyBlocks) {
		return stages.Errorf(stages.LimitExceeded, askForLess, "%w", err)
	}
	return Fault("the server sent %s that is not valid: %w", what, err)
}

// decodeResult finds the members of a result. They share its memory: a result may have many megabytes.
func decodeResult(raw json.RawMessage) (r callResult, err error) {
	if !json.Valid(raw) {
		var v json.RawMessage
		return r, json.Unmarshal(raw, &v) // says where
	}
	set := func(name string, value json.RawMessage, target any) {
		if err == nil && json.Unmarshal(value, target) != nil {
			err = fmt.Errorf("%s is %s", name, texts.Cut(string(value), 80))
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
			r.InputRequests = value
		case "requestState":
			r.RequestState = value
		}
	}) {
		err = fmt.Errorf("it is not an object but %s", texts.Cut(string(bytes.TrimSpace(raw)), 80))
	}
	return r, err
}

// errManyBlocks is the error of a result that would take far more memory than its size.
var errManyBlocks = fmt.Errorf("the result has more than %d content blocks, which is the limit", maxBlocks)

// decodeBlocks reads the content blocks. Some servers send null or a bare string instead of a list.
func decodeBlocks(content json.RawMessage) (blocks []block, err error) {
	if rpc.IsNull(content) {
		return nil, nil
	}
	if content[0] == '"' {
		return []block{{content, slices.Concat([]byte(`{"type":"text","text":`), content, []byte(`}`))}}, nil
	}
	if !rpc.Elements(content, func(raw []byte) {
		if len(blocks) == maxBlocks {
			err = errManyBlocks
		}
		if err != nil {
			return
		}
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
		if !object {
			err = fmt.Errorf("a block is %s", texts.Cut(string(raw), 80))
		}
		if string(kind) != `"text"` || len(b.quoted) == 0 || b.quoted[0] != '"' {
			b.quoted = nil
		}
		blocks = append(blocks, b)
	}) {
		err = fmt.Errorf("it is not a list but %s", texts.Cut(string(content[:min(len(content), maxErrorText)]), 80))
	}
	return blocks, err
}

// refusal is the error of a result without data: the tool failed, or asks for something that a pipeline cannot give, or
// has answered with a task, a [Started].
func (r *callResult) refusal(raw json.RawMessage, blocks []block) error {
	asks, inputs := r.requestedInputs()
	switch {
	case asks || r.ResultType == "input_required":
		return stages.Errorf(stages.ToolError, askElsewhere,
			"the tool asks for input from a person (%s), which a pipeline cannot give", inputs)
	case r.ResultType == "task":
		return started(raw, true)
	case !rpc.IsNull(r.Task) && len(blocks) == 0 && rpc.IsNull(r.StructuredContent):
		return started(r.Task, false)
	case r.IsError:
		e := ToolError(r.errorText(blocks))
		e.Answered = true
		return e
	}
	return nil
}

// askElsewhere is the hint for a tool that asks what nobody here can answer.
const askElsewhere = "give what it asks for in args if the tool takes it, use a client that answers such questions, or use another tool"

// requestedInputs reports whether the tool asks for anything, and lists it.
func (r *callResult) requestedInputs() (asks bool, list string) {
	var words []string
	rpc.Members(r.InputRequests, func(_, request []byte) {
		var q struct {
			Method string `json:"method"`
			Params struct {
				Message string `json:"message"`
			} `json:"params"`
		}
		asks = true
		if len(words) == maxRequested || json.Unmarshal(request, &q) != nil {
			return
		}
		if said := cmp.Or(q.Params.Message, q.Method); said != "" {
			words = append(words, texts.Cut(said, 200))
		}
	})
	return asks, cmp.Or(strings.Join(words, "; "), "it does not say what")
}

// errorText is the tool's message about its failure. It overwrites the texts of the blocks.
func (r *callResult) errorText(blocks []block) string {
	var texts []string
	for left := maxErrorRead; left > 0 && len(blocks) > 0; blocks = blocks[1:] {
		if !blocks[0].isText() {
			continue
		}
		said := bytes.TrimSpace(rpc.Unquote(blocks[0].quoted))
		if said = said[:min(len(said), left)]; len(said) > 0 {
			texts = append(texts, strings.ToValidUTF8(string(said), "\uFFFD"))
			left -= len(said)
		}
	}
	text := strings.Join(texts, "\n")
	if text == "" && !rpc.IsNull(r.StructuredContent) {
		text = string(r.StructuredContent[:min(len(r.StructuredContent), maxErrorRead)])
	}
	if words := rpc.ErrorText([]byte(text)); words != "" {
		return words
	}
	return text
}

// ToolError makes one form of error of the four in which servers report that a tool failed: isError with a text, with
// the text of a protocol error, or with JSON, and a protocol error.
func ToolError(words string) *stages.Error {
	if strings.TrimSpace(words) == "" {
		return stages.Errorf(stages.ToolError, "", "the tool failed without a reason")
	}
	return &stages.Error{Code: stages.ToolError, Msg: texts.Cut(words, maxErrorText), Foreign: true}
}

// Fault is the error of a server that answers as no server should.
func Fault(format string, args ...any) *stages.Error {
	return stages.Errorf(stages.ToolError, "report it to the makers of the server", format, args...)
}

// data applies the rules in their order.
func (r *callResult) data(blocks []block, wrapped bool) stages.Result {
	if !rpc.IsNull(r.StructuredContent) {
		inner, ok := unwrap(r.StructuredContent, blocks, wrapped)
		switch {
		case !ok:
			return stages.Result{Data: r.StructuredContent, Kind: stages.Values}
		case inner[0] == '"':
			return stages.Result{Data: rpc.Unquote(inner)}
		case rpc.IsNull(inner):
			return stages.Result{None: true}
		}
		return stages.Result{Data: inner, Kind: stages.Values}
	}
	switch {
	case len(blocks) == 0:
		return stages.Result{None: true}
	case len(blocks) == 1 && blocks[0].isText():
		return stages.Result{Data: rpc.Unquote(blocks[0].quoted)}
	}
	return joinBlocks(blocks)
}

// unwrap returns the value in a wrapper: an object with one member that equals the only text block, or that the tool's
// output schema declares to be a wrapper.
func unwrap(structured json.RawMessage, blocks []block, wrapped bool) (json.RawMessage, bool) {
	if structured[0] != '{' {
		return nil, false
	}
	var value json.RawMessage
	members := 0
	if !rpc.Members(structured, func(_, found []byte) { value, members = found, members+1 }) || members != 1 {
		return nil, false
	}
	same := len(blocks) == 1 && blocks[0].isText() && value[0] == '"' && (bytes.Equal(value, blocks[0].quoted) || rpc.Text(value) == blocks[0].text())
	return value, wrapped || same
}

// joinBlocks puts each block on lines of its own. If all texts are JSON, objects and arrays take one line each; so do
// blocks that are not text.
func joinBlocks(blocks []block) (res stages.Result) {
	res.Kind = stages.Values
	texts, allJSON := make([]string, len(blocks)), true
	for i, b := range blocks {
		if !b.isText() {
			texts[i] = string(oneLine(b.raw))
			continue
		}
		texts[i] = b.text()
		valid := json.Valid([]byte(texts[i]))
		if allJSON = allJSON && valid; !valid || !isContainer(texts[i]) {
			res.Kind = stages.ToolText
		}
	}
	for i, text := range texts {
		if allJSON && isContainer(text) {
			texts[i] = string(oneLine([]byte(text)))
		}
	}
	res.Data, res.Spans = joinLines(texts)
	return res
}

// joinLines puts each text on lines of its own.
func joinLines[T string | []byte](texts []T) (data []byte, spans []stages.Span) {
	for _, text := range texts {
		if n := len(data); n > 0 && len(text) > 0 && data[n-1] != '\n' {
			data = append(data, '\n')
		}
		from := int64(len(data))
		data = append(data, text...)
		spans = append(spans, stages.Span{From: from, To: int64(len(data))})
	}
	return data, spans
}

func isContainer(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[')
}

// oneLine removes the whitespace between the tokens of JSON that spans lines. Numbers and strings stay as they are.
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

// WrapsResult reports whether an output schema marks structured content as a mere wrapper, as FastMCP does.
func WrapsResult(outputSchema json.RawMessage) bool {
	if !bytes.Contains(outputSchema, []byte("x-fastmcp-wrap-result")) {
		return false
	}
	var s struct {
		Wrap bool `json:"x-fastmcp-wrap-result"`
	}
	return json.Unmarshal(outputSchema, &s) == nil && s.Wrap
}
