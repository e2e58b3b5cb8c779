package preview

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	scanBuffer = 64 << 10 // bytes of one read
	maxToken   = 256      // bytes of a token that are looked at as a name or value; those that matter are shorter
	maxWhole   = 64 << 10 // bytes of the longest string that is looked at as a text or document
)

// kind is one of jq's types, or another token.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray // [
	kindObject
	numKinds
	tokKey
	tokClose // ] or }
	tokEnd   // end of the data, after a document
)

// token is the last token read. Its text is valid until the next call of next.
type token struct {
	text    []byte // a word, a number, or a string without quotes and escapes, at most maxWhole bytes
	size    int64  // length of the whole text
	last    byte   // last byte of the whole text
	escaped bool   // a string with \ in it
	float   bool   // a number with fraction or exponent
	odd     [numOddities]bool
}

// oddities are what other readers of JSON may refuse or change.
const (
	oddNumber    = iota // NaN or Infinity
	oddControl          // a string with raw control characters
	oddInvalid          // a string that is not valid UTF-8
	oddSurrogate        // a string with half a surrogate pair
	numOddities
)

// begin is the beginning of the text that is looked at as a name or value.
func (t *token) begin() []byte { return cutRunes(t.text, maxToken) }

// cut reports whether begin is not the whole text.
func (t *token) cut() bool { return t.size > maxToken }

// scanState selects the tokens that the grammar allows next.
type scanState uint8

const (
	stTop      scanState = iota // a document, or the end
	stFirst                     // after [: a value or ]
	stFirstKey                  // after {: a key or }
	stColon                     // after a key
	stNext                      // after a value inside a container
)

// syntaxError is the place where the data stops being JSON. Lines and columns count from 1, columns in bytes.
type syntaxError struct {
	line, col int64
	depth     int
	msg       string
	end       bool // the data ended inside a document
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d:%d: %s", e.line, e.col, e.msg) }

// scanner reads a stream of JSON documents (RFC 8259) token by token. NaN, Infinity and raw control characters are the
// only other things that it accepts. Its memory does not grow with the size of tokens; each level of nesting takes one bit.
type scanner struct {
	src  *bufio.Reader
	buf  []byte // what src has in memory; unread bytes are buf[r:]
	r    int
	tail int   // the end of what is read of the token, in buf
	base int64 // offset of buf[0] in the data
	eof  bool  // the rest is in buf
	err  error // a read error

	line    int64
	lineOff int64 // offset of the line's first byte

	tok     token
	spill   []byte // beginning of a token that does not lie in buf as it is, at most maxWhole bytes
	state   scanState
	depth   int
	deepest int      // the largest depth so far
	stack   []uint64 // a bit per open container, 1 is an object
	seq     bool     // documents have record separators before them (RFC 7464)
}

func newScanner(src io.Reader) *scanner {
	return &scanner{src: bufio.NewReaderSize(src, scanBuffer), line: 1}
}

// scanBytes returns a scanner of data, which it does not change.
func scanBytes(data []byte) *scanner {
	return &scanner{buf: data, eof: true, line: 1}
}

// next reads one token. Its error is a *syntaxError or the reader's error. After a syntax error, only resync can continue.
func (s *scanner) next() (kind, error) {
	s.tok, s.spill = token{}, s.spill[:0]
	c, ok := s.peek()
	if !ok {
		return s.end()
	}
	switch s.state {
	case stColon:
		if c != ':' {
			return s.fail("a colon must follow the key, found %s")
		}
		s.r++
		if c, ok = s.peek(); !ok {
			return s.end()
		}
	case stNext:
		object := s.inObject()
		if object && c == '}' || !object && c == ']' {
			return s.close()
		}
		if c != ',' {
			return s.fail("a comma or the end of the container must follow the value, found %s")
		}
		s.r++
		if c, ok = s.peek(); !ok {
			return s.end()
		}
		if object {
			return s.key(c)
		}
	case stFirst:
		if c == ']' {
			return s.close()
		}
	case stFirstKey:
		if c == '}' {
			return s.close()
		}
		return s.key(c)
	}
	return s.value(c)
}

// document reads the tokens of one document and gives them to use. It returns the line on which the document begins and
// the number of its tokens, which is 0 at the end of the data.
func (s *scanner) document(use func(kind)) (began int64, tokens int, err error) {
	for {
		k, err := s.next()
		if tokens == 0 {
			began = s.line
		}
		if err != nil || k == tokEnd {
			return began, tokens, err
		}
		tokens++
		use(k)
		if s.depth == 0 {
			return began, tokens, nil
		}
	}
}

// offset is the position of the next unread byte.
func (s *scanner) offset() int64 { return s.base + int64(s.r) }

func (s *scanner) value(c byte) (kind, error) {
	switch c {
	case '"':
		if err := s.str(); err != nil {
			return tokEnd, err
		}
		return s.done(kindString)
	case '{':
		return s.open(kindObject)
	case '[':
		return s.open(kindArray)
	case 't':
		return s.literal("true", kindBool)
	case 'f':
		return s.literal("false", kindBool)
	case 'n':
		return s.literal("null", kindNull)
	}
	if '0' <= c && c <= '9' {
		return s.number()
	}
	s.ensure(2)
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(s.buf[s.r:], []byte(word[:2])) {
			s.tok.float, s.tok.odd[oddNumber] = true, true
			return s.literal(word, kindNumber)
		}
	}
	if c == '-' {
		return s.number()
	}
	return s.fail("a value cannot begin with %s")
}

