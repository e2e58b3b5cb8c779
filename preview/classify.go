package preview

import (
	"bytes"
	"slices"
)

// class is the format that a string seems to have.
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

// classNames are printed for a path whose strings all have one class.
var classNames = [numClasses]string{
	classText: "str", classEmpty: "str", classDateTime: "date-time", classDate: "date", classURL: "url",
	classUUID: "uuid", classEmail: "email", classIP: "ip", classInt: "int-str", classNumber: "num-str",
	classHex: "hex", classJSON: "json-str", classBase64: "base64",
}

// classify returns the class of a string of a size; b is its beginning or all of it, last its last byte.
func classify(b []byte, size int64, last byte) class {
	if size == 0 {
		return classEmpty
	}
	if len(b) == 0 { // the beginning has no whole rune
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
	d := classifyDate(b)
	switch number := isJSONNumber(b); {
	case d != classText:
		return d
	case number && isInteger(b):
		return classInt
	case number:
		return classNumber
	case isIP(b):
		return classIP
	}
	return classifyWord(b)
}

func classifyWord(b []byte) class {
	switch {
	case isUUID(b):
		return classUUID
	case len(b) >= 16 && isHex(b):
		return classHex
	case isEmail(b):
		return classEmail
	}
	return classText
}

const (
	decimals = "0123456789"
	hexas    = decimals + "abcdefABCDEF"
	lowers   = "abcdefghijklmnopqrstuvwxyz"
	uppers   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	base64s  = lowers + uppers + decimals + "+/"
)

// only reports whether b has no other characters.
func only(b []byte, characters string) bool { return len(bytes.TrimLeft(b, characters)) == 0 }

// fits reports whether b begins like form, in which 0 stands for any digit and x for any hexadecimal one.
func fits(b []byte, form string) bool {
	if len(b) < len(form) {
		return false
	}
	for i, c := range b[:len(form)] {
		fit := c == form[i]
		switch form[i] {
		case '0':
			fit = '0' <= c && c <= '9'
		case 'x':
			fit = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
		}
		if !fit {
			return false
		}
	}
	return true
}

func classifyDate(b []byte) class {
	switch {
	case !fits(b, "0000-00-00"):
	case len(b) == 10:
		return classDate
	case (b[10] == 'T' || b[10] == ' ') && fits(b[11:], "00:00:00") && len(b) <= 35 && only(b[19:], decimals+".:+-Z"):
		return classDateTime
	}
	return classText
}

func isHex(b []byte) bool { return only(b, hexas) && !only(b, decimals) }

func isUUID(b []byte) bool { return len(b) == 36 && fits(b, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") }

func isIP(b []byte) bool {
	parts := bytes.Split(b, []byte("."))
	return len(parts) == 4 && !slices.ContainsFunc(parts, func(p []byte) bool {
		return len(p) == 0 || len(p) > 3 || !only(p, decimals)
	})
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

const minBase64 = 64 // bytes of the shortest text that counts as base64

// isBase64 reports whether a string of a size looks like base64 and not like a word; b is its beginning or all of it.
func isBase64(b []byte, size int64) bool {
	if size < minBase64 || size%4 != 0 || len(b) == 0 {
		return false
	}
	before := min(len(b), int(size)-2)
	return only(b[:before], base64s) && only(b[before:], base64s+"=") &&
		bytes.ContainsAny(b, lowers) && bytes.ContainsAny(b, uppers) && bytes.ContainsAny(b, decimals)
}

const maxPattern = 64 // bytes of a string pattern

// pattern appends b to dst with one digitRun for every run of digits. It reports whether b is short enough.
func pattern(dst, b []byte) ([]byte, bool) {
	if len(b) > maxPattern {
		return dst, false
	}
	digit := false
	for _, c := range b {
		before := digit
		digit = '0' <= c && c <= '9'
		switch {
		case !digit:
			dst = append(dst, c)
		case !before:
			dst = append(dst, digitRun)
		}
	}
	return dst, true
}

const digitRun = 0 // is printed as <n>; strings with NUL have no pattern
