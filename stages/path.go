package stages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A path names places in a JSON value: .a, .a.b, ."a-b", .["a"], .[0], .[-1], .[]. It is written as in jq and finds the
// same values, but as the bytes that stand there, and those of an object in their order. The empty path is ".".
type path []pathStep

type pathStep struct {
	key   string
	index int
	goes  stepKind
	try   bool // written with "?": a value that it does not fit gives nothing
}

type stepKind int

const (
	toMember stepKind = iota
	toElement
	toAll
)

// Bounds of a path.
const (
	maxPathBytes = 1 << 10
	maxPathSteps = 32
)

// stepForm is one step of a path: an index or all, a key in brackets, a name, a key behind a dot; then "?".
var stepForm = lazy.Regexp(`^(?:\.?\[(-?[0-9]+)?\]|\.?\[(` + quotedForm + `)\]|\.([A-Za-z_][A-Za-z0-9_]*)|\.(` + quotedForm + `))(\?)?`)

const quotedForm = `"(?:[^"\\]|\\.)*"`

// parsePath reads a path. Its error says where the text stops to be one.
func parsePath(text string) (path, error) {
	if len(text) > maxPathBytes {
		return nil, fmt.Errorf("a path has at most %d bytes, got %d", maxPathBytes, len(text))
	}
	rest := strings.Trim(text, blanks)
	if rest == "." {
		return path{}, nil
	}
	p := path{}
	for rest != "" || len(p) == 0 {
		found := stepForm().FindStringSubmatch(rest)
		s, err := newStep(found)
		if err != nil || len(p) == 0 && rest[0] != '.' {
			rest = strings.TrimLeft(rest, blanks)
			at := utf8.RuneCountInString(text[:strings.LastIndex(text, rest)]) + 1
			return nil, fmt.Errorf("unexpected %q at character %d of %s", texts.Cut(rest, 20), at, texts.Quote(text))
		}
		if len(p) == maxPathSteps {
			return nil, fmt.Errorf("a path has at most %d steps", maxPathSteps)
		}
		p, rest = append(p, s), rest[len(found[0]):]
	}
	return p, nil
}

// newStep makes the step of a match of [stepForm].
func newStep(found []string) (s pathStep, err error) {
	if found == nil {
		return s, errors.New("no step")
	}
	index, key, name := found[1], found[2]+found[4], found[3]
	s.try = found[5] != ""
	switch {
	case name != "":
		s.key = name
	case key != "": // one with an interpolation of jq is no JSON string
		err = json.Unmarshal([]byte(key), &s.key)
	case index != "":
		s.goes = toElement
		s.index, err = strconv.Atoi(index)
	default:
		s.goes = toAll
	}
	return s, err
}

// A misfit is the error of a path that a value does not fit.
type misfit struct{ problem string }

func (m *misfit) Error() string { return m.problem }

// each gives all that stands at the path in value, which is valid JSON, to yield: nil for what is missing. Its work is
// at most two readings of value per step, and it ends with ctx.
func (p path) each(ctx context.Context, value json.RawMessage, yield func(json.RawMessage) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(p) == 0 {
		return yield(value)
	}
	s := p[0]
	next := func(v json.RawMessage) error { return p[1:].each(ctx, v, yield) }
	switch c := kindOfValue(value); {
	case s.goes == toAll && (c == '[' || c == '{'):
		for _, v := range parts(value) {
			if err := next(v); err != nil {
				return err
			}
		}
		return nil
	case s.goes == toMember && c == '{':
		return next(memberOf(value, s.key))
	case s.goes == toElement && c == '[':
		return next(elementOf(value, s.index))
	case s.goes != toAll && c == 'n':
		return next(nil)
	case s.try:
		return nil
	}
	return &misfit{fmt.Sprintf("cannot go to %s of %s", s, describe(value))}
}

// one returns what stands at a path that names one place, nil if nothing does.
func (p path) one(ctx context.Context, value json.RawMessage) (found json.RawMessage, err error) {
	err = p.each(ctx, value, func(v json.RawMessage) error { found = v; return nil })
	return found, err
}

