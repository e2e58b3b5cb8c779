package stages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// element is what a for_each begins an item with.
type element struct {
	data []byte // JSON, or a line of text without its newline
	text bool   // data is not JSON
}

// about describes the element as the input of a stage.
func (el element) about() about {
	if el.text {
		return about{Kind: ExactText}
	}
	return about{Kind: Values}
}

// line returns the element as a command gets it: one line of JSON, or the raw line, then a newline.
func (el element) line() []byte {
	if el.text || !bytes.ContainsAny(el.data, "\n\r") {
		return append(el.data, '\n') // what is behind the data in memory belongs to the element as well
	}
	var b bytes.Buffer
	if err := json.Compact(&b, el.data); err != nil { // cannot be: data is valid JSON
		return append(bytes.Clone(el.data), '\n')
	}
	return append(b.Bytes(), '\n')
}

const itemsBuffer = 64 << 10

// items splits a stream into the items of a for_each (docs/pipeline.md, for_each): the elements of arrays, JSON values, or lines.
// It holds one item at a time.
type items struct {
	r     *bufio.Reader
	max   int64
	lead  []byte // blanks before the next byte, in its line: part of it if it is text
	fresh bool   // only blanks stand before the next byte in its line
	count int    // items returned so far
	atEnd bool   // whether the input has ended
	mode  func(*items) (element, error)
	data  *header // describes the input; nil: it is JSON values
	text  bool    // the input is lines of text: only an object or array in a line of its own is JSON
}

// byteOrderMark is what some programs write before their text. It is no part of it.
const byteOrderMark = "\uFEFF"

// newItems returns the items of in, which data describes. One that is longer than max bytes is an error.
func newItems(in io.Reader, max int64, data *header) *items {
	return &items{r: bufio.NewReaderSize(in, itemsBuffer), max: max, mode: (*items).begin, data: data}
}

// next returns the next item, or io.EOF after the last one.
func (s *items) next() (element, error) {
	it, err := s.mode(s)
	if err == nil {
		s.count++
	}
	s.atEnd = err == io.EOF
	return it, err
}

// begin chooses how to split by the first non-blank byte, and by the kind of the data if that opens no object or array.
// If the first value is not valid JSON, the input is lines.
func (s *items) begin() (element, error) {
	s.skipMark()
	c, err := s.skipBlank()
	if err != nil {
		return element{}, err
	}
	lead := s.lead
	s.mode, s.text = (*items).value, false
	array, text := s.firstLine(c)
	switch {
	case len(text) > 0 && !isStamp(array):
		return element{}, s.behindArray(text)
	case c == '[' && len(text) == 0:
		s.mode = (*items).array
	case c == '[', c != '{' && s.data != nil && s.data.get().Kind != Values:
		s.mode, s.text = (*items).line, true
	}
	if c != '[' && c != '{' {
		return s.line()
	}
	it, err := s.mode(s)
	if bad, ok := errors.AsType[*notJSON](err); ok && bad.hopeless {
		s.mode, s.text = (*items).line, true
		return s.again(lead, bad)
	}
	return it, err
}

// again reads as a line what was taken for the beginning of a JSON value.
func (s *items) again(lead []byte, bad *notJSON) (element, error) {
	s.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(append(lead, bad.read...)), s.r), itemsBuffer)
	s.lead = nil
	return s.line()
}

// skipMark skips a byte order mark.
func (s *items) skipMark() {
	if first, _ := s.r.Peek(1); len(first) == 0 || first[0] != byteOrderMark[0] {
		return // without waiting for more
	}
	if head, _ := s.r.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		s.r.Discard(len(head))
	}
}

// isStamp reports whether an array with text behind it is what lines of logs begin with: nothing in the brackets, or one
// number or bare word, as in "[12] started". A line with more is data, and would be lost.
func isStamp(array []byte) bool { return !bytes.ContainsAny(array[1:], `[{",`) }

// behindArray refuses text behind an array: it is no item, and not lines.
func (s *items) behindArray(text []byte) error {
	return Errorf(InvalidArguments, "remove the text after the array; if the input is lines, make each of them a JSON string before: jq -R .",
		"behind a JSON array the input goes on with text: %s", texts.Quote(texts.Cut(string(text), 60)))
}

// firstLine returns the array that the first line begins with, and the text behind it and behind more such values, if
// there is one. It waits for the line, or for as much of it as the buffer holds, so that the answer does not depend on
// how the data comes.
func (s *items) firstLine(c byte) (array, text []byte) {
	if c != '[' {
		return nil, nil
	}
	buf, err := s.r.Peek(s.r.Buffered())
	for seen := 0; err == nil && len(buf) < itemsBuffer && bytes.IndexByte(buf[seen:], '\n') < 0; {
		seen = len(buf)
		if _, err = s.r.Peek(seen + 1); err == nil || err == io.EOF {
			buf, _ = s.r.Peek(s.r.Buffered())
		}
	}
	line, _, _ := bytes.Cut(buf, []byte("\n"))
	dec := json.NewDecoder(bytes.NewReader(line))
	var v json.RawMessage
	if dec.Decode(&v) != nil {
		return nil, nil
	}
	rest := bytes.TrimSpace(line[dec.InputOffset():])
	for len(rest) > 0 && (rest[0] == '[' || rest[0] == '{') && !beginsJSON(rest) {
		dec := json.NewDecoder(bytes.NewReader(rest))
		var more json.RawMessage
		if dec.Decode(&more) != nil {
			return v, rest
		}
		rest = bytes.TrimSpace(rest[dec.InputOffset():])
	}
	if beginsJSON(rest) || json.Valid(rest) {
		rest = nil // another value
	}
	return v, rest
}

