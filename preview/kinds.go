package preview

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// textKinds are the formats of text that are named, each with what is to be known of it. The first that fits is it.
var textKinds = []struct {
	name, hint string
	is         func(head []byte) bool
}{
	{"HTML", "jq cannot read it.", isHTML},
	{"XML", "jq cannot read it.", isXML},
	{"Markdown table", "awk -F'|' takes the columns.", isMarkdownTable},
	{"YAML", "jq cannot read it.", isYAML},
}

// textKind names the format of a text and says what is to be known of it.
func textKind(head []byte) (name, hint string) {
	begin := bytes.TrimLeft(head[:min(len(head), binaryHead)], " \t\r\n")
	for _, k := range textKinds {
		if k.is(begin) {
			return k.name, k.hint
		}
	}
	return "TEXT", ""
}

var htmlBegin = lazy.Regexp(`(?i)^(?:<!doctype html|<html|<head|<body|<div|<table|<p>|<ul>)`)

func isHTML(b []byte) bool { return htmlBegin().Match(b) }

var xmlBegin = lazy.Regexp(`^(?:<\?xml|<!--|<[A-Za-z_][\w:.-]*(?:\s+[\w:.-]+\s*=\s*["'][^"']*["'])*\s*/?>)`)

func isXML(b []byte) bool { return xmlBegin().Match(b) && bytes.Contains(b, []byte(">")) }

var markdownRule = lazy.Regexp(`^\|[^\n]*\|[ \t\r]*\n\|[ \t:|-]*-[ \t:|-]*\|`)

func isMarkdownTable(b []byte) bool { return markdownRule().Match(b) }

var yamlLine = lazy.Regexp(`^(?:- )*(?:["']?[A-Za-z_][\w./ -]*["']?:(?: |$)|- |-$|#)`)

// isYAML wants keys at the beginning of most lines, two of which end with the colon or are items of lists, or the mark
// of a document.
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

// whyNotJSON says what is wrong with data that begins as JSON would.
func whyNotJSON(data []byte) string {
	begin := bytes.TrimLeft(data[:min(len(data), sniffBytes)], " \t\r\n")
	if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' {
		return ""
	}
	s := newScanner(bytes.NewReader(data))
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

// dialects are what people write who mean JSON, by the character that is not understood.
var dialects = []struct{ found, name string }{
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

// explain is the error in words that say what was meant, if that is known.
func (e *syntaxError) explain() string {
	for _, d := range dialects {
		if strings.HasSuffix(e.msg, d.found) {
			return fmt.Sprintf("line %d:%d: %s", e.line, e.col, d.name)
		}
	}
	return e.Error()
}

const minBase64 = 64 // bytes from which on a text may be taken for base64

// isBase64 reports whether a string, of which b may be only the beginning, looks like base64 rather than like a word.
func isBase64(b []byte, size int64) bool {
	if size < minBase64 || size%4 != 0 || len(b) == 0 {
		return false
	}
	var lower, upper, digit bool
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z':
			lower = true
		case 'A' <= c && c <= 'Z':
			upper = true
		case '0' <= c && c <= '9':
			digit = true
		case c == '+' || c == '/':
		case c == '=' && int64(i) >= size-2:
		default:
			return false
		}
	}
	return lower && upper && digit
}

// base64Name names what base64 holds, empty if that is not known.
func base64Name(b []byte) string {
	plain := make([]byte, base64.StdEncoding.DecodedLen(len(b)&^3))
	n, _ := base64.StdEncoding.Decode(plain, b[:len(b)&^3]) // what is not base64 has no known beginning
	if name := binaryName(plain[:n]); name != unknownFormat {
		return name
	}
	return ""
}

// describeBase64 recognizes a text that is base64 and nothing else.
func describeBase64(head []byte, in *source) (description, bool) {
	text := bytes.Join(bytes.Fields(head), nil)
	name := ""
	if len(text) >= minBase64 && isBase64(text[:len(text)&^3], int64(len(text)&^3)) {
		name = base64Name(text)
	}
	if name == "" {
		return description{}, false
	}
	return description{
		summary: "base64 (" + name + ")",
		header:  fmt.Sprintf("BASE64 (%s), %s.", name, in.size()),
		notes:   []string{"Text filters cannot read it."},
	}, true
}
