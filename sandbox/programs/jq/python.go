package jq

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// fromPython is the function frompy: what repr, print or pprint of Python writes for None, booleans, numbers, strings,
// lists, tuples and dicts becomes JSON. As in Python's json module a tuple is an array, and keys that are numbers,
// booleans or None become strings; nan and inf are null. Whatever else Python prints is an error that says where it stands.
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
	case '\'', '"':
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
	case (next == "'" || next == `"`) && strings.EqualFold(word, "u"):
		return p.strings()
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

// strings reads one string, or several that stand side by side and are one.
func (p *pythonReader) strings() any {
	var out []byte
	for {
		switch c := p.peek(); {
		case c == '\'' || c == '"':
			p.pos++
			if out = p.string(out, c); p.failed != nil {
				return nil
			}
		case (c == 'u' || c == 'U') && len(p.text) > p.pos+1 && strings.IndexByte(`'"`, p.text[p.pos+1]) >= 0:
			p.pos++
		default:
			return string(validUTF8(out))
		}
	}
}

// string appends what stands up to the quote.
func (p *pythonReader) string(out []byte, quote byte) []byte {
	begin := p.pos - 1
	for {
		i := strings.IndexAny(p.text[p.pos:], "\\\n"+string(rune(quote)))
		if i < 0 || p.text[p.pos+i] == '\n' {
			p.fail(begin, "the quote that begins a string is not closed on its line")
			return nil
		}
		out = append(out, p.text[p.pos:p.pos+i]...)
		p.pos += i + 1
		if p.text[p.pos-1] == quote {
			return out
		}
		if out = p.escape(out); p.failed != nil {
			return nil
		}
	}
}

var pythonEscapes = map[byte]string{
	'\\': `\`, '\'': `'`, '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// escape appends what the escape means whose backslash stands before pos.
func (p *pythonReader) escape(out []byte) []byte {
	if p.pos == len(p.text) {
		p.fail(p.pos-1, "the text ends inside of a string")
		return nil
	}
	at, c := p.pos-1, p.text[p.pos]
	p.pos++
	if text, ok := pythonEscapes[c]; ok {
		return append(out, text...)
	}
	switch {
	case '0' <= c && c <= '7':
		p.pos--
		return utf8.AppendRune(out, p.digits(at, 1, 3, 8))
	case c == 'x':
		return utf8.AppendRune(out, p.digits(at, 2, 2, 16))
	case c == 'u':
		return utf8.AppendRune(out, p.utf16(at))
	case c == 'U':
		return utf8.AppendRune(out, p.digits(at, 8, 8, 16))
	case c == 'N':
		p.fail(at, "the escape \\N is not known here")
	}
	return append(out, '\\', c)
}

// utf16 reads the digits of \u. Two of them that are a surrogate pair are one character, as in JSON.
func (p *pythonReader) utf16(at int) rune {
	r, next := p.digits(at, 4, 4, 16), p.pos
	if utf16.IsSurrogate(r) && strings.HasPrefix(p.text[next:], `\u`) {
		p.pos += 2
		if pair := utf16.DecodeRune(r, p.digits(next, 4, 4, 16)); pair != unicode.ReplacementChar {
			return pair
		}
		p.pos = next // the second one stands for itself
	}
	return r
}

// digits reads the digits of an escape that begins at at.
func (p *pythonReader) digits(at, least, most, base int) rune {
	n := 0
	for n < most && p.pos+n < len(p.text) && isDigit(p.text[p.pos+n], base) {
		n++
	}
	code, err := strconv.ParseUint(p.text[p.pos:p.pos+n], base, 32)
	if n < least || err != nil || code > 0x10ffff {
		p.fail(at, "an unknown escape "+strconv.Quote(p.text[at:p.pos+n]))
		return 0
	}
	p.pos += n
	return rune(code)
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(rune(c)), base, 8)
	return err == nil
}
