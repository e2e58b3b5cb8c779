package workspace

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	ignoreFile     = ".gitignore"
	maxIgnoreBytes = 1 << 20
	maxPatterns    = 10_000
	maxPattern     = 4096     // bytes
	maxWildcards   = 32 << 10 // bytes of all patterns with wildcards: a compiled byte takes 200, and time for every name
)

// hidden are the names that listings leave out everywhere: our own records, version control, and the output of builds,
// package managers and caches.
var hidden = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`.filesystem .mcsh .git node_modules target __pycache__ .venv venv dist build
		.cache .gradle .next .tox .mypy_cache .pytest_cache`) {
		names[name] = true
	}
	return names
}()

// skips reports whether listings leave out an entry.
func (i Ignore) skips(e Entry) bool {
	if i.all {
		return slices.Contains(private, e.Name)
	}
	return hidden[e.Name] || i.Match(e.Path, e.Type == Directory)
}

// ignored reads the root's .gitignore for each listing; with all, a listing leaves out only the private directories. Like
// git, it ignores a .gitignore that is not a regular file.
func (d *Dir) ignored(all bool) (Ignore, error) {
	if all {
		return Ignore{all: true}, nil
	}
	if info, err := d.root.Lstat(ignoreFile); err == nil && !info.Mode().IsRegular() {
		return Ignore{}, nil
	}
	f, err := d.Open(ignoreFile)
	if err != nil && KindOf(err) == NotFound {
		return Ignore{}, nil
	}
	if err != nil {
		return Ignore{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes+1))
	if err != nil {
		return Ignore{}, classify(ignoreFile, err)
	}
	if len(text) > maxIgnoreBytes {
		return Ignore{}, Errorf(InvalidArgument, "shorten it", "the root's %s has more than %d bytes", ignoreFile, maxIgnoreBytes)
	}
	return ParseIgnore(string(text))
}

// Ignore is a list of patterns in the syntax of .gitignore. The zero value matches nothing.
type Ignore struct {
	patterns []pattern
	all      bool // listings show what is ignored
}

// pattern is one line. Exactly one of literal, suffix and re is used.
type pattern struct {
	negate  bool
	dirOnly bool
	base    bool   // matches the last element of a path, and otherwise all of it
	literal string // the text to match, if it has no wildcards
	suffix  string // the text after the star, if the pattern is "*" and text
	re      *regexp.Regexp
}

// ParseIgnore reads patterns of gitignore(5), one a line. Like git, it accepts lines that can match nothing (an unclosed
// "[", a backslash at the end). The error, an *Error, is for too many or too long patterns.
func ParseIgnore(text string) (Ignore, error) {
	var list Ignore
	wildcards := 0
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxPattern {
			return Ignore{}, Errorf(InvalidArgument, "shorten it", "the ignore pattern %s has more than %d bytes", quote(line), maxPattern)
		}
		p, ok := parsePattern(strings.TrimSuffix(line, "\r"))
		if !ok {
			continue
		}
		if p.re != nil {
			wildcards += len(line)
		}
		if wildcards > maxWildcards {
			return Ignore{}, Errorf(InvalidArgument, "write names in full, or give fewer", "the ignore patterns with wildcards have more than %d bytes", maxWildcards)
		}
		if list.patterns = append(list.patterns, p); len(list.patterns) > maxPatterns {
			return Ignore{}, Errorf(InvalidArgument, "give fewer", "there are more than %d ignore patterns", maxPatterns)
		}
	}
	return list, nil
}

// Match reports whether the last pattern that matches file ignores it. file is clean, slash-separated and relative to the
// root. Match does not check its parents, since callers do not descend into ignored directories.
func (i Ignore) Match(file string, dir bool) bool {
	base := path.Base(file)
	for _, p := range slices.Backward(i.patterns) {
		subject := file
		if p.base {
			subject = base
		}
		if (dir || !p.dirOnly) && p.matches(subject) {
			return !p.negate
		}
	}
	return false
}

func (p *pattern) matches(subject string) bool {
	switch {
	case p.re != nil:
		return p.re.MatchString(bytewise(subject))
	case p.suffix != "":
		return strings.HasSuffix(subject, p.suffix)
	}
	return subject == p.literal
}

// parsePattern parses one line; it returns false for one that matches nothing.
func parsePattern(line string) (p pattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line = trimSpaces(line)
	line, p.negate = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	const special = `\*?[`
	rest, star := strings.CutPrefix(line, "*")
	switch {
	case !strings.ContainsAny(line, special):
		p.literal = line
	case p.base && star && rest != "" && !strings.ContainsAny(rest, special):
		p.suffix = rest
	default:
		expr, valid := translate(line)
		if !valid {
			return p, false
		}
		p.re = regexp.MustCompile(expr)
	}
	return p, true
}

// trimSpaces removes trailing spaces, but not one after a backslash.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// bytewise maps every byte of s to the character of the same number, because wildcards match bytes, as in git, in any
// encoding of file names.
func bytewise(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// translate turns a pattern with wildcards into a regular expression, which matches in linear time. It returns false for a
// pattern that can match nothing.
func translate(glob string) (expr string, ok bool) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		switch c := glob[i]; c {
		case '*':
			n := i
			for n < len(glob) && glob[n] == '*' {
				n++
			}
			i = writeStars(&b, glob, i, n)
		case '?':
			b.WriteString(`[^/]`)
			i++
		case '[':
			set, n := parseClass(glob[i+1:])
			if n < 0 || !writeClass(&b, set) {
				return "", false
			}
			i += 1 + n
		case '\\':
			if i++; i == len(glob) {
				return "", false
			}
			c = glob[i]
			fallthrough
		default:
			fmt.Fprintf(&b, `\x{%x}`, c)
			i++
		}
	}
	b.WriteString(`\z`)
	return b.String(), true
}

// writeStars writes the stars glob[i:n] and returns the index of the rest. Two or more that fill a path element match any
// number of elements, all other stars match within one.
func writeStars(b *strings.Builder, glob string, i, n int) int {
	whole := n-i >= 2 && (i == 0 || glob[i-1] == '/')
	switch {
	case whole && n == len(glob):
		b.WriteString(`.*`)
	case whole && glob[n] == '/':
		b.WriteString(`(?:.*/)?`)
		return n + 1
	default:
		b.WriteString(`[^/]*`)
	}
	return n
}
