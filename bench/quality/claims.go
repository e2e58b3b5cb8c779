package quality

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Claim is what one line of a preview says of one path.
type Claim struct {
	Path  string   // as jq spells it
	Types []string // names as jq gives them
	Null  bool     // something above may be missing or null, so that null may come out
	As    string   // the path that has the same shape
	Note  string   // all that is said of the path
	Above string   // the path of the parent
	Seg   string   // what the line adds to it

	Repeats bool // said by "as": types hold, values differ
}

var (
	segmentPattern = regexp.MustCompile(`^(?:\|arrays|\|objects|(?:\|strings)?\|fromjson\??|(?:\|strings)?\|split\("\\n"\))?(?:\.(?:[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")?\??)?(?:\[\]\??)*` +
		`(?:\|?recurse\((?:[^")]|"(?:[^"\\]|\\.)*")*\))?`)
	recursion = regexp.MustCompile(`\|?recurse\((?:[^")]|"(?:[^"\\]|\\.)*")*\)`)
	presence  = regexp.MustCompile(` in \d+/\d+( first@\d+)?$`)
	asPath    = regexp.MustCompile(` as [.].*$`)
	values    = regexp.MustCompile(`(?: \(recursive\))?(?: \(\d+ values?\))?$`)
	iterates  = regexp.MustCompile(`\[\]\??$`)
	lengths   = regexp.MustCompile(`^(?:\[\d+(?:\.\.\d+)?\])+ ([^(])`)
)

// Parse reads the lines of a preview of JSON back. tries are the programs that it proposes.
func Parse(text string) (all []Claim, tries []string, err error) {
	var above []Claim // by depth
	header := true
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "=== ") || line == "":
			continue
		case header:
			header = false
			continue
		case strings.HasPrefix(line, "sample"), strings.HasPrefix(line, "| "):
			continue
		case strings.HasPrefix(line, "try: "):
			tries = append(tries, strings.TrimSuffix(strings.TrimPrefix(line, "try: jq -c '"), "'"))
			continue
		}
		rest := strings.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		if strings.HasPrefix(rest, "…") {
			continue
		}
		segs, note := splitLine(rest)
		if len(segs) == 0 || depth > len(above) {
			return nil, nil, fmt.Errorf("no path in the line %q", line)
		}
		parent := Claim{}
		if depth > 0 {
			parent = above[depth-1]
		}
		for _, seg := range segs {
			c := newClaim(parent, seg, note)
			all = append(append(all, c), inline(c, note)...)
			above = append(above[:depth], c)
		}
	}
	return all, tries, nil
}

// splitLine takes the paths off a line.
func splitLine(rest string) (segs []string, note string) {
	for {
		seg := segmentPattern.FindString(rest)
		if seg == "" {
			return nil, ""
		}
		segs = append(segs, seg)
		rest = rest[len(seg):]
		more := strings.HasPrefix(rest, " .")
		if note, ok := strings.CutPrefix(rest, ": "); ok {
			return segs, note
		}
		rest = strings.TrimPrefix(rest, " ")
		if !more {
			return segs, rest
		}
	}
}

func newClaim(parent Claim, seg, note string) Claim {
	c := Claim{Path: parent.Path + seg, Types: TypeNames(note), Note: note, Above: parent.Path, Seg: seg}
	if as := asPath.FindString(presence.ReplaceAllString(note, "")); as != "" {
		c.As = strings.TrimPrefix(as, " as ")
	}
	if parent.Path == "." && strings.HasPrefix(seg, ".") || parent.Path == "" {
		c.Path = seg
	}
	if !iterates.MatchString(seg) {
		c.Null = parent.Null || strings.HasSuffix(seg, "?") || slices.Contains(parent.Types, "null")
	}
	return c
}

// Bare is a note without what follows and precedes the types.
func (c Claim) Bare() string { return bare(c.Note) }

func bare(note string) string {
	note = asPath.ReplaceAllString(presence.ReplaceAllString(note, ""), "")
	return lengths.ReplaceAllString(note, "$1")
}

// Parts are what is said of each type, without the number of its values.
func (c Claim) Parts() []string {
	parts := split(c.Bare(), '|')
	for i := range parts {
		parts[i] = values.ReplaceAllString(parts[i], "")
	}
	return parts
}

