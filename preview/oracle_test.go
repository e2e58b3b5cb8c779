package preview_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/preview"
)

// claim is what one line of a preview says of one path.
type claim struct {
	path  string
	types []string
	null  bool // something above may be missing or null, so that null may come out
	as    string
}

var (
	segmentPattern = regexp.MustCompile(`^(?:\|arrays|\|objects)?(?:\.(?:[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")?\??)?(?:\[\]\??)*`)
	presence       = regexp.MustCompile(` in \d+/\d+( first@\d+)?$`)
	asPath         = regexp.MustCompile(` as [.].*$`)
	values         = regexp.MustCompile(` \(\d+ values?\)$`)
	iterates       = regexp.MustCompile(`\[\]\??$`)
	lengths        = regexp.MustCompile(`^(?:\[\d+(?:\.\.\d+)?\])+ ([^(])`)
)

// claims parses a preview back.
func claims(t *testing.T, text string) (all []claim, tries []string) {
	t.Helper()
	var above []claim // by depth
	for i, line := range strings.Split(text, "\n") {
		switch {
		case i < 2 || strings.HasPrefix(line, "sample: ") || strings.HasPrefix(line, "=== ") || line == "":
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
		var segs []string
		for {
			seg := segmentPattern.FindString(rest)
			if seg == "" {
				t.Fatalf("line %q: no path at %q", line, rest)
			}
			segs = append(segs, seg)
			rest = rest[len(seg):]
			more := strings.HasPrefix(rest, " .")
			if note, ok := strings.CutPrefix(rest, ": "); ok {
				rest = note
				break
			}
			rest = strings.TrimPrefix(rest, " ")
			if !more {
				break
			}
		}
		parent := claim{}
		if depth > 0 {
			parent = above[depth-1]
		}
		for _, seg := range segs {
			c := newClaim(parent, seg, rest)
			all = append(all, c)
			all = append(all, inline(c, rest)...)
			above = append(above[:depth], c)
		}
	}
	return all, tries
}

func newClaim(parent claim, seg, note string) claim {
	c := claim{path: parent.path + seg, types: types(note)}
	if as := asPath.FindString(presence.ReplaceAllString(note, "")); as != "" {
		c.as = strings.TrimPrefix(as, " as ")
	}
	if parent.path == "." && strings.HasPrefix(seg, ".") {
		c.path = seg
	} else if parent.path == "" {
		c.path = seg
	}
	if !iterates.MatchString(seg) {
		c.null = parent.null || strings.HasSuffix(seg, "?") || slices.Contains(parent.types, "null")
	}
	return c
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

var typeWords = []struct{ begin, name string }{
	{"{", "object"}, {"map{", "object"}, {"[", "array"}, {`"`, "string"}, {`="`, "string"}, {"null", "null"},
	{"true", "boolean"}, {"false", "boolean"}, {"=true", "boolean"}, {"=false", "boolean"}, {"bool", "boolean"},
	{"int-str", "string"}, {"num-str", "string"}, {"int", "number"}, {"num", "number"}, {"-", "number"},
	{"str", "string"}, {"date", "string"}, {"url", "string"}, {"uuid", "string"}, {"email", "string"},
	{"ip", "string"}, {"hex", "string"}, {"json-str", "string"},
}

func types(note string) (found []string) {
	note = asPath.ReplaceAllString(presence.ReplaceAllString(note, ""), "")
	note = lengths.ReplaceAllString(note, "$1")
	for _, part := range split(note, '|') {
		part = values.ReplaceAllString(part, "")
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
func inline(parent claim, note string) (found []claim) {
	note = lengths.ReplaceAllString(note, "$1")
	object := split(note, '|')[0]
	if !strings.HasPrefix(object, "{") || !strings.Contains(object, ":") {
		return nil
	}
	end := len(split(object+" ", ' ')[0])
	for _, part := range split(object[1:end-1], ',') {
		pair := split(part, ':')
		found = append(found, newClaim(parent, "."+pair[0], pair[1]))
	}
	return found
}

// repeated are the claims that "as" makes: what is said of one path holds for another.
func repeated(all []claim) (more []claim) {
	for _, c := range all {
		for _, d := range all {
			below, ok := strings.CutPrefix(d.path, c.as)
			if c.as != "" && ok && strings.HasPrefix(below, ".") && c.as != "." {
				d.path = c.path + below
				more = append(more, d)
			}
		}
	}
	return more
}

// run returns the types of all results of a jq program over the documents.
func run(t *testing.T, program string, docs []any) []string {
	t.Helper()
	query, err := gojq.Parse(program)
	if err != nil {
		t.Fatalf("program %s: %v", program, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		t.Fatalf("program %s: %v", program, err)
	}
	var found []string
	for _, doc := range docs {
		iter := code.Run(doc)
		for {
			v, ok := iter.Next()
			if !ok {
				break
			}
			if err, ok := v.(error); ok {
				t.Fatalf("program %s: %v", program, err)
			}
			if name := gojq.TypeOf(v); !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	return found
}

func decode(t *testing.T, data string) (docs []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(data))
	for {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, v)
	}
}

// TestEveryPathIsTrue runs every path that a preview prints on the data: it must compile, run without an error, and
// find exactly the types that are announced.
func TestEveryPathIsTrue(t *testing.T) {
	for _, set := range dataSets {
		t.Run(set.name, func(t *testing.T) {
			for seed := range uint64(12) {
				data := set.make(rand.New(rand.NewPCG(seed, 1)))
				docs := decode(t, data)
				for _, chars := range []int{300, 1000, 100_000} {
					checkPaths(t, data, docs, chars)
				}
				if set.name != "random" && set.name != "weird keys" && seed == 1 {
					break
				}
			}
		})
	}
}

func checkPaths(t *testing.T, data string, docs []any, chars int) {
	t.Helper()
	res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: chars, Window: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Verbatim {
		return
	}
	found, tries := claims(t, res.Text)
	found = append(found, repeated(found)...)
	for _, c := range found {
		got := run(t, c.path, docs)
		for _, name := range got {
			if !slices.Contains(c.types, name) && (name != "null" || !c.null) {
				t.Errorf("chars %d: %s is announced as %v, but gives %s\n%s", chars, c.path, c.types, name, res.Text)
			}
		}
		for _, name := range c.types {
			if !slices.Contains(got, name) {
				t.Errorf("chars %d: %s is announced as %v, but gives only %v\n%s", chars, c.path, c.types, got, res.Text)
			}
		}
	}
	for _, program := range tries {
		run(t, program, docs)
	}
	if chars > 10_000 && strings.Contains(res.Text, "more key") {
		t.Errorf("chars %d: keys are left out although there is room\n%s", chars, res.Text)
	}
	if len(found) == 0 && chars > 500 {
		t.Errorf("chars %d: no paths\n%s", chars, res.Text)
	}
	if t.Failed() {
		t.FailNow()
	}
}
