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

var (
	// awkLexer matches the next token: blanks, a string or number, a name, or an operator or other character.
	awkLexer = lazy.Regexp(`^(?:((?:[ \t\r]|\\\r?\n|#[^\n]*)+)|` +
		`("(?:[^"\\\n]|\\(?s:.))*"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)|` +
		`([A-Za-z_][A-Za-z0-9_]*)|` +
		`(\*\*=|\|&|&&|\|\||\+\+|--|\*\*|[-+*%^=!<>]=|>>|!~|::|(?s:.)))`)

	// awkRegexp matches a regular expression. In brackets a / and a [ are themselves. Behind [ a ":", "." or "=" begins
	// what not everybody reads alike, so that only classes match there.
	awkRegexp = lazy.Regexp(`^/(?:[^/\\\n\[\]]|\\(?s:.)|\[\^?\]?(?:\[*(?:[^\]\\\n\[:.=]|\\(?s:.)|\[:[a-z]+:\])|[:.=])*\[*\])*/`)
)

// awkTokens splits a program into tokens as gawk does. It is whole unless there is something in it that could be read in
// two ways, or not at all: then there are only the tokens before.
func awkTokens(text string) (tokens []awkToken, whole bool) {
	var r awkReader
	for at := 0; at < len(text); {
		m := awkLexer().FindStringSubmatchIndex(text[at:])
		t := awkToken{text: text[at : at+m[1]], at: at}
		at += m[1]
		switch {
		case m[2] >= 0:
			continue
		case m[4] >= 0:
			t.kind = awkValue
		case m[6] >= 0 && slices.Contains(awkKeywords, t.text):
			t.kind = awkWord
		case m[6] >= 0:
			t.kind = awkName
		case t.text == "/":
			divides, known := r.divides(strings.HasPrefix(text[at:], "="))
			if t.kind = "/"; known && !divides {
				t.kind, t.text = awkValue, awkRegexp().FindString(text[t.at:])
				at = t.at + len(t.text)
			}
			if !known || t.text == "" {
				return r.tokens, false
			}
		case t.text == `"`:
			return r.tokens, false
		default:
			t.kind = t.text
		}
		r.add(t)
	}
	return r.tokens, true
}

// An awkReader knows of the tokens so far what decides whether a / divides.
type awkReader struct {
	tokens []awkToken
	parens []bool // those that are open; true: of the condition of a statement
	ended  bool   // whether the last ) has ended such a condition
	gets   bool   // whether the statement that is being read has a getline
}

func (r *awkReader) last() (t awkToken) {
	if n := len(r.tokens); n > 0 {
		t = r.tokens[n-1]
	}
	return t
}

func (r *awkReader) add(t awkToken) {
	switch n := len(r.parens); t.text {
	case "(":
		r.parens = append(r.parens, slices.Contains([]string{"if", "while", "for", "switch"}, r.last().text))
	case ")":
		if n > 0 {
			r.ended, r.parens = r.parens[n-1], r.parens[:n-1]
		}
	case "getline":
		r.gets = true
	case ";", "{", "}", "\n":
		r.gets = false
	}
	r.tokens = append(r.tokens, t)
}

// divides reports whether a / at this place divides, rather than beginning a regular expression. Behind getline, and
// where there is nothing that a /= could change, only gawk's grammar knows.
func (r *awkReader) divides(changes bool) (divides, known bool) {
	switch last := r.last(); last.kind {
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
