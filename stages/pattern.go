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
	if PatternSize(parsed) > maxInstructions {
		return nil, fielded("retry_on", Errorf(InvalidPipeline, "write fewer repetitions: those within others multiply, .* has no number",
			"retry_on compiles to more than %d instructions", maxInstructions))
	}
	return regexp.Compile(text)
}

// runesPerInstruction: so many runes of a character class take the memory of an instruction.
const runesPerInstruction = 8

// PatternSize counts the instructions of a parsed pattern after package regexp has unrolled its repetitions.
func PatternSize(re *syntax.Regexp) int {
	size := 1
	for _, sub := range re.Sub {
		size += PatternSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / runesPerInstruction
	case syntax.OpCapture, syntax.OpStar, syntax.OpAlternate:
		size += len(re.Sub)
	case syntax.OpRepeat:
		size *= max(re.Min+1, re.Max) // + 1: the rest of a repetition without end
	}
	return max(size, 1)
}

// placeOf says at which character of a pattern a mistake begins, counted from 1; empty: the mistake is the whole pattern's.
func placeOf(bad *syntax.Error, text string) string {
	at := strings.Index(text, bad.Expr)
	if at < 0 || bad.Expr == text {
		return ""
	}
	return fmt.Sprintf(" at character %d", utf8.RuneCountInString(text[:at])+1)
}
