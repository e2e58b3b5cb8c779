package jq

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// fromPython is the function frompy: what repr, print or pprint of Python writes for None, booleans, numbers, strings,
// lists, tuples and dicts becomes JSON. As in Python's json module a tuple is an array, and keys that are numbers,
// booleans or None become strings; nan and inf are null. Anything else that Python prints is an error with its place.
func fromPython(v any, _ []any) any {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("frompy needs a string, what Python printed (use jq -R for a value on each line, jq -R -s for one value), but got: %s", texts.Cut(compact(v), maxShown))
	}
	p := &pythonReader{text: text}
	p.blanks()
	value := p.value(0)
	if p.blanks(); p.failed == nil && p.pos < len(text) {
		p.fail(p.pos, "there is more behind the value (jq -R frompy reads a value on each line)")
	}
	if p.failed != nil {
		return fmt.Errorf("frompy: %w", p.failed)
	}
	return value
}

// A pythonReader reads one value. After a mistake every method returns at once.
type pythonReader struct {
	text   string
	pos    int
	failed *SyntaxError
}

// fail keeps the first mistake.
func (p *pythonReader) fail(at int, msg string) any {
	if p.failed == nil {
		before := p.text[:at]
		p.failed = &SyntaxError{
			Msg: msg, Line: 1 + strings.Count(before, "\n"), Column: at - strings.LastIndexByte(before, '\n'), Near: near(p.text, at),
		}
		p.pos = len(p.text)
	}
	return nil
}

func (p *pythonReader) blanks() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n\f", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// peek returns the next byte that is not blank, 0 at the end.
func (p *pythonReader) peek() byte {
	p.blanks()
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *pythonReader) accept(c byte) bool {
	if p.peek() != c || p.pos == len(p.text) {
		return false
	}
	p.pos++
	return true
}

// value reads a value; depth is the number of lists, tuples and dicts around it.
func (p *pythonReader) value(depth int) any {
	if depth > maxDepth {
		return p.fail(p.pos, fmt.Sprintf("more than %d lists, tuples and dicts inside of one another", maxDepth))
	}
	switch p.peek() {
	case 0:
		return p.fail(p.pos, "the text ends where a value is expected")
	case '[':
		p.pos++
		list, _ := p.list(']', depth+1)
		return list
	case '(':
		p.pos++
		list, commas := p.list(')', depth+1)
		if len(list) == 1 && commas == 0 {
			return list[0] // parentheses around a long string, as pprint has them
		}
		return list
	case '{':
		return p.dict(depth + 1)
	}
	if strings.IndexByte(`'"`, p.text[p.pos]) >= 0 || pythonString().MatchString(p.text[p.pos:]) {
		return p.strings()
	}
	return p.word()
}

// list reads values up to the bracket that closes them, and says how many commas there are.
func (p *pythonReader) list(end byte, depth int) (list []any, commas int) {
	list = []any{}
	for !p.accept(end) {
		if len(list) > commas {
			p.fail(p.pos, fmt.Sprintf("expected a comma or %q", end))
		}
		v := p.value(depth)
		if p.failed != nil {
			return nil, 0
		}
		list = append(list, v)
		if p.accept(',') {
			commas++
		}
	}
	return list, commas
}

func (p *pythonReader) dict(depth int) any {
	begin := p.pos
	p.pos++
	members := map[string]any{}
	for more := true; !p.accept('}'); more = p.accept(',') {
		at := p.pos
		if !more {
			return p.fail(at, "expected a comma or '}'")
		}
		k := p.value(depth)
		if p.failed != nil {
			return nil
		}
		if c := p.peek(); len(members) == 0 && (c == ',' || c == '}') {
			return p.fail(begin, "a set has no JSON form (print list(…) of it)")
		}
		key, ok := pythonKey(k)
		if !ok {
			return p.fail(at, "a key that is neither a string, a number, a boolean nor None")
		}
		if _, twice := members[key]; twice {
			return p.fail(at, fmt.Sprintf("the key %q comes twice, written as JSON", texts.Cut(key, maxShown)))
		}
		if !p.accept(':') {
			return p.fail(p.pos, "expected a colon behind the key")
		}
		members[key] = p.value(depth)
		if p.failed != nil {
			return nil
		}
	}
	return members
}

// pythonKey is a key as Python's json module writes it.
func pythonKey(k any) (key string, ok bool) {
	switch k := k.(type) {
	case string:
		return k, true
	case nil, bool, int, *big.Int, json.Number:
		return compact(k), true
	}
	return "", false
}

