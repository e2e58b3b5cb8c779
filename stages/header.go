package stages

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
)

// A DataKind says how data becomes JSON values. The stage that makes the data sets it (pipeline.md §3).
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
	kind   DataKind
	single bool   // the data is one result of a tool: of kind Values, it is null if it has no bytes
	blocks []Span // the result's content blocks, if there are several: its value is an array with one element per block
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
		return about{kind: Values}
	case d.source == nil:
		return d.about
	case !d.lines:
		return d.source.get()
	case d.source.get().kind == Values:
		return about{kind: Values}
	}
	return about{kind: CommandText}
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
	a := about{kind: r.Kind, single: true, blocks: r.Spans}
	if len(r.Data) == 0 && r.None {
		a.kind = Values
	}
	return a
}

// result returns the result that a describes, without its blocks that are not text.
func (a about) result(data []byte) Result {
	return Result{Data: data, Kind: a.kind, Spans: a.blocks, None: a.kind == Values && len(data) == 0}
}

// values returns data as JSON values. Data that is JSON keeps its bytes.
func (a about) values(data []byte) []json.RawMessage {
	if len(a.blocks) > 1 {
		return []json.RawMessage{a.array(data)}
	}
	if a.kind != Values {
		return []json.RawMessage{a.value(data)}
	}
	if a.single { // a tool's result of this kind is one valid JSON value, or empty
		if data = bytes.TrimSpace(data); len(data) == 0 {
			data = null
		}
		return []json.RawMessage{data}
	}
	list, ok := readValues(data)
	if !ok {
		return []json.RawMessage{about{kind: CommandText}.string(data)}
	}
	return list
}

// array returns the values of the content blocks as one array.
func (a about) array(data []byte) json.RawMessage {
	list := make([]json.RawMessage, len(a.blocks))
	for i, b := range a.blocks {
		list[i] = about{}.value(data[b.From:b.To])
	}
	return encodeArray(list)
}

// value returns text as one JSON value: the object or array that it is, or a string.
func (a about) value(text []byte) json.RawMessage {
	if trimmed := bytes.TrimSpace(text); a.kind != ExactText && wholeJSON(trimmed) {
		return trimmed
	}
	return a.string(text)
}

// string returns text as a JSON string.
func (a about) string(text []byte) json.RawMessage { return appendString(nil, a.text(text)) }

// text returns the bytes of the string that data becomes.
func (a about) text(data []byte) []byte {
	if a.kind == CommandText || a.kind == Values {
		return bytes.TrimSuffix(data, []byte("\n"))
	}
	return data
}

// encode returns the description as bytes that can be kept with the data.
func (a about) encode() []byte {
	b := []byte{byte(a.kind), 0}
	if a.single {
		b[1] = 1
	}
	b = binary.AppendUvarint(b, uint64(len(a.blocks)))
	for _, block := range a.blocks {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(block.From)), uint64(block.To))
	}
	return b
}

// decodeAbout decodes the description at the beginning of b, and returns the bytes after it.
func decodeAbout(b []byte) (a about, rest []byte, err error) {
	if len(b) < 2 || DataKind(b[0]) > Values {
		return a, nil, errAbout
	}
	a.kind, a.single = DataKind(b[0]), b[1] == 1
	rest = b[2:]
	next := func() uint64 {
		v, n := binary.Uvarint(rest)
		if n <= 0 || v > math.MaxInt64 {
			err, n = errAbout, len(rest)
		}
		rest = rest[n:]
		return v
	}
	for n, last := next(), uint64(0); n > 0 && err == nil; n-- {
		from, to := next(), next()
		if from < last || to < from {
			err = errAbout
		}
		a.blocks, last = append(a.blocks, Span{int64(from), int64(to)}), to
	}
	return a, rest, err
}

// errAbout is the error of a description that is damaged.
var errAbout = unreadable(errors.New("the description of the data is damaged"))
