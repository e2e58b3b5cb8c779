package preview

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Levels of detail of an item.
const (
	levelHidden uint8 = iota
	levelTypes        // all types
	levelValues       // types, values, ranges, counts
)

const (
	maxExample  = 40 // characters of an example or of a value
	maxPatterns = 3  // patterns of strings that are shown
	maxIntEnum  = 6  // distinct numbers that are listed rather than given as a range
	longString  = 64 // bytes of the longest string whose length is not printed
)

// types writes the types of n.
func (n *node) types(level uint8) string {
	var parts []string
	for _, k := range []kind{kindObject, kindArray, kindString, kindNumber, kindBool, kindNull} {
		if n.kinds[k] == 0 {
			continue
		}
		text := typeTexts[k](n, level)
		recursive := n.recursive != nil && k == kindObject
		if level == levelValues && k != kindNull && !strings.Contains(text, "×") && (n.mixed() || recursive) {
			text += " (" + texts.Count(n.kinds[k], "value") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "|")
}

var typeTexts = [numKinds]func(*node, uint8) string{
	kindNull: (*node).nullText, kindBool: (*node).boolText, kindNumber: (*node).numberText,
	kindString: (*node).stringText, kindArray: (*node).arrayText, kindObject: (*node).objectText,
}

// alone reports whether n has values of one type only.
func (n *node) alone(k kind) bool { return n.kinds[k] == n.total() }

// mixed reports whether n has values of several types other than null.
func (n *node) mixed() bool { return bits.OnesCount(n.kindMask()) > 1 }

func (n *node) objectText(uint8) string {
	if n.recurses && len(n.keys) == 0 {
		return "{…} (recursive)"
	}
	if n.mapValue == nil {
		more := ""
		if n.longKeys > 0 || n.incomplete {
			more = "+"
		}
		return fmt.Sprintf("{%d%s}", len(n.keys), more)
	}
	keys := make([]string, len(n.mapKeys))
	for i, k := range n.mapKeys {
		keys[i] = quoteCut(k, maxExample)
	}
	eg := ""
	if len(keys) > 0 {
		eg = " e.g. " + strings.Join(keys, ",")
	}
	each := ""
	if n.kinds[kindObject] > 1 {
		each = " each"
	}
	return fmt.Sprintf("map{%s keys%s%s} use to_entries[]", n.sizes, each, eg)
}

func (n *node) arrayText(uint8) string {
	if n.incomplete {
		return "[…]"
	}
	text := "[" + n.lengths.String() + "]"
	if n.recurses {
		text += " (recursive)"
	}
	return text
}

func (n *node) nullText(level uint8) string {
	if level < levelValues || n.alone(kindNull) {
		return "null"
	}
	return fmt.Sprintf("null×%d", n.kinds[kindNull])
}

func (n *node) boolText(level uint8) string {
	falses := n.kinds[kindBool] - n.trues
	switch {
	case level < levelValues || n.secret:
		return "bool"
	case n.trues > 0 && falses > 0:
		return fmt.Sprintf("true×%d|false×%d", n.trues, falses)
	case n.alone(kindBool):
		return fmt.Sprintf("=%t", n.trues > 0)
	}
	return fmt.Sprintf("%t×%d", n.trues > 0, n.kinds[kindBool])
}

func (n *node) numberText(level uint8) string {
	name := "int"
	if n.floats > 0 {
		name = "num"
	}
	distinct := len(n.ints.values)
	switch {
	case level < levelValues:
		return name
	case n.secret:
		return name + " " + masked
	case n.huge > 0:
		return name + fmt.Sprintf(" (some longer than %d digits)", maxToken)
	case n.nonFinite == n.kinds[kindNumber]:
		return name + " (NaN or Infinity)"
	case n.nonFinite > 0:
		return name + " " + n.lo.String() + ".." + n.hi.String() + fmt.Sprintf(" (NaN or Infinity: %d)", n.nonFinite)
	case n.lo.String() == n.hi.String() && n.alone(kindNumber):
		return name + "=" + n.lo.String()
	case !n.ints.over && isEnum(distinct, maxIntEnum, n.kinds[kindNumber]):
		return listed(&n.ints, cutNumber)
	}
	return name + " " + n.lo.String() + ".." + n.hi.String()
}

// isEnum reports whether the distinct ones among all values are few enough to list.
func isEnum(distinct, limit int, all int64) bool {
	return distinct == 1 || distinct > 0 && distinct <= limit && all >= int64(2*distinct)
}

// quoteValue quotes a string and masks secrets in it, such as those in the query of a URL.
func quoteValue(s string) string { return quote(maskText(s)) }

func cutNumber(s string) string { return texts.Fit(s, maxNumber) }

// listed writes all values of a tally with their counts.
func listed(t *tally, format func(string) string) string {
	var parts []string
	for _, v := range t.byCount() {
		parts = append(parts, fmt.Sprintf("%s×%d", format(v.text), v.n))
	}
	return strings.Join(parts, "|")
}

// class returns the class of all nonempty strings of n, classText if they differ.
func (n *node) class() class {
	for c, strings := range n.classes {
		if class(c) != classEmpty && strings > 0 && strings+n.classes[classEmpty] == n.kinds[kindString] {
			return class(c)
		}
	}
	return classText
}

func (n *node) stringText(level uint8) string {
	c := n.class()
	name := classNames[c]
	distinct := len(n.strs.values)
	all := n.kinds[kindString]
	switch {
	case level < levelValues:
		return name
	case n.secret:
		return name + " " + masked
	case c == classBase64:
		if of := base64Name([]byte(n.example)); of != "" {
			name += " of " + of
		}
		return name + fmt.Sprintf(" ≤%d bytes", n.maxLen)
	case distinct == 1 && n.alone(kindString):
		return "=" + quoteValue(n.strs.values[0].text)
	case isEnum(distinct, maxTally, all):
		return listed(&n.strs, quoteValue)
	case (c == classDate || c == classDateTime) && string(n.dateLo) != string(n.dateHi):
		name += " " + string(n.dateLo) + ".." + string(n.dateHi)
	case n.hasPatterns(c):
		name += " like " + patternList(&n.patterns)
	case n.example != "":
		name += " e.g. " + quoteCut(maskText(n.example), maxExample)
	}
	if n.maxLen > longString {
		name += fmt.Sprintf(" ≤%d bytes", n.maxLen)
	}
	if empty := n.classes[classEmpty]; empty > 0 {
		name += fmt.Sprintf(`|""×%d`, empty)
	}
	return name
}

// hasPatterns reports whether the strings follow a few patterns, within which only numbers differ.
func (n *node) hasPatterns(c class) bool {
	if n.kinds[kindString] < 3 || c != classText && c != classURL && c != classEmail {
		return false
	}
	distinct := len(n.patterns.values)
	return isEnum(distinct, maxPatterns, n.kinds[kindString]-n.classes[classEmpty])
}

func patternList(t *tally) string {
	if len(t.values) == 1 {
		return patternText(t.values[0].text)
	}
	return listed(t, patternText)
}

func patternText(p string) string { return strings.ReplaceAll(quoteValue(p), `\u0000`, "<n>") }
