package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// body is what the two forms of an HTTP answer have in common.
type body struct {
	src     io.ReadCloser
	max     int64
	capt    *capture // nil: nobody waits for the raw result
	release func(time.Duration)
	request func() (io.ReadCloser, error)
}

func (b *body) Close() error {
	err := b.src.Close()
	b.release(0)
	return err
}

// swap takes the result out of a response and returns what the SDK gets instead.
func (b *body) swap(msg []byte) []byte {
	if b.capt == nil {
		return msg
	}
	e, ok := scanEnvelope(msg)
	if !ok || !e.isResult() {
		return msg
	}
	b.capt.take(e.result)
	if bytes.Contains(e.result, []byte(`"x-mcp-header"`)) {
		return msg // a tool list from which the SDK must learn which arguments are sent as headers
	}
	short, err := json.Marshal(map[string]json.RawMessage{"jsonrpc": []byte(`"2.0"`), "id": e.id, "result": stub})
	if err != nil {
		return msg
	}
	return short
}

// fail answers a captured request with an error of its own, so that the session survives.
func (b *body) fail(err error) []byte {
	b.capt.fail(err)
	return synthetic(b.request, err.Error())
}

func tooLarge(limit int64) error { return fmt.Errorf("%w (%d bytes)", errTooLarge, limit) }

// jsonBody is an answer of one message.
type jsonBody struct {
	*body
	text *bytes.Reader // nil before the first read
}

// Read reads the whole answer the first time.
func (b *jsonBody) Read(p []byte) (int, error) {
	if b.text == nil {
		raw, err := io.ReadAll(io.LimitReader(b.src, b.max+1))
		if err == nil && int64(len(raw)) > b.max {
			err = tooLarge(b.max)
		}
		switch {
		case err != nil && b.capt == nil:
			return 0, err
		case err != nil:
			raw = b.fail(err)
		default:
			raw = b.swap(raw)
		}
		b.text = bytes.NewReader(raw)
	}
	return b.text.Read(p)
}

// eventBody is an answer that is a stream of server-sent events. Each event is read whole; the one with the result is
// replaced, and all others pass unchanged.
type eventBody struct {
	*body
	in   *bufio.Reader
	out  bytes.Buffer
	err  error
	done bool // the result has been taken
}

func newEventBody(b *body) *eventBody {
	return &eventBody{body: b, in: bufio.NewReader(b.src)} // most answers are short; appendLine takes more for others
}

// Read returns bytes of the rewritten stream.
func (b *eventBody) Read(p []byte) (int, error) {
	for b.out.Len() == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.err = b.nextEvent()
	}
	return b.out.Read(p)
}

// nextEvent puts one event into out.
func (b *eventBody) nextEvent() error {
	var raw, data []byte
	var fields [][2]int // of lines in raw that are not data
	for {
		start := len(raw)
		var err error
		raw, err = b.appendLine(raw)
		if errors.Is(err, errTooLarge) && b.capt != nil {
			b.event(nil, b.fail(err))
			return io.EOF
		}
		line := bytes.TrimRight(raw[start:], "\r\n")
		value, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case isData && data == nil:
			data = bytes.TrimPrefix(value, []byte(" "))
		case isData:
			data = append(append(data[:len(data):len(data)], '\n'), bytes.TrimPrefix(value, []byte(" "))...)
		case len(line) > 0:
			fields = append(fields, [2]int{start, start + len(line)})
		}
		if err == nil && len(line) > 0 {
			continue
		}
		b.pass(raw, data, fields)
		return err
	}
}

// pass puts an event into out, with its result taken.
func (b *eventBody) pass(raw, data []byte, fields [][2]int) {
	if b.done || b.capt == nil || len(data) == 0 {
		b.out.Write(raw)
		return
	}
	short := b.swap(data)
	if len(short) == len(data) && &short[0] == &data[0] {
		b.out.Write(raw)
	} else {
		var kept [][]byte
		for _, f := range fields {
			kept = append(kept, raw[f[0]:f[1]])
		}
		b.event(kept, short)
	}
	if e, ok := scanEnvelope(short); ok && e.method == nil && e.id != nil {
		b.done = true
		b.release(drainWait)
	}
}

// event puts an event of these lines and this data into out.
func (b *eventBody) event(lines [][]byte, data []byte) {
	for _, line := range lines {
		b.out.Write(line)
		b.out.WriteByte('\n')
	}
	b.out.WriteString("data: ")
	b.out.Write(data)
	b.out.WriteString("\n\n")
}

// appendLine reads a line, its end included.
func (b *eventBody) appendLine(raw []byte) ([]byte, error) {
	for {
		part, err := b.in.ReadSlice('\n')
		if int64(len(raw)+len(part)) > b.max {
			return raw, tooLarge(b.max)
		}
		raw = append(raw, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return raw, err
		}
		b.in = bufio.NewReaderSize(b.in, lineBuffer)
	}
}
