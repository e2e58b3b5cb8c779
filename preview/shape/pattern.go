package shape

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// The parts of a line that a pattern names.
const (
	timePart   = "<time>"
	numberPart = "<n>"
	addrPart   = "<ip>"
	urlPart    = "<url>"
	idPart     = "<id>"
	anyPart    = "…"
	pythonPart = "<python>" // a whole line: a list, tuple or dict as Python prints it
)

const (
	maxParts = 10  // of a pattern
	maxLine  = 600 // bytes of a line that are looked at
)

// logWords are levels of logs and methods of HTTP; several of them in one place are alternatives.
var logWords = []string{
	"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "PANIC",
	"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS",
}

// classes are the classes of words, the first match wins.
var classes = []struct {
	part string
	is   func() *regexp.Regexp
}{
	{timePart, lazy.Regexp(`^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$`)},
	{timePart, lazy.Regexp(`^\d\d:\d\d(:\d\d([.,]\d+)?)?$`)},
	{timePart, lazy.Regexp(`^\d\d/[A-Z][a-z]{2}/\d{4}(:\d\d:\d\d:\d\d)?$`)},
	{addrPart, lazy.Regexp(`^\d{1,3}(\.\d{1,3}){3}(:\d+)?$`)},
	{idPart, lazy.Regexp(`^[0-9a-fA-F]{8}-[0-9a-fA-F-]{4,27}$`)},
	{idPart, lazy.Regexp(`^[0-9a-f]*\d[0-9a-f]{6,}$`)},
	{numberPart, lazy.Regexp(`^[+-]?\d+([.,]\d+)*%?$`)},
	{urlPart, lazy.Regexp(`^[a-z][a-z0-9+.-]*://`)},
}

// python matches the beginning of a line with a Python value that is not JSON.
var python = lazy.Regexp(`^[\[({]*[({]'|^\['`)

// label matches a word before a value.
var label = lazy.Regexp(`^([A-Za-z][A-Za-z_ -]{0,39})([:=])`)

// Pattern writes the pattern of one line of text: times, numbers, addresses and levels by their class, labels of which
// every word is known, marks at the beginning, and "…" for all else. It holds no other part of the line.
func Pattern(line string, known func(word string) bool) string {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	if python().MatchString(line) {
		return pythonPart
	}
	var parts []string
	add := func(part string) {
		if part != anyPart || len(parts) == 0 || parts[len(parts)-1] != anyPart {
			parts = append(parts, part)
		}
	}
	rest := strings.TrimLeft(strings.TrimRight(line, " \t\r"), " \t")
	for _, mark := range []string{"#", "##", "###", "####", "-", "*", ">", "|"} {
		if after, ok := strings.CutPrefix(rest, mark+" "); ok {
			add(mark)
			rest = after
			break
		}
	}
	if m := label().FindStringSubmatch(rest); m != nil && m[2] == ":" && Named(m[1], known) {
		if after := rest[len(m[0]):]; after == "" || after[0] == ' ' {
			add(m[0])
			rest = after
		}
	}
	for word := range strings.FieldsSeq(rest) {
		if len(parts) >= maxParts {
			add(anyPart)
			break
		}
		add(partOf(word, known))
	}
	return strings.Join(parts, " ")
}

// partOf classes one word, which may stand in brackets or be a label with its value.
func partOf(word string, known func(string) bool) string {
	open, word, closing := brackets(word)
	if m := label().FindStringSubmatch(word); m != nil && m[2] == "=" && Named(m[1], known) {
		return open + m[0] + classOf(word[len(m[0]):]) + closing
	}
	return open + classOf(word) + closing
}

func classOf(word string) string {
	word = strings.TrimRight(word, ",;:.")
	for _, c := range classes {
		if c.is().MatchString(word) {
			return c.part
		}
	}
	if upper := strings.ToUpper(word); areLevels(upper) {
		return upper
	}
	return anyPart
}

// AddLine adds a pattern to those of a result. One that differs from another in its levels only is put together with
// it; where there are [MaxLines] already, it is left out.
func AddLine(lines []string, line string) []string {
	if slices.Contains(lines, line) {
		return lines
	}
	for i, old := range lines {
		if both, ok := joinLevels(old, line); ok {
			lines = slices.Clone(lines)
			lines[i] = both
			return lines
		}
	}
	if len(lines) == MaxLines {
		return lines
	}
	return append(slices.Clip(lines), line)
}

// joinLevels puts two patterns together that differ in their levels only.
func joinLevels(a, b string) (string, bool) {
	p, q := strings.Split(a, " "), strings.Split(b, " ")
	if len(p) != len(q) {
		return "", false
	}
	for i := range p {
		if p[i] == q[i] {
			continue
		}
		open, x, closing := brackets(p[i])
		open2, y, closing2 := brackets(q[i])
		if open != open2 || closing != closing2 || !areLevels(x) || !areLevels(y) {
			return "", false
		}
		all := strings.Split(x, "|")
		for _, level := range strings.Split(y, "|") {
			if !slices.Contains(all, level) {
				all = append(all, level)
			}
		}
		p[i] = open + strings.Join(all, "|") + closing
	}
	return strings.Join(p, " "), true
}

func brackets(part string) (open, inner, closing string) {
	for _, pair := range []string{"[]", "()"} {
		if len(part) > 2 && part[0] == pair[0] && part[len(part)-1] == pair[1] {
			return pair[:1], part[1 : len(part)-1], pair[1:]
		}
	}
	return "", part, ""
}

func areLevels(text string) bool {
	for word := range strings.SplitSeq(text, "|") {
		if !slices.Contains(logWords, word) {
			return false
		}
	}
	return true
}

// examples are words of each class.
var examples = strings.NewReplacer(
	timePart, "00:00", numberPart, "0", addrPart, "0.0.0.0", urlPart, "a://", idPart, "0000000f", pythonPart, "[('",
)

// isPattern reports whether a text could have come from [Pattern].
func isPattern(line string, known func(string) bool) bool {
	return Pattern(examples.Replace(line)+" \n", known) == line // a line may be a mark and a space
}
