package programs

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// Kinds of tokens of an awk program; the others are their own text.
const (
	awkValue = "value" // a number, a string or a regular expression
	awkName  = "name"
	awkWord  = "word" // a keyword
)

type awkToken struct {
	kind, text string
	at         int // where it begins
}

// awkKeywords are the words of the language: behind each a value may begin.
var awkKeywords = strings.Fields(`BEGIN BEGINFILE END ENDFILE break case continue default delete do else exit for func function
	getline if in next nextfile print printf return switch while`)

// awkLong are the tokens of more than one character, longer ones first.
var awkLong = strings.Fields(`**= |& || && ++ -- ** += -= *= %= ^= == != <= >= >> !~ ::`)

var (
	awkNumber = lazy.Regexp(`^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)
	awkIdent  = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*`)
)

// An awkReader splits a program into tokens as gawk does.
type awkReader struct {
	text   string
	at     int
	tokens []awkToken
	parens []bool // those that are open; true: of the condition of a statement
	ended  bool   // whether the last ) has ended such a condition
	gets   bool   // whether the statement that is being read has a getline
}

// awkTokens splits a program into tokens. It is whole unless there is something in it that could be read in two ways, or
// not at all: then there are only the tokens before.
func awkTokens(text string) (tokens []awkToken, whole bool) {
	r := &awkReader{text: text}
	for {
		r.blank()
		if r.at >= len(text) {
			return r.tokens, true
		}
		kind, n := r.token(text[r.at:])
		if n == 0 {
			return r.tokens, false
		}
		r.paren(kind)
		switch token := text[r.at : r.at+n]; {
		case token == "getline":
			r.gets = true
		case kind == ";" || kind == "{" || kind == "}" || kind == "\n":
			r.gets = false
		}
		r.tokens = append(r.tokens, awkToken{kind, text[r.at : r.at+n], r.at})
		r.at += n
	}
}

// blank passes over what separates tokens.
func (r *awkReader) blank() {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		switch {
		case strings.IndexByte(" \t\r", rest[0]) >= 0:
			r.at++
		case strings.HasPrefix(rest, "\\\n"):
			r.at += 2
		case strings.HasPrefix(rest, "\\\r\n"):
			r.at += 3
		case rest[0] == '#':
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				r.at += n
			} else {
				r.at = len(r.text)
			}
		default:
			return
		}
	}
}

// token returns the token that rest begins with, and its length, 0 if that is not known.
func (r *awkReader) token(rest string) (kind string, n int) {
	switch {
	case rest[0] == '"':
		return awkValue, awkString(rest)
	case rest[0] == '/':
		divides, known := r.divides()
		if !known {
			return "", 0
		}
		if !divides {
			return awkValue, awkRegexp(rest)
		}
		return "/", 1
	case awkNumber().MatchString(rest):
		return awkValue, len(awkNumber().FindString(rest))
	case awkIdent().MatchString(rest):
		word := awkIdent().FindString(rest)
		if slices.Contains(awkKeywords, word) {
			return awkWord, len(word)
		}
		return awkName, len(word)
	}
	for _, long := range awkLong {
		if strings.HasPrefix(rest, long) {
			return long, len(long)
		}
	}
	return rest[:1], 1
}

// divides reports whether a / at this place divides, rather than beginning a regular expression. Behind getline, and
// where there is nothing that a /= could change, only gawk's grammar knows.
func (r *awkReader) divides() (divides, known bool) {
	if len(r.tokens) == 0 {
		return false, true
	}
	last := r.tokens[len(r.tokens)-1]
	changes := strings.HasPrefix(r.text[r.at:], "/=")
	switch last.kind {
	case awkName:
		divides, known = true, !changes || !slices.Contains(awkFunctions, last.text)
	case "]":
		divides, known = true, true
	case awkValue, "++", "--":
		divides, known = true, !changes
	case ")":
		divides, known = !r.ended, r.ended || !changes
	default:
		known = true
	}
	return divides, known && !r.gets
}

// paren keeps count of parentheses.
func (r *awkReader) paren(kind string) {
	switch n := len(r.parens); {
	case kind == "(":
		before := ""
		if len(r.tokens) > 0 {
			before = r.tokens[len(r.tokens)-1].text
		}
		r.parens = append(r.parens, slices.Contains([]string{"if", "while", "for", "switch"}, before))
	case kind == ")" && n > 0:
		r.ended, r.parens = r.parens[n-1], r.parens[:n-1]
	}
}

// awkString returns how long the string is that text begins with, 0 if it does not end.
func awkString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return 0
		case '"':
			return i + 1
		}
	}
	return 0
}

var awkClass = lazy.Regexp(`^\[:[a-z]+:\]`)

// awkRegexp returns how long the regular expression is that text begins with. A / in brackets is itself. It returns 0 if
// there is no end, or brackets in brackets that not everybody counts alike.
func awkRegexp(text string) int {
	bracket := 0 // where the list of characters begins; 0: this is none
	for i := 1; i < len(text); i++ {
		c := text[i]
		first := bracket > 0 && (i == bracket+1 || i == bracket+2 && text[i-1] == '^')
		switch {
		case c == '\\':
			i++
		case c == '\n' || c == ']' && bracket == 0:
			return 0
		case c == '[' && bracket == 0:
			bracket = i
		case c == '[' && i+1 < len(text) && strings.IndexByte(":.=", text[i+1]) >= 0:
			class := awkClass().FindString(text[i:])
			if class == "" {
				return 0
			}
			i += len(class) - 1
		case c == ']' && !first:
			bracket = 0
		case c == '/' && bracket == 0:
			return i + 1
		}
	}
	return 0
}
