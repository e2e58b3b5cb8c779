package stages

import (
	"errors"
	"fmt"
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
		return nil, wrong("retry_on is not a regular expression: %s%s: %s", bad.Code, placeOf(bad, text), texts.Quote(bad.Expr))
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

// placeOf says at which character of a pattern a mistake begins, counted from 1; empty: the mistake is the whole pattern's.
func placeOf(bad *syntax.Error, text string) string {
	at := strings.Index(text, bad.Expr)
	if at < 0 || bad.Expr == text {
		return ""
	}
	return fmt.Sprintf(" at character %d", utf8.RuneCountInString(text[:at])+1)
}