func (s *scanner) key(c byte) (kind, error) {
	if c != '"' {
		return s.fail("a key must be a string, found %s")
	}
	if err := s.str(); err != nil {
		return tokEnd, err
	}
	s.state = stColon
	return tokKey, nil
}

func (s *scanner) open(k kind) (kind, error) {
	s.r++
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.stack) {
		s.stack = append(s.stack, 0)
	}
	s.stack[word] &^= bit
	s.state = stFirst
	if k == kindObject {
		s.stack[word] |= bit
		s.state = stFirstKey
	}
	s.depth++
	s.deepest = max(s.deepest, s.depth)
	return k, nil
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.stack[d/64]>>(d%64)&1 == 1
}

func (s *scanner) close() (kind, error) {
	s.r++
	s.depth--
	return s.done(tokClose)
}

// done completes a value.
func (s *scanner) done(k kind) (kind, error) {
	s.state = stNext
	if s.depth == 0 {
		s.state = stTop
	}
	return k, nil
}

func (s *scanner) literal(word string, k kind) (kind, error) {
	s.ensure(len(word) + 1)
	n := min(len(word), len(s.buf)-s.r)
	for i := range n {
		if s.buf[s.r+i] != word[i] {
			s.r += i
			return s.fail("the word " + word + " was expected, found %s")
		}
	}
	s.r += n
	if n < len(word) {
		return tokEnd, s.truncated("the data ends inside the word " + word)
	}
	if s.r < len(s.buf) && isLetter(s.buf[s.r]) {
		return s.fail("the word " + word + " goes on with %s")
	}
	s.tok.text = s.buf[s.r-n : s.r]
	return s.done(k)
}

func isLetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '+' || c == '.'
}

// peek is a fast skipSpace for the usual case without space.
func (s *scanner) peek() (byte, bool) {
	if s.r < len(s.buf) && s.buf[s.r] > 0x1f && s.buf[s.r] != ' ' {
		return s.buf[s.r], true
	}
	return s.skipSpace()
}

// skipSpace moves to the next byte that is not white space and returns it.
func (s *scanner) skipSpace() (byte, bool) {
	for {
		for s.r < len(s.buf) {
			switch c := s.buf[s.r]; c {
			case ' ', '\t', '\r':
			case '\n':
				s.line++
				s.lineOff = s.offset() + 1
			default:
				if c != 0x1e || !s.seq || s.state != stTop {
					return c, true
				}
			}
			s.r++
		}
		if !s.fill() {
			return 0, false
		}
	}
}

// fill reads more, unless all data has been read. It reports whether it read a byte.
func (s *scanner) fill() bool {
	if s.eof {
		return false
	}
	unread := len(s.buf) - s.r
	s.base += int64(s.r)
	_, _ = s.src.Discard(s.r) // it is in memory
	_, err := s.src.Peek(unread + 1)
	s.buf, _ = s.src.Peek(s.src.Buffered())
	s.r, s.eof = 0, err != nil
	if err != io.EOF {
		s.err = err
	}
	return len(s.buf) > unread
}

// ensure makes n bytes available from r on, if the data has so many.
func (s *scanner) ensure(n int) {
	for len(s.buf)-s.r < n && s.fill() {
	}
}

// end handles the end of the data, which is an error inside a document.
func (s *scanner) end() (kind, error) {
	if s.err == nil && s.state == stTop {
		return tokEnd, nil
	}
	return tokEnd, s.truncated("the data ends inside a document")
}

// truncated returns the error for data that ends too early.
func (s *scanner) truncated(msg string) error {
	if s.err != nil {
		return s.err
	}
	e := s.errorAt(msg)
	e.end = true
	return e
}

func (s *scanner) errorAt(msg string) *syntaxError {
	return &syntaxError{line: s.line, col: s.offset() - s.lineOff + 1, depth: s.depth, msg: msg}
}

// fail returns a syntax error about the byte at r; format has one %s for it.
func (s *scanner) fail(format string) (kind, error) {
	s.ensure(utf8.UTFMax)
	if s.r >= len(s.buf) {
		return tokEnd, s.truncated("the data ends inside a document")
	}
	return tokEnd, s.errorAt(fmt.Sprintf(format, byteText(s.buf[s.r:])))
}

func byteText(b []byte) string {
	r, _ := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return fmt.Sprintf("byte 0x%02x", b[0])
	}
	if !printable(r) {
		return fmt.Sprintf("U+%04X", r)
	}
	return "'" + string(r) + "'"
}

// resync drops the current document and the rest of the line. It reports whether there is a next line.
func (s *scanner) resync() bool {
	s.depth, s.state = 0, stTop
	for {
		if n := bytes.IndexByte(s.buf[s.r:], '\n'); n >= 0 {
			s.r += n + 1
			s.line++
			s.lineOff = s.offset()
			return true
		}
		s.r = len(s.buf)
		if !s.fill() {
			return false
		}
	}
}
