package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// values returns the JSON values that data is made of, or, when it is text, the text as one JSON string. The values
// are the bytes as they were. Nothing is no value (pipeline.md §4, values).
func values(data []byte) []json.RawMessage {
	var list []json.RawMessage
	for rest := trimBlank(data); len(rest) > 0; {
		var scan valueScanner
		n, done := scan.scan(rest)
		if !done && !scan.ended() || n == 0 || !json.Valid(rest[:n]) {
			return []json.RawMessage{textValue(data)}
		}
		list = append(list, rest[:n])
		rest = trimBlank(rest[n:])
	}
	return list
}

func trimBlank(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n") }

// textValue returns text as a JSON string, without the newline that ends it: every result has one.
func textValue(text []byte) json.RawMessage {
	return appendString(nil, bytes.TrimSuffix(text, []byte("\n")))
}

// oneLine returns value without line breaks outside of strings.
func oneLine(value json.RawMessage) []byte {
	return bytes.TrimSuffix(item{data: value}.line(), []byte("\n"))
}

// surveyValues reads r to its end and counts its JSON values. If any of it is not JSON, it is text.
func surveyValues(r io.Reader, max int64) (count int, text bool, err error) {
	count, err = copyValues(r, max, "", io.Discard)
	var bad *notJSON
	if errors.As(err, &bad) {
		return 0, true, nil
	}
	return count, false, err
}

// copyValues writes the JSON values of r with sep between them and counts them.
func copyValues(r io.Reader, max int64, sep string, out io.Writer) (int, error) {
	s := newItems(r, max)
	s.mode = (*items).topValue
	for n := 0; ; n++ {
		it, err := s.next()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if n > 0 {
			it.data = append([]byte(sep), it.data...)
		}
		if _, err := out.Write(it.data); err != nil {
			return n, err
		}
	}
}

// topValue reads one of the JSON values that follow each other, and nothing else.
func (s *items) topValue() (item, error) {
	if _, err := s.skipBlank(); err != nil {
		return item{}, err
	}
	return s.readValue()
}

// writeString writes what a spool holds as one JSON string, a piece at a time, without the newline that ends it.
func writeString(s *spool, out io.Writer) error {
	w := &textWriter{w: out}
	r := io.LimitReader(s.Reader(), s.size)
	buf := make([]byte, 32<<10)
	w.text(`"`)
	for left := s.size; left > 0; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), left)])
		if err != nil {
			return err
		}
		left -= int64(n)
		piece := buf[:n]
		if left == 0 {
			piece = bytes.TrimSuffix(piece, []byte("\n"))
		}
		escaped := appendString(nil, piece)
		w.Write(escaped[1 : len(escaped)-1])
	}
	w.text(`"`)
	return w.err
}

// size writes a number of bytes for people.
func size(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
