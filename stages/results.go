package stages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// ofItem says of every code whether a failure with it is one of the item, so that on_error applies. All others, and
// those that are marked as failures of the run, end the run whatever on_error says: they would meet every item alike,
// or nobody knows what has happened.
var ofItem = map[Code]bool{
	ToolError:         true,
	ServerUnavailable: true, // this call did not come through; the next may
	InvalidArguments:  true, // the item does not fit the tool
	CommandFailed:     true,
	Timeout:           true, // of one call, one command or a for_each within; that of the run and of the stage end the context
	LimitExceeded:     true, // the item's data is too large; limits of the run are marked

	InvalidPipeline:    false, // as all that the plan forbids
	UnknownServer:      false, // the server was removed while the pipeline ran
	UnknownTool:        false,
	UnknownRun:         false,
	DisallowedCommand:  false,
	DisallowedArgument: false,
	Denied:             false, // the tool may not be called, whatever the item is
	SandboxUnavailable: false, // nothing of the plan is checked
	Cancelled:          false, // the caller has gone, or the gateway closes
	Internal:           false, // a sandbox that is lost, a bug
}

// failureOf returns the failure of an item that on_error applies to, or nil: what ended it is not its own.
func failureOf(err error) *Error {
	var f *Error
	if !errors.As(err, &f) || f.OfRun || !ofItem[f.Code] && !f.repeats {
		return nil
	}
	return f
}

// succeeded puts what stands for an item that succeeded into it.
func (it *item) succeeded() error {
	if !it.of.WithItem {
		return nil
	}
	result := null
	if list := it.out.get().values(it.result.buf.Bytes()); len(list) == 1 {
		result = list[0]
	} else if len(list) > 1 {
		result = encodeArray(list)
	}
	return it.become([]member{{"item", it.value()}, {"result", result}})
}

// failed puts what stands for an item that failed into it.
func (it *item) failed(failed *Error, onError string) error {
	it.result.release()
	if onError == onErrorSkip {
		it.out.describe(about{Kind: Values}) // of which there is none
		return nil
	}
	msg := failed.Msg
	if failed.Item != 0 {
		msg += " (item " + strconv.Itoa(failed.Item) + " of the for_each within)"
	}
	if it.note != "" {
		msg += " (" + it.note + ")"
	}
	about := []member{
		{"code", appendString(nil, []byte(failed.Code))},
		{"message", appendString(nil, []byte(msg))},
		{"attempts", json.RawMessage(strconv.Itoa(it.attempts))},
		{"index", json.RawMessage(strconv.Itoa(it.number))},
	}
	if it.of.WithItem {
		return it.become([]member{{"item", it.value()}, {"error", encodeObject(about)}})
	}
	return it.become([]member{{"error", encodeObject(append(about, member{"item", it.value()}))}})
}

// value returns the element as a JSON value, exactly as it came; a line of text as a string.
func (el element) value() json.RawMessage {
	if el.text {
		return appendString(nil, el.data)
	}
	return el.data
}

// collector writes the results of items.
type collector struct {
	valueList
	raw  bool    // results are bytes, passed on as they are
	open bool    // raw results so far do not end with a newline
	data *header // of the output, to be described with the first result; nil: it is
}

// collect writes one result, at the latest with the next Flush.
func (c *collector) collect(it *item) error {
	result := it.result.buf.Bytes()
	if c.data != nil {
		c.data.describe(about{Kind: it.out.get().Kind})
		c.data = nil
	}
	raw := c.raw && !it.isValue
	if c.open && (!raw || len(result) > 0) {
		c.WriteByte('\n')
		c.open = false
	}
	switch {
	case raw:
		if len(result) > 0 {
			c.open = !bytes.HasSuffix(result, []byte("\n"))
		}
		_, err := c.Write(result)
		return err
	case it.isValue:
		return c.add(result)
	}
	for _, v := range it.out.get().values(result) {
		if err := c.add(v); err != nil {
			return err
		}
	}
	return nil
}

// valueList writes values as one JSON array or as lines. A value is written at the latest with the next Flush. It keeps
// its first error.
type valueList struct {
	*bufio.Writer
	lines bool
	n     int64
}

// listChunk is how much is written at a time.
const listChunk = 8 << 10

func newValueList(out io.Writer, lines bool) valueList {
	return valueList{Writer: bufio.NewWriterSize(out, listChunk), lines: lines}
}

func (l *valueList) add(v json.RawMessage) error {
	switch {
	case l.lines:
		v = append(oneLine(v), '\n')
	case l.n == 0:
		l.WriteByte('[')
	default:
		l.WriteString(",\n")
	}
	l.n++
	_, err := l.Write(v)
	return err
}

// end closes the array.
func (l *valueList) end() error {
	if !l.lines {
		if l.n == 0 {
			l.WriteByte('[')
		}
		l.WriteString("]\n")
	}
	return l.Flush()
}