// array reads what follows the beginning of an array: its first element, or its end.
func (s *items) array() (element, error) {
	s.r.Discard(1)
	c, err := s.skipBlank()
	switch {
	case err != nil:
		return element{}, s.cut(err)
	case c == ']':
		s.r.Discard(1)
		s.mode = (*items).betweenArrays
		return s.mode(s)
	}
	s.mode = (*items).moreElements
	it, err := s.readValue()
	if bad, ok := errors.AsType[*notJSON](err); ok {
		bad.read = append([]byte{'['}, bad.read...)
	}
	return it, err
}

// moreElements reads a comma and the next element, or the end of the array.
func (s *items) moreElements() (element, error) {
	c, err := s.skipBlank()
	if err != nil {
		return element{}, s.cut(err)
	}
	s.r.Discard(1)
	switch c {
	case ']':
		s.mode = (*items).betweenArrays
		return s.mode(s)
	case ',':
		if _, err := s.skipBlank(); err != nil {
			return element{}, s.cut(err)
		}
		return s.readValue()
	}
	return element{}, s.invalid(fmt.Sprintf("expected a comma or the end of the array, got %q", c))
}

// betweenArrays reads what follows an array: another array, whose elements are items too, or anything else.
func (s *items) betweenArrays() (element, error) {
	c, err := s.skipBlank()
	if err == nil && c == '[' {
		return s.array()
	}
	it, err := s.value()
	if err == nil && it.text {
		return element{}, s.behindArray(it.data)
	}
	return it, err
}

// value reads one of the JSON values that follow each other, or a line between them that is not JSON.
func (s *items) value() (element, error) {
	c, err := s.skipBlank()
	if err != nil {
		return element{}, err
	}
	if c != '{' && c != '[' {
		return s.line()
	}
	lead, fresh := s.lead, s.fresh
	it, err := s.readValue()
	if bad, ok := errors.AsType[*notJSON](err); ok && bad.hopeless && fresh {
		return s.again(lead, bad) // a line of its own that only looks like JSON, such as "[INFO] x"
	}
	return it, err
}

// line reads the next line that is not blank. A line that is not JSON counts as a string, and so does a scalar in text.
func (s *items) line() (element, error) {
	for {
		text, err := s.readLine()
		if len(s.lead) > 0 {
			text, s.lead = append(s.lead, text...), nil
		}
		if err != nil && (err != io.EOF || len(text) == 0) {
			return element{}, err
		}
		text = bytes.TrimRight(text, "\r\n")
		if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 {
			continue
		} else if s.text && wholeJSON(trimmed) || !s.text && json.Valid(trimmed) {
			return element{data: trimmed}, nil
		}
		return element{data: text, text: true}, nil
	}
}

func (s *items) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		line = append(line, part...)
		if int64(len(line)) > s.max {
			return nil, s.tooLong()
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// readValue reads one JSON value, whose first byte is next.
func (s *items) readValue() (element, error) {
	var scan valueScanner
	var data []byte
	for done := false; !done; {
		if _, err := s.r.Peek(1); err == io.EOF {
			if !scan.scalar {
				return element{}, &notJSON{read: data, hopeless: !beginsJSON(data), err: s.cut(io.EOF)}
			}
			break
		} else if err != nil {
			return element{}, err
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		var n int
		n, done = scan.scan(chunk)
		data = append(data, chunk[:n]...)
		s.r.Discard(n)
		if int64(len(data)) > s.max {
			return element{}, s.tooLong()
		}
	}
	if len(data) == 0 || !json.Valid(data) {
		problem := "expected a JSON value"
		if len(data) > 0 {
			problem = syntaxError(data)
		}
		return element{}, &notJSON{read: data, hopeless: true, err: s.invalid(problem)}
	}
	return element{data: data}, nil
}

// beginsJSON reports whether data is the beginning of a JSON value that has not ended.
func beginsJSON(data []byte) bool {
	var v json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&v), io.ErrUnexpectedEOF)
}

// skipBlank discards white space and returns the next byte without consuming it.
func (s *items) skipBlank() (byte, error) {
	s.lead, s.fresh = nil, false
	for {
		b, err := s.r.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case b == '\n':
			s.lead, s.fresh = nil, true
		case !blank(b):
			return b, s.r.UnreadByte()
		case len(s.lead) < itemsBuffer:
			s.lead = append(s.lead, b)
		}
	}
}

// notJSON is the error of a value that is not JSON, with the bytes that were taken for it.
type notJSON struct {
	read     []byte
	hopeless bool // no more data would make it JSON
	err      error
}

func (e *notJSON) Error() string { return e.err.Error() }
func (e *notJSON) Unwrap() error { return e.err }

func (s *items) invalid(problem string) error {
	return Errorf(InvalidArguments, "give for_each a JSON array, JSON values or lines of text",
		"item %d of the input is not valid JSON: %s", s.count+1, problem)
}

// cut explains an end of the input where JSON goes on; other errors stay as they are.
func (s *items) cut(err error) error {
	if err != io.EOF {
		return err
	}
	return s.invalid("the input ends inside of it")
}

func (s *items) tooLong() error {
	return OverLimit("item", "split the data further before for_each, for example with jq '.[]'",
		"item %d of the input is longer than %s", s.count+1, texts.Bytes(s.max))
}
