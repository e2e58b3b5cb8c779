package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
)

// A DataKind says how data becomes JSON values. The stage that makes the data sets it (docs/pipeline.md, tool).
type DataKind uint8

// The kinds of data. Their numbers are kept with the data of runs: they must not change.
const (
	ToolText    DataKind = iota // one JSON object or array if the whole text is one, else one string with every byte of the text
	ExactText                   // one string with every byte of the text, even if the text is JSON
	CommandText                 // like ToolText, but the string leaves out a newline at the end of the text
	Values                      // JSON values, one after another
)

// about describes the data of a pipe.
type about struct {
	Kind   DataKind `json:"kind"`
	Single bool     `json:"single,omitempty"` // the data is one result of a tool: of kind Values, it is null if it has no bytes
	Blocks []Span   `json:"blocks,omitempty"` // the result's content blocks, if there are several: its value is an array with one element per block
}

// A header describes the data of a pipe. The writer sets it before it writes the first byte; the reader reads it after
// the first byte or the end of the data.
type header struct {
	description atomic.Pointer[description]
}

type description struct {
	about
	source *header // of the pipe that the data comes from; nil: about describes the data
	lines  bool    // the data is lines of the source's data, as a command writes them
}

func (h *header) describe(a about) { h.description.Store(&description{about: a}) }

// copyOf says that the data is the same as in another pipe.
func (h *header) copyOf(in *header) { h.description.Store(&description{source: in}) }

// linesOf says that the data is lines of another pipe's data, picked or ordered by a command.
func (h *header) linesOf(in *header) { h.description.Store(&description{source: in, lines: true}) }

// get returns the description. A pipe that was never described has no data.
func (h *header) get() about {
	d := h.description.Load()
	switch {
	case d == nil:
		return about{Kind: Values}
	case d.source == nil:
		return d.about
	case !d.lines:
		return d.source.get()
	case d.source.get().Kind == Values:
		return about{Kind: Values}
	}
	return about{Kind: CommandText}
}

// headers describe a filter's input and output, and name the item that it runs for: nil, if it runs once. They are in the
// context because one filter runs for many items.
type headers struct {
	in, out *header
	item    *item
	tape    *tape // of what the filter writes; nil: it is not kept
}

type headersKey struct{}

func withHeaders(ctx context.Context, h headers) context.Context {
	return context.WithValue(ctx, headersKey{}, h)
}

// headersOf returns the headers of the filter that runs with ctx.
func headersOf(ctx context.Context) headers {
	if h, ok := ctx.Value(headersKey{}).(headers); ok {
		return h
	}
	return headers{in: new(header), out: new(header)}
}

// about describes a result.
func (r Result) about() about {
	a := about{Kind: r.Kind, Single: !r.Several, Blocks: r.Spans}
	if len(r.Data) == 0 && r.None {
		a.Kind = Values
	}
	return a
}

// result returns the result that a describes, without its blocks that are not text.
func (a about) result(data []byte) Result {
	return Result{Data: data, Kind: a.Kind, Spans: a.Blocks, None: a.Kind == Values && len(data) == 0, Several: !a.Single}
}

// values returns data as JSON values. Data that is JSON keeps its bytes.
func (a about) values(data []byte) []json.RawMessage {
	if len(a.Blocks) > 1 {
		return []json.RawMessage{a.array(data)}
	}
	if a.Kind != Values {
		return []json.RawMessage{a.value(data)}
	}
	if a.Single { // a tool's result of this kind is one valid JSON value, or empty
		if data = bytes.TrimSpace(data); len(data) == 0 {
			data = null
		}
		return []json.RawMessage{data}
	}
	list, ok := readValues(data)
	if !ok {
		return []json.RawMessage{about{Kind: CommandText}.string(data)}
	}
	return list
}

// array returns the values of the content blocks as one array.
func (a about) array(data []byte) json.RawMessage {
	list := make([]json.RawMessage, len(a.Blocks))
	for i, b := range a.Blocks {
		list[i] = about{}.value(data[b.From:b.To])
	}
	return encodeArray(list)
}

// value returns text as one JSON value: the object or array that it is, or a string.
func (a about) value(text []byte) json.RawMessage {
	if trimmed := bytes.TrimSpace(text); a.Kind != ExactText && wholeJSON(trimmed) {
		return trimmed
	}
	return a.string(text)
}

// string returns text as a JSON string.
func (a about) string(text []byte) json.RawMessage { return appendString(nil, a.text(text)) }

// text returns the bytes of the string that data becomes.
func (a about) text(data []byte) []byte {
	if a.Kind == CommandText || a.Kind == Values {
		return bytes.TrimSuffix(data, []byte("\n"))
	}
	return data
}

// encode returns the description as bytes that can be kept with the data.
func (a about) encode() []byte {
	text, _ := json.Marshal(a) // has only plain values
	return text
}

// decodeAbout decodes the description at the beginning of b, and returns the bytes after it.
func decodeAbout(b []byte) (a about, rest []byte, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if d.Decode(&a) != nil || !a.valid() {
		return a, nil, errAbout
	}
	return a, b[d.InputOffset():], nil
}

// valid reports whether a description that was decoded can be one.
func (a about) valid() bool {
	last := int64(0)
	for _, block := range a.Blocks {
		if block.From < last || block.To < block.From {
			return false
		}
		last = block.To
	}
	return a.Kind <= Values
}

// errAbout is the error of a description that is damaged.
var errAbout = unreadable(errors.New("the description of the data is damaged"))
