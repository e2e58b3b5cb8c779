package schemas

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPattern bounds the length of a pattern in bytes; the backtracking parser has no bound of its own.
	maxPattern = 4096
	// matchTimeout bounds one match of a backtracking pattern.
	matchTimeout = 50 * time.Millisecond
)

// A matcher is a pattern of a schema that only the backtracking engine can read: JSON Schema patterns are ECMA 262
// regular expressions, which have lookahead and back references.
type matcher struct {
	re     *regexp2.Regexp
	budget *budget
}

// MatchString reports whether s matches. A match that takes too long ends the whole check.
func (m matcher) MatchString(s string) bool {
	if m.budget.spent() {
		return true
	}
	ok, err := m.re.MatchString(s)
	if err != nil {
		m.budget.left = 0
		return true
	}
	return ok
}

func (m matcher) String() string { return m.re.String() }

// engine returns how the patterns of one schema are compiled. Those that RE2 can read take linear time.
func engine(b *budget) jsonschema.RegexpEngine {
	return func(pattern string) (jsonschema.Regexp, error) {
		if len(pattern) > maxPattern {
			return nil, fmt.Errorf("pattern of %d bytes is longer than %d", len(pattern), maxPattern)
		}
		if re, err := regexp.Compile(pattern); err == nil {
			return re, nil
		}
		re, err := regexp2.Compile(pattern, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			return nil, err
		}
		re.MatchTimeout = matchTimeout
		return matcher{re, b}, nil
	}
}
