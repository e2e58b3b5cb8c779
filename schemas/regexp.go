package schemas

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	// maxPattern bounds the length of a pattern in bytes; the backtracking parser has no bound of its own.
	maxPattern = 4096
	// maxInstructions bounds the compiled size of all patterns of one schema: {1,30} in {1,30} is 900 times its text.
	maxInstructions = 1 << 16
	// maxBacktracking bounds the text for a backtracking pattern in bytes: the stack of the match grows with it.
	maxBacktracking = 64 << 10
	// matchTimeout bounds one match of a backtracking pattern.
	matchTimeout = 50 * time.Millisecond
	// backtrackingStep is the time that counts as a step, since the work of a backtracking pattern cannot be counted.
	backtrackingStep = 100 * time.Nanosecond
)

// A pattern is a compiled regular expression of a schema. RE2 takes linear time. Patterns that it cannot read use the
// backtracking engine: JSON Schema has those of ECMA 262, with lookahead and back references.
type pattern struct {
	text         string
	instructions int
	linear       *regexp.Regexp                 // nil if backtracking is set
	backtracking atomic.Pointer[regexp2.Regexp] // replaced after a timeout, since it keeps its large stack
}

func compilePattern(text string) (*pattern, error) {
	n, err := instructions(text)
	if err != nil {
		return nil, err
	}
	if n > maxInstructions {
		return nil, errInstructions
	}
	p := &pattern{text: text, instructions: n}
	if p.linear, err = regexp.Compile(text); err == nil {
		return p, nil
	}
	re, err := backtracking(text)
	p.backtracking.Store(re)
	return p, err
}

var errInstructions = fmt.Errorf("the patterns of the schema need more than %d regexp instructions", maxInstructions)

func backtracking(text string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode)
	if err == nil {
		re.MatchTimeout = matchTimeout
	}
	return re, err
}

// instructions returns an upper bound of a pattern's instructions without compiling it.
func instructions(text string) (int, error) {
	if len(text) > maxPattern {
		return 0, fmt.Errorf("pattern of %d bytes is longer than %d", len(text), maxPattern)
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 1 + 2*len(text), nil // the backtracking engine does not unroll repetitions
	}
	return 2 + stages.PatternSize(re), nil
}

// MatchString implements the library's interface; evaluations call match and count its steps.
func (p *pattern) MatchString(s string) bool {
	ok, err := p.match(s)
	return ok || err != nil
}

func (p *pattern) String() string { return p.text }

// steps bounds the cost of a match of s.
func (p *pattern) steps(s string) int { return 2 + len(s)*p.instructions/32 }

var errBacktracking = errors.New("a pattern with lookahead or back references takes too long on it")

// match reports whether s matches. It returns errBacktracking if the match takes too long.
func (p *pattern) match(s string) (bool, error) {
	re := p.backtracking.Load()
	if re == nil {
		return p.linear.MatchString(s), nil
	}
	if len(s) > maxBacktracking {
		return false, errBacktracking
	}
	ok, err := re.MatchString(s)
	if err != nil {
		if fresh, err := backtracking(p.text); err == nil {
			p.backtracking.CompareAndSwap(re, fresh)
		}
		return false, errBacktracking
	}
	return ok, nil
}
