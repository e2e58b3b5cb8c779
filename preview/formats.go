package preview

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// textFormats are the known formats of text, by their beginning, each with a hint. The first match wins.
var textFormats = []struct {
	name, hint string
	begin      func() *regexp.Regexp
}{
	{"HTML", noJQ, lazy.Regexp(`(?i)^(?:<!doctype html|<html|<head|<body|<div|<table|<p>|<ul>)`)},
	{"XML", noJQ, lazy.Regexp(`^(?:<\?xml[^>]*>|<!--[^>]*>|<[A-Za-z_][\w:.-]*(?:\s+[\w:.-]+\s*=\s*["'][^"']*["'])*\s*/?>)`)},
	{"Markdown table", "awk -F'|' takes the columns.", lazy.Regexp(`^\|[^\n]*\|[ \t\r]*\n\|[ \t:|-]*-[ \t:|-]*\|`)},
}

const noJQ = "jq cannot read it."

// textFormat returns the name of a text's format and a hint.
func textFormat(head []byte) (name, hint string) {
	begin := bytes.TrimLeft(head[:min(len(head), binaryHead)], " \t\r\n")
	for _, k := range textFormats {
		if k.begin().Match(begin) {
			return k.name, k.hint
		}
	}
	if isYAML(begin) {
		return "YAML", noJQ
	}
	return "TEXT", ""
}

var yamlLine = lazy.Regexp(`^(?:- )*(?:["']?[A-Za-z_][\w./ -]*["']?:(?: |$)|- |-$|#)`)

// isYAML wants the mark of a document, or keys at the beginning of most lines, of which two nest: they end with the
// colon or are indented.
func isYAML(b []byte) bool {
	if bytes.HasPrefix(b, []byte("---\n")) || bytes.HasPrefix(b, []byte("%YAML")) {
		return true
	}
	lines, fit, nests := 0, 0, 0
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, " \t\r\n")
		indented := bytes.TrimLeft(line, " ")
		if len(indented) == 0 {
			continue
		}
		if lines++; yamlLine().Match(indented) {
			fit++
			if indented[len(indented)-1] == ':' || len(indented) < len(line) && bytes.Contains(indented, []byte(": ")) {
				nests++
			}
		}
	}
	return lines >= 3 && 10*fit >= 9*lines && nests >= 2
}

// whyNotJSON explains the syntax error of data that begins like JSON.
func whyNotJSON(data []byte) string {
	begin := bytes.TrimLeft(data[:min(len(data), sniffBytes)], " \t\r\n")
	if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' {
		return ""
	}
	s := scanBytes(data)
	for {
		k, err := s.next()
		if e, ok := errors.AsType[*syntaxError](err); ok {
			return "Not JSON: " + e.explain() + "."
		}
		if k == tokEnd {
			return ""
		}
	}
}

// jsonMistakes name common mistakes in JSON by the end of the syntax error.
var jsonMistakes = []struct{ found, name string }{
	{"key must be a string, found '/'", "a comment"},
	{"value cannot begin with '/'", "a comment"},
	{"follow the value, found '/'", "a comment"},
	{"key must be a string, found '''", "single quotes, as Python prints them"},
	{"value cannot begin with '''", "single quotes, as Python prints them"},
	{"key must be a string, found '}'", "a comma too many"},
	{"value cannot begin with ']'", "a comma too many"},
	{"value cannot begin with 'T'", "True, as Python prints it"},
	{"value cannot begin with 'F'", "False, as Python prints it"},
	{"value cannot begin with 'N'", "None, as Python prints it"},
}

// explain names the mistake if it is a common one, and otherwise returns the error.
func (e *syntaxError) explain() string {
	for _, d := range jsonMistakes {
		if strings.HasSuffix(e.msg, d.found) {
			return fmt.Sprintf("line %d:%d: %s", e.line, e.col, d.name)
		}
	}
	return e.Error()
}

// base64Name names the format that base64 encodes, or returns "" if it is unknown.
func base64Name(b []byte) string {
	plain := make([]byte, base64.StdEncoding.DecodedLen(len(b)&^3))
	n, _ := base64.StdEncoding.Decode(plain, b[:len(b)&^3]) // bytes decoded before an error have no known beginning either
	if name := binaryName(plain[:n]); name != unknownFormat {
		return name
	}
	return ""
}

// textInBase64 names the format of a text that is only base64, if it is known.
func textInBase64(head []byte) string {
	text := bytes.Join(bytes.Fields(head), nil)
	if whole := len(text) &^ 3; isBase64(text[:whole], int64(whole)) {
		return base64Name(text)
	}
	return ""
}

// magics are the first bytes of binary formats.
var magics = []struct{ magic, name string }{
	{"\x1f\x8b", "gzip"},
	{"PK\x03\x04", "zip"},
	{"PK\x05\x06", "zip"},
	{"%PDF-", "PDF"},
	{"\x89PNG\r\n\x1a\n", "PNG image"},
	{"\xff\xd8\xff", "JPEG image"},
	{"GIF87a", "GIF image"},
	{"GIF89a", "GIF image"},
	{"BZh", "bzip2"},
	{"\xfd7zXZ\x00", "xz"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\x7fELF", "ELF program"},
	{"SQLite format 3\x00", "SQLite database"},
	{"\x00asm", "WebAssembly"},
}

const unknownFormat = "unknown format"

const binaryHead = 8 << 10 // bytes searched for NUL

// binaryName names the format of binary data, "" for text. Data with the magic BZh must also hold other bytes than ASCII.
func binaryName(head []byte) string {
	part := head[:min(len(head), binaryHead)]
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) && (m.magic[0] != 'B' || !isPlain(part)) {
			return m.name
		}
	}
	if bytes.IndexByte(part, 0) >= 0 {
		return unknownFormat
	}
	return ""
}

// isPlain reports whether b is printable ASCII and tabs.
func isPlain(b []byte) bool {
	for _, c := range b {
		if (c < ' ' && c != '\t') || c > '~' {
			return false
		}
	}
	return true
}

// utf16Encoding returns the encoding of UTF-16 data, which has a byte order mark or ASCII characters with zeros between
// them, and nil for other data. Its decoder makes U+FFFD of half a surrogate pair and of half a character at the end.
func utf16Encoding(head []byte) encoding.Encoding {
	little, big := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	if len(head) < 4 {
		return nil
	}
	switch [2]byte(head) {
	case [2]byte{0xff, 0xfe}:
		return little
	case [2]byte{0xfe, 0xff}:
		return big
	}
	var zeros [2]int
	part := head[:min(len(head), 200)&^1]
	for i, b := range part {
		if b == 0 {
			zeros[i%2]++
		} else if b >= utf8.RuneSelf {
			return nil
		}
	}
	switch zeros {
	case [2]int{0, len(part) / 2}:
		return little
	case [2]int{len(part) / 2, 0}:
		return big
	}
	return nil
}
