package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	ignoreFile     = ".gitignore"
	maxIgnoreBytes = 1 << 20
	maxPatterns    = 10_000
	maxPattern     = 4096 // bytes
)

// hidden are the names that listings leave out wherever they are: our own records, version control, and what builds
// and package managers write.
var hidden = map[string]bool{
	".filesystem":  true,
	".mcsh":        true,
	".git":         true,
	"node_modules": true,
	"target":       true,
	"__pycache__":  true,
}

// rules decide what listings leave out.
type rules struct{ ignore Ignore }

func (r rules) skips(e Entry) bool {
	return hidden[e.Name] || r.ignore.Match(e.Path, e.Type == Directory)
}

// rules reads the root's .gitignore anew, so that a listing always follows the file as it is. As git does, it takes
// only a regular file for one.
func (d *Dir) rules() (rules, error) {
	info, err := d.root.Lstat(ignoreFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return rules{}, nil
	}
	if err != nil {
		return rules{}, classify(ignoreFile, err)
	}
	f, err := d.Open(ignoreFile)
	if KindOf(err) == NotFound && err != nil {
		return rules{}, nil
	}
	if err != nil {
		return rules{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes+1))
	if err != nil {
		return rules{}, classify(ignoreFile, err)
	}
	if len(text) > maxIgnoreBytes {
		return rules{}, Errorf(InvalidArgument, "shorten it", "the root's %s has more than %d bytes", ignoreFile, maxIgnoreBytes)
	}
	ignore, err := ParseIgnore(string(text))
	return rules{ignore}, err
}

// Ignore is a list of patterns in the syntax of .gitignore. The zero value matches nothing.
type Ignore struct{ patterns []pattern }

// pattern is one line. Exactly one of literal, suffix and re is used.
type pattern struct {
	negate  bool
	dirOnly bool
	base    bool   // matches the last element of a path, not all of it
	literal string // the text to match, if it has no wildcards
	suffix  string // what follows the star, if the pattern is "*" and text
	re      *regexp.Regexp
}

// ParseIgnore reads patterns, one a line, as gitignore(5) describes them. Lines that can match nothing (an unclosed
// "[", a backslash at the end) are accepted, as git does; the error, an *Error, is for too many or too long ones.
func ParseIgnore(text string) (Ignore, error) {
	var list Ignore
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > maxPattern {
			return Ignore{}, Errorf(InvalidArgument, "shorten it", "the ignore pattern %s has more than %d bytes", quote(line), maxPattern)
		}
		p, ok := parsePattern(strings.TrimSuffix(line, "\r"))
		if !ok {
			continue
		}
		if list.patterns = append(list.patterns, p); len(list.patterns) > maxPatterns {
			return Ignore{}, Errorf(InvalidArgument, "give fewer", "there are more than %d ignore patterns", maxPatterns)
		}
	}
	return list, nil
}

// Match reports whether the last pattern that matches path says to ignore it. The path is clean, slash-separated and
// relative to the root. As its callers do not descend into what is ignored, parents of path are not looked at.
func (i Ignore) Match(file string, dir bool) bool {
	base := path.Base(file)
	for n := len(i.patterns) - 1; n >= 0; n-- {
		p := &i.patterns[n]
		if p.dirOnly && !dir {
			continue
		}
		subject := file
		if p.base {
			subject = base
		}
		if p.matches(subject) {
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

// trimSpaces cuts spaces off the end, but not one that a backslash quotes.
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

// bytewise maps every byte of s to the character of the same number, because wildcards match bytes, as in git,
// whatever the encoding of file names is.
func bytewise(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// translate turns a pattern with wildcards into a regular expression, whose matching takes linear time. It returns
// false for a pattern that can match nothing.
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

// writeStars writes the stars glob[i:n] and returns where the pattern goes on. Two or more that fill a whole path
// element match any number of elements, all other stars match within one.
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
