package preview

import "bytes"

// class is what a string looks like.
type class uint8

const (
	classText class = iota
	classEmpty
	classDateTime
	classDate
	classURL
	classUUID
	classEmail
	classIP
	classInt
	classNumber
	classHex
	classJSON
	classBase64
	numClasses
)

// classNames is how a path whose strings are all of one class is announced.
var classNames = [numClasses]string{
	classText: "str", classEmpty: "str", classDateTime: "date-time", classDate: "date", classURL: "url",
	classUUID: "uuid", classEmail: "email", classIP: "ip", classInt: "int-str", classNumber: "num-str",
	classHex: "hex", classJSON: "json-str", classBase64: "base64",
}

// classify looks at a string, of which b may be only the beginning; last is the last byte of the whole.
func classify(b []byte, size int64, last byte) class {
	if size == 0 {
		return classEmpty
	}
	if len(b) == 0 { // the beginning is no text that could be cut
		return classText
	}
	whole := size == int64(len(b))
	switch c := b[0]; {
	case c == 'h' && (bytes.HasPrefix(b, []byte("http://")) || bytes.HasPrefix(b, []byte("https://"))):
		if !bytes.ContainsAny(b, " \n\t\"<>") {
			return classURL
		}
	case c == '{' && last == '}' && len(b) > 1 && (b[1] == '"' || b[1] == '}' || b[1] == '\n' || b[1] == ' '):
		return classJSON
	case c == '[' && last == ']' && len(b) > 1 && (b[1] == '{' || b[1] == '"' || b[1] == '[' || b[1] == ']'):
		return classJSON
	case size >= minBase64 && isBase64(b, size) && !isHex(b):
		return classBase64
	case !whole || len(b) > 200:
		return classText
	case '0' <= c && c <= '9' || c == '-':
		return classifyDigits(b)
	}
	return classifyWord(b)
}

func classifyDigits(b []byte) class {
	if d := classifyDate(b); d != classText {
		return d
	}
	if isJSONNumber(b) {
		if bytes.ContainsAny(b, ".eE") {
			return classNumber
		}
		return classInt
	}
	if isIP(b) {
		return classIP
	}
	return classifyWord(b)
}

func classifyWord(b []byte) class {
	switch {
	case len(b) == 36 && isUUID(b):
		return classUUID
	case len(b) >= 16 && isHex(b):
		return classHex
	case isEmail(b):
		return classEmail
	}
	return classText
}

// isJSONNumber reports whether b is a number as JSON spells it, so that tonumber takes it.
func isJSONNumber(b []byte) bool {
	state := numStart
	for _, c := range b {
		if state = numberNext[state][numberClass[c]]; state == numBad {
			return false
		}
	}
	return state == numZero || state == numInt || state == numFrac || state == numExpDigits
}

// fits compares b with a form in which 0 stands for a digit and anything else for itself.
func fits(b []byte, form string) bool {
	if len(b) < len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' {
			if b[i] < '0' || b[i] > '9' {
				return false
			}
		} else if b[i] != form[i] {
			return false
		}
	}
	return true
}

func classifyDate(b []byte) class {
	if !fits(b, "0000-00-00") {
		return classText
	}
	if len(b) == 10 {
		return classDate
	}
	if (b[10] == 'T' || b[10] == ' ') && fits(b[11:], "00:00:00") && len(b) <= 35 {
		for _, c := range b[19:] {
			if (c < '0' || c > '9') && c != '.' && c != ':' && c != '+' && c != '-' && c != 'Z' {
				return classText
			}
		}
		return classDateTime
	}
	return classText
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isHex(b []byte) bool {
	letter := false
	for _, c := range b {
		if !isHexDigit(c) {
			return false
		}
		letter = letter || c > '9'
	}
	return letter
}

func isUUID(b []byte) bool {
	for i, c := range b {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHexDigit(c) {
			return false
		}
	}
	return true
}

func isIP(b []byte) bool {
	dots, digits := 0, 0
	for _, c := range b {
		switch {
		case c == '.' && digits > 0:
			dots, digits = dots+1, 0
		case '0' <= c && c <= '9' && digits < 3:
			digits++
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}

func isEmail(b []byte) bool {
	at := bytes.IndexByte(b, '@')
	if at < 1 || bytes.ContainsAny(b, " \n\t<>\"(),:;/") {
		return false
	}
	domain := b[at+1:]
	dot := bytes.IndexByte(domain, '.')
	return dot > 0 && dot < len(domain)-1 && bytes.IndexByte(domain, '@') < 0
}

const maxPattern = 64 // bytes of a string pattern

// pattern appends b to dst with every run of digits written as 0. It reports false for what is too long.
func pattern(dst, b []byte) ([]byte, bool) {
	if len(b) > maxPattern {
		return dst, false
	}
	digit := false
	for _, c := range b {
		isDigit := '0' <= c && c <= '9'
		switch {
		case !isDigit:
			dst = append(dst, c)
		case !digit:
			dst = append(dst, digitRun)
		}
		digit = isDigit
	}
	return dst, true
}

const digitRun = 0 // stands for <n> in a pattern; strings with NUL have no pattern
