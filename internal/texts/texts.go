// Package texts writes values for messages and tables: text that is cut to a length, quoted text, JSON, counts and numbers of
// bytes. It also splits text into words. It knows nothing of what they mean.
package texts

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	mark  = "…" // stands for what was cut off
	shown = 60  // bytes of a text that Quote shows
)

// Cut returns s, or its beginning of at most n bytes and "…". The result is valid UTF-8: it ends with a whole character,
// and bytes that are not UTF-8 are left out.
func Cut(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "")
	}
	return strings.ToValidUTF8(s[:max(n, 0)], "") + mark
}

// Fit returns s if it has at most n characters; else its beginning and "…", which are n characters together. The result
// is valid UTF-8, as that of Cut.
func Fit(s string, n int) string {
	if n <= 0 {
		return ""
	}
	count, last := 0, 0 // characters so far, and where the n-th one begins
	for at := range s {
		if count++; count == n {
			last = at
		}
		if count > n {
			return strings.ToValidUTF8(s[:last], "") + mark
		}
	}
	return strings.ToValidUTF8(s, "")
}

// Quote returns a Go string literal of s, whose beginning is enough where s is long.
func Quote[T ~string | ~[]byte](s T) string {
	if len(s) <= shown {
		return strconv.Quote(string(s))
	}
	return strconv.Quote(Cut(string(s), shown))
}

// QuotePath returns a Go string literal of the path of a file, which is shortened in the middle where it is long.
func QuotePath(path string) string {
	const longest = 200
	if len(path) > longest {
		path = path[:longest/2] + "..." + path[len(path)-longest/2:]
	}
	return strconv.Quote(path)
}

// Valid returns b as text in which each byte that is not UTF-8 became U+FFFD, and how many there were.
func Valid(b []byte) (text string, replaced int64) {
	if utf8.Valid(b) { // mapping takes twenty times longer
		return string(b), 0
	}
	text = strings.Map(func(c rune) rune { return c }, string(b)) // a mapped text is valid
	return text, int64(strings.Count(text, "\uFFFD") - bytes.Count(b, []byte("\uFFFD")))
}

// JSON returns v as JSON on one line, in which "<", ">" and "&" stay as they are. It returns nothing for a value that JSON
// cannot hold.
func JSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Count returns a number with its noun, whose plural ends in "s": "1 item", "3 items".
func Count[N ~int | ~int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}

// Bytes returns a number of bytes in the largest unit of 1024 that it fills: exactly below 10 KiB, with one decimal above
// that where it is not whole.
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10 || n < 10<<10 && n%(1<<10) != 0:
		return strconv.FormatInt(n, 10) + " bytes"
	}
	value, unit := float64(n)/1024, "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB", "PiB"} {
		if value < 1023.95 { // what would be written as 1024
			break
		}
		value, unit = value/1024, next
	}
	return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64) + " " + unit
}
