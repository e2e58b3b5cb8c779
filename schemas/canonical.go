package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// canonical appends to b a text that only equal JSON values share: members are sorted, numbers are digits and an
// exponent. It stops when the steps are spent.
func canonical(b []byte, v any, steps *Steps) []byte {
	if !steps.Take(1) {
		return b
	}
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = canonicalText(b, name, steps)
			b = canonical(b, v[name], steps)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for _, element := range v {
			b = canonical(b, element, steps)
		}
		return append(b, ']')
	case string:
		return canonicalText(b, v, steps)
	case json.Number:
		d := decimalOf(v)
		b = append(b, d.sign...)
		b = append(append(b, d.digits...), 'e')
		return append(strconv.AppendInt(b, int64(d.exponent), 10), ';')
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

// canonicalText writes the length of a string, then the string, which so needs no escapes.
func canonicalText(b []byte, s string, steps *Steps) []byte {
	if !steps.Take(len(s) / bytesPerStep) {
		return b
	}
	b = strconv.AppendInt(append(b, '"'), int64(len(s)), 10)
	return append(append(b, ':'), s...)
}

// A decimal is a JSON number as sign, digits and exponent. The digits have no zeros at either end; zero has no digits and
// no sign.
type decimal struct {
	sign, digits string
	exponent     int
}

func decimalOf(n json.Number) decimal {
	var d decimal
	text := string(n)
	if strings.HasPrefix(text, "-") {
		d.sign, text = "-", text[1:]
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		d.exponent, _ = strconv.Atoi(strings.TrimPrefix(text[i+1:], "+")) // bounded before
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.exponent -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(short)
	d.digits = short
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// whole reports whether a number is an integer, in any notation.
func whole(n json.Number) bool { return decimalOf(n).exponent >= 0 }