// fixed returns the path up to its first iteration.
func (p path) fixed() path {
	if i := slices.IndexFunc(p, func(s pathStep) bool { return s.goes == toAll }); i >= 0 {
		return p[:i]
	}
	return p
}

// optional reports whether there may be nothing at the beginning of the path: a step of it, up to the first iteration,
// is written with "?".
func (p path) optional() bool {
	return slices.ContainsFunc(p[:min(len(p.fixed())+1, len(p))], func(s pathStep) bool { return s.try })
}

// with returns the path with one more member.
func (p path) with(key string) path { return append(p[:len(p):len(p)], pathStep{key: key}) }

// String writes the path as it is parsed.
func (p path) String() string {
	text := ""
	for i, s := range p {
		step := s.String()
		if i > 0 && s.goes != toMember {
			step = step[1:]
		}
		text += step
	}
	if text == "" {
		return "."
	}
	return text
}

func (s pathStep) String() string {
	text := "." + s.key
	switch {
	case s.goes == toAll:
		text = ".[]"
	case s.goes == toElement:
		text = fmt.Sprintf(".[%d]", s.index)
	case !identifier(s.key):
		text = "." + string(appendString(nil, []byte(s.key)))
	}
	if s.try {
		text += "?"
	}
	return text
}

// A pathField is a field of a stage that holds a path. Without a name it is one that the first result has shown.
type pathField struct {
	name string // such as "paginate.next"
	text string
	path path
}

// compilePath reads the path of a field with the plan. It returns nil for an empty text. A path that iterates is refused
// where one value is needed.
func compilePath(name, text string, many bool) (*pathField, error) {
	if text == "" {
		return nil, nil
	}
	p, err := parsePath(text)
	switch {
	case err != nil:
		return nil, fielded(name, Errorf(InvalidPipeline, pathHint(text), "%s is not a path: %w", name, err))
	case !many && len(p.fixed()) < len(p):
		return nil, fielded(name, Errorf(InvalidPipeline, "name one of them by its index, such as .links[0] or .data[-1].id",
			"%s must name one place, and %s may name several", name, texts.Quote(text)))
	}
	return &pathField{name, text, p}, nil
}

// looksLikeJQ finds what jq programs have and paths do not: operators, calls, slices, keywords and the commonest filters.
var looksLikeJQ = lazy.Regexp(`[|(){},;+*=<>]|//|\.\.|\[[^]"]*:|\b(and|or|not|if|then|length|keys|first|last|empty|map|select|add|tostring|tonumber)\b`)

// pathHint says what to write instead of a text that is no path. Empty: there is nothing special about it.
func pathHint(text string) string {
	dotted := "." + strings.TrimLeft(text, "$.")
	if _, err := parsePath(dotted); err == nil && !looksLikeJQ().MatchString(text) {
		return fmt.Sprintf("a path begins with a dot: %q", dotted)
	}
	if looksLikeJQ().MatchString(text[:min(len(text), maxPathBytes)]) {
		return `write a path, such as .meta.cursor, .data[-1].id or .rows[]?.id ("?" for what may be missing); jq programs are not run here: ` +
			"filter or change the items with a jq command stage behind this one"
	}
	return ""
}

// one returns what stands at a path that names one place, nil if nothing does.
func (f *pathField) one(ctx context.Context, value json.RawMessage) (json.RawMessage, error) {
	found, err := f.path.one(ctx, value)
	return found, f.failed(err)
}

// failed explains that a result does not fit the path.
func (f *pathField) failed(err error) error {
	bad, ok := err.(*misfit)
	switch {
	case !ok:
		return err
	case f.name == "":
		return Errorf(ToolError, `name the places with "next" and "items"`, "this page is structured differently from the first one: %w", bad)
	}
	return Errorf(CommandFailed, `look at the result with a preview stage; a "?" behind a step passes over what does not fit`,
		"%s %s: %w", f.name, texts.Quote(f.text), bad)
}