var pythonName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// pythonWords are the words that stand for values.
var pythonWords = map[string]any{
	"None": nil, "True": true, "False": false,
	"nan": nil, "inf": nil, "-inf": nil, "-nan": nil,
}

// word reads a number or a name.
func (p *pythonReader) word() any {
	begin := p.pos
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n\f,:[](){}'\"<>", p.text[p.pos]) < 0 {
		p.pos++
	}
	word := p.text[begin:p.pos]
	next := ""
	if p.pos < len(p.text) {
		next = p.text[p.pos : p.pos+1]
	}
	if v, ok := pythonWords[word]; ok && next != "(" && next != "'" && next != `"` {
		return v
	}
	if number, ok := numberOf([]byte(word)); ok {
		return number
	}
	name := pythonName().MatchString(word)
	switch {
	case (next == "'" || next == `"`) && strings.EqualFold(word, "b"):
		return p.fail(begin, "bytes have no JSON form (print .decode() of them)")
	case word == "" && next == "<":
		return p.fail(begin, "an object has no JSON form (print its attributes as a dict)")
	case name && next == "(":
		return p.fail(begin, texts.Cut(word, maxShown)+"(…) has no JSON form (print str(…), list(…) or dict(…) of it)")
	case word == "...":
		return p.fail(begin, "... has no JSON form (something is left out)")
	case name:
		return p.fail(begin, fmt.Sprintf("%q is not a value (strings stand in quotes)", texts.Cut(word, maxShown)))
	case strings.HasSuffix(word, "j"):
		return p.fail(begin, "a complex number has no JSON form")
	}
	return p.fail(begin, "unexpected "+texts.Quote(word+next))
}

// pythonString matches a string, which ends on its line unless a backslash stands before the line end.
var pythonString = lazy.Regexp(`^[uU]?(?:'(?:[^'\\\n]|\\(?s:.))*'|"(?:[^"\\\n]|\\(?s:.))*")`)

// strings reads one string, or several that stand side by side and are one.
func (p *pythonReader) strings() any {
	var out strings.Builder
	for {
		c := p.peek()
		literal := pythonString().FindString(p.text[p.pos:])
		switch {
		case literal != "":
		case c == '\'' || c == '"':
			return p.fail(p.pos, "the quote that begins a string is not closed on its line")
		default:
			return out.String()
		}
		body := strings.TrimLeft(literal, "uU")
		p.pos += len(literal) - len(body) + 1
		text := p.asJSON(body[1 : len(body)-1])
		var piece string
		if p.failed != nil || json.Unmarshal([]byte(`"`+text+`"`), &piece) != nil {
			return nil
		}
		p.pos += len(body) - 1
		out.WriteString(piece)
	}
}

// pythonEscape matches what JSON writes otherwise, or might.
var pythonEscape = lazy.Regexp(`\\(?:x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|[0-7]{1,3}|(?s:.))|["\x00-\x1f]`)

// pythonEscapes are those of one character that JSON lacks, as JSON.
var pythonEscapes = map[byte]string{'\'': "'", 'a': `\u0007`, 'v': `\u000b`, '\n': ""}

// asJSON writes the inside of a string, which stands at pos, as that of a JSON string. A backslash before what needs none
// stands for itself.
func (p *pythonReader) asJSON(body string) string {
	var out strings.Builder
	last := 0
	for _, m := range pythonEscape().FindAllStringIndex(body, -1) {
		escape := body[m[0]:m[1]]
		kind := escape[min(len(escape)-1, 1)]
		digits, base := escape[min(len(escape), 2):], 16
		if '0' <= kind && kind <= '7' {
			digits, base = escape[1:], 8
		}
		code, err := strconv.ParseUint(digits, base, 32)
		switch simple, known := pythonEscapes[kind]; {
		case len(escape) == 1:
			escape = fmt.Sprintf(`\u%04x`, kind)
		case known:
			escape = simple
		case base == 8, kind == 'x' && len(escape) == len(`\xXX`), kind == 'u' && len(escape) == len(`\uXXXX`):
			escape = fmt.Sprintf(`\u%04x`, code)
		case kind == 'U' && len(escape) == len(`\UXXXXXXXX`) && err == nil && code <= unicode.MaxRune:
			escape = string(rune(code))
		case strings.IndexByte("xuUN", kind) >= 0:
			p.fail(p.pos+m[0], "an unknown escape "+strconv.Quote(escape))
			return ""
		case strings.IndexByte(`"\nrtbf`, kind) < 0:
			escape = `\` + escape
		}
		out.WriteString(body[last:m[0]])
		out.WriteString(escape)
		last = m[1]
	}
	return out.String() + body[last:]
}
