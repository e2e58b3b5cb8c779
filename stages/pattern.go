package stages

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of retry_on.
const (
	maxPattern      = 1000    // bytes
	maxInstructions = 1000    // of the compiled program
	maxMatched      = 4 << 10 // bytes of an error's message that it is matched against
)

// pattern compiles retry_on. Empty: nil.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	wrong := func(format string, args ...any) error {
		return fielded("retry_on", Errorf(InvalidPipeline, `write a regular expression as RE2 takes it, such as "(?i)rate limit|timed? out|^5\\d\\d"`, format, args...))
	}
	if len(text) > maxPattern {
		return nil, wrong("retry_on has %d bytes, more than %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	var bad *syntax.Error
	switch {
	case errors.As(err, &bad):
		return nil, wrong("retry_on is not a regular expression: %s at character %d: %s", bad.Code, mistakeAt(text, bad), texts.Quote(bad.Expr))
	case err != nil:
		return nil, err
	}
	if instructions(parsed, maxInstructions) > maxInstructions {
		return nil, fielded("retry_on", Errorf(InvalidPipeline, "write fewer repetitions: those within others multiply, .* has no number",
			"retry_on compiles to more than %d instructions", maxInstructions))
	}
	return regexp.Compile(text)
}

// instructions returns how many instructions a pattern is compiled to, or a few more; any number above limit if
// they are more than limit. It counts them in the parsed pattern: compiling ((a{30}){30}){30} takes the memory that is to be saved.
func instructions(re *syntax.Regexp, limit int) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpConcat:
		n = 0
	case syntax.OpAlternate:
		n = len(re.Sub) - 1
	case syntax.OpCapture, syntax.OpStar:
		n = 2
	}
	for _, sub := range re.Sub {
		if n += instructions(sub, limit); n > limit {
			return n
		}
	}
	switch {
	case re.Op != syntax.OpRepeat:
		return n
	case re.Max < 0: // the last one is a loop
		n++
	}
	return n * max(re.Min, re.Max, 1)
}

// mistakeAt returns which character of a pattern a mistake begins at, counted from 1.
func mistakeAt(text string, bad *syntax.Error) int {
	at := max(0, strings.Index(text, bad.Expr))
	if bad.Expr == text {
		at = oddParenthesis(text)
	}
	return utf8.RuneCountInString(text[:at]) + 1
}

// oddParenthesis returns the offset of a parenthesis that has no other, or 0: the mistakes for which the regexp
// package names the whole pattern.
func oddParenthesis(text string) int {
	var open []int
	class := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) == 0:
			return i
		case c == ')':
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return 0
}
