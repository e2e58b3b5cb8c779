package jq

import (
	"fmt"
	"io"
	"strings"
)

// A csvReader reads records as RFC 4180 has them, and keeps every byte of a quoted field. Lines end with LF or CR LF.
// encoding/csv reads the same records, but makes LF of each CR LF within quotes.
type csvReader struct {
	text      string
	pos       int
	separator rune
	lazy      bool // a quote may stand anywhere in a field, as files with tabs have it
}

// record returns the fields of the next line that is not blank, io.EOF behind the last one.
func (r *csvReader) record() (fields []string, err error) {
	for width := r.lineEnd(); width > 0; width = r.lineEnd() {
		r.pos += width
	}
	if r.pos == len(r.text) {
		return nil, io.EOF
	}
	for {
		field, err := r.field()
		if err != nil {
			return nil, err
		}
		fields = append(fields, field)
		if !r.separated() {
			r.pos += r.lineEnd()
			return fields, nil
		}
		r.pos += len(string(r.separator))
	}
}

func (r *csvReader) separated() bool {
	return strings.HasPrefix(r.text[r.pos:], string(r.separator))
}

// lineEnd returns the length of the line end at pos, 0 if there is none. A last CR counts as one.
func (r *csvReader) lineEnd() int {
	switch rest := r.text[r.pos:]; {
	case strings.HasPrefix(rest, "\n"), rest == "\r":
		return 1
	case strings.HasPrefix(rest, "\r\n"):
		return 2
	}
	return 0
}

func (r *csvReader) field() (string, error) {
	if strings.HasPrefix(r.text[r.pos:], `"`) {
		return r.quoted()
	}
	begin := r.pos
	field := r.text[begin:]
	if end := strings.IndexAny(field, string(r.separator)+"\n"); end >= 0 {
		field = field[:end]
	}
	if rest := r.text[begin+len(field):]; rest == "" || rest[0] == '\n' {
		field = strings.TrimSuffix(field, "\r")
	}
	if i := strings.IndexByte(field, '"'); i >= 0 && !r.lazy {
		return "", r.mistake(begin+i, `a quote within a field that does not begin with one; write "" for it and quote the field`)
	}
	r.pos += len(field)
	return field, nil
}

func (r *csvReader) quoted() (string, error) {
	var field strings.Builder
	begin := r.pos
	r.pos++
	for {
		i := strings.IndexByte(r.text[r.pos:], '"')
		if i < 0 {
			if !r.lazy {
				return "", r.mistake(begin, "the quote that begins a field is never closed")
			}
			field.WriteString(r.text[r.pos:])
			r.pos = len(r.text)
			return field.String(), nil
		}
		field.WriteString(r.text[r.pos : r.pos+i])
		r.pos += i + 1
		switch {
		case strings.HasPrefix(r.text[r.pos:], `"`):
			r.pos++
		case r.separated() || r.pos == len(r.text) || r.lineEnd() > 0:
			return field.String(), nil
		case !r.lazy:
			return "", r.mistake(r.pos, `text behind the quote that ends a field; write "" for a quote within it`)
		}
		field.WriteByte('"')
	}
}

// mistake says where a text is no CSV: its line and column, counted from 1, the column in bytes.
func (r *csvReader) mistake(at int, msg string) error {
	line := 1 + strings.Count(r.text[:at], "\n")
	return fmt.Errorf("line %d, column %d: %s", line, at-strings.LastIndexByte(r.text[:at], '\n'), msg)
}