// split cuts s at sep outside of quotes and braces.
func split(s string, sep byte) (parts []string) {
	depth, start, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == sep && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// typeWords are the beginnings of what is said of a type, the longer ones first.
var typeWords = []struct{ begin, name string }{
	{"{", "object"},
	{"map{", "object"},
	{"[", "array"},
	{`"`, "string"},
	{`="`, "string"},
	{"null", "null"},
	{"true", "boolean"},
	{"false", "boolean"},
	{"=true", "boolean"},
	{"=false", "boolean"},
	{"bool", "boolean"},
	{"int-str", "string"},
	{"num-str", "string"},
	{"int", "number"},
	{"num", "number"},
	{"-", "number"},
	{"str", "string"},
	{"date", "string"},
	{"url", "string"},
	{"uuid", "string"},
	{"email", "string"},
	{"ip", "string"},
	{"hex", "string"},
	{"base64", "string"},
	{"json-str", "string"},
	{"…", "string"},
}

// TypeNames are the types that a note tells.
func TypeNames(note string) (found []string) {
	for _, part := range split(bare(note), '|') {
		name := "unknown type " + part
		if part != "" && part[0] >= '0' && part[0] <= '9' {
			name = "number"
		}
		for _, w := range typeWords {
			if strings.HasPrefix(part, w.begin) {
				name = w.name
				break
			}
		}
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// inline parses the keys in {a:str,"b"?:int|null}.
func inline(parent Claim, note string) (found []Claim) {
	object := split(lengths.ReplaceAllString(note, "$1"), '|')[0]
	if !strings.HasPrefix(object, "{") || !strings.Contains(object, ":") {
		return nil
	}
	end := strings.LastIndexByte(object, '}') + 1
	for _, part := range split(object[1:end-1], ',') {
		name := split(part, ':')[0]
		c := newClaim(parent, "."+name, part[len(name)+1:])
		found = append(append(found, c), inline(c, c.Note)...)
	}
	return found
}

// Repeated are the claims that "as" makes: what is said of one path holds for another, except for values.
func Repeated(all []Claim) (more []Claim) {
	for _, c := range all {
		if c.As == "" {
			continue
		}
		for _, d := range all {
			if below, ok := belowOf(d.Path, c.As); ok && strings.HasPrefix(below, ".") {
				d.Path = c.Path + below
				above, _ := belowOf(d.Above, c.As)
				d.Above = c.Path + above
				d.Repeats = true
				more = append(more, d)
			}
		}
	}
	return more
}

// belowOf cuts a path off the one that is below it.
func belowOf(path, above string) (string, bool) {
	if above != "." {
		return strings.CutPrefix(path, above)
	}
	return strings.TrimSuffix(path, "."), true
}

var typeSets = map[string]Types{
	"null": Null, "boolean": Bool, "number": Number, "string": String, "array": Array, "object": Object,
}

// Previewed returns what a preview of JSON claims.
func Previewed(text string) (Facts, error) {
	claims, _, err := Parse(text)
	if err != nil {
		return nil, err
	}
	p := previewed{facts: Facts{}, paths: map[string]string{}, maps: map[string]bool{}}
	for _, c := range append(claims, Repeated(claims)...) {
		p.claim(c)
	}
	return p.facts, nil
}

// previewed collects the facts of a preview.
type previewed struct {
	facts Facts
	paths map[string]string // from jq's spelling to that of facts
	maps  map[string]bool   // jq's spelling of the paths of maps
}

var step = regexp.MustCompile(`\.(?:[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")|\[\]`)

// claim adds what a claim says of its path, and of the arrays that its segment goes through.
func (p *previewed) claim(c Claim) {
	if strings.Contains(c.Path, "|fromjson") || strings.Contains(c.Path, "|split(") {
		return // inside of a string
	}
	path := p.paths[c.Above]
	container := c.Above == "" || strings.HasPrefix(c.Seg, ".") // what [] follows is said by this line alone
	seg := recursion.ReplaceAllString(c.Seg, "")
	for _, s := range step.FindAllString(seg, -1) {
		if s != "[]" {
			path += "." + quoted(s[1:])
			if strings.Contains(seg, "?") {
				p.facts.add(path, &Fact{Optional: true})
			}
			continue
		}
		if container {
			p.facts.add(path, &Fact{Types: Array})
		}
		if !container && p.maps[c.Above] && !strings.HasPrefix(c.Seg, "|arrays") {
			s = "{}"
		}
		path, container = path+s, true
	}
	p.paths[c.Path] = path
	p.maps[c.Path] = strings.Contains(c.Bare(), "map{")
	p.facts.add(path, c.fact())
}

// quoted spells a key as paths of facts do.
func quoted(key string) string {
	var text string
	if json.Unmarshal([]byte(key), &text) == nil {
		key = text
	}
	return strconv.Quote(key)
}

// fact is what the note of a claim says.
func (c Claim) fact() *Fact {
	f := &Fact{}
	for _, name := range c.Types {
		f.Types |= typeSets[name]
	}
	if c.Repeats {
		return f
	}
	for _, part := range c.Parts() {
		value, _, _ := strings.Cut(strings.TrimPrefix(part, "="), "×")
		var text string
		if json.Unmarshal([]byte(value), &text) == nil {
			f.addValue(text)
		}
	}
	return f
}
