package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Schemas come from servers that are not trusted. These bounds protect the process: a schema beyond them is not compiled,
// and its server checks alone. See also [Limits], [measure] and [maxInstructions].
const (
	maxSchemaValues = 1 << 18 // values and names in a schema
	maxDepth        = 128     // nested brackets in a schema or in arguments
	maxExponent     = 400     // decimal exponent of a number: exact arithmetic on 1e999999999 would fill the memory
	maxDigits       = 1000    // consecutive digits of a number: exact arithmetic on millions of them takes minutes
)

// location is where the schema is mounted. Nothing is ever loaded from it.
const location = "mem:///schema"

// dialects are tried in order: by the MCP specification a schema that names none is 2020-12, but many are older.
var dialects = []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4}

// knownDialects are parts of the "$schema" URLs that the compiler knows; other URLs are removed.
var knownDialects = []string{
	"json-schema.org/draft/2020-12/", "json-schema.org/draft/2019-09/",
	"json-schema.org/draft-07/", "json-schema.org/draft-06/", "json-schema.org/draft-04/",
}

// A validator is a compiled schema. It may be used concurrently.
type validator struct {
	root    *jsonschema.Schema
	choices map[any]choice // by the keywords const and enum of subschemas
	size    int64          // estimated memory, in bytes
}

// A choice is the values of a const or an enum.
type choice struct {
	texts map[string]struct{} // canonical
	shown []string            // at most maxShownValues of them, for messages
}

func newChoice(steps *Steps, values []any) choice {
	c := choice{map[string]struct{}{}, shownAll(values, maxShownValues)}
	steps.Take(4 * len(c.shown))
	for _, v := range values {
		c.texts[string(canonical(nil, v, steps))] = struct{}{}
	}
	return c
}

// compile compiles a schema in the first dialect that accepts it. The error is that of the first dialect.
func compile(steps *Steps, raw json.RawMessage) (*validator, error) {
	doc, err := newDocument(raw, steps)
	if err != nil {
		return nil, err
	}
	w, err := weigh(doc)
	if err != nil {
		return nil, err
	}
	var first error
	for i, dialect := range dialects {
		v, err := compileAs(steps, raw, dialect, i == 0)
		if err == nil {
			v.size += w.size(raw)
			return v, nil
		}
		first = cmp.Or(first, err)
		if steps.Err() != nil {
			return nil, steps.Err()
		}
	}
	return nil, first
}

func compileAs(steps *Steps, raw json.RawMessage, dialect *jsonschema.Draft, trust bool) (*validator, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if root, ok := doc.(map[string]any); ok {
		delete(root, "$id") // only references to other documents need it
		if _, isString := root["id"].(string); isString {
			delete(root, "id")
		}
		if !trust || !known(root["$schema"]) {
			delete(root, "$schema")
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(dialect)
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		if steps.Err() != nil {
			return nil, steps.Err()
		}
		return compilePattern(text)
	})
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(location)
	if err != nil {
		return nil, shorten(err)
	}
	v := &validator{root: root, choices: map[any]choice{}}
	return v, v.prepare(steps)
}

// known reports whether the compiler knows the dialect that a schema declares.
func known(declared any) bool {
	url, _ := declared.(string)
	return slices.ContainsFunc(knownDialects, func(part string) bool { return strings.Contains(url, part) })
}

// noLoader refuses every document: a server could otherwise make requests in our name.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to another document, %s, and those are not fetched", url)
}

// shorten cuts the compiler's messages, which can be as long as the schema, to their first lines.
func shorten(err error) error {
	text := strings.ReplaceAll(err.Error(), location, "")
	lines := strings.SplitN(text, "\n", 5)
	return errors.New(texts.Fit(strings.Join(lines[:min(len(lines), 4)], "; "), 400))
}

// prepare adapts every subschema to our evaluator.
func (v *validator) prepare(steps *Steps) error {
	all := map[*jsonschema.Schema]bool{}
	collect(reflect.ValueOf(v.root), all)
	for s := range all {
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return errors.New("the schema uses dynamic references, which are not supported here")
		}
		s.Format = nil // the server checks it; by JSON Schema 2020-12 it is an annotation
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) })
		if s.Const != nil {
			v.choices[s.Const] = newChoice(steps, []any{*s.Const})
		}
		if s.Enum != nil {
			v.choices[s.Enum] = newChoice(steps, s.Enum.Values)
		}
	}
	for _, c := range v.choices {
		v.size += int64(64 * len(c.shown))
	}
	return steps.Err()
}

// hasDefault reports whether a property has a default. Some servers publish the schema of their parsed arguments: it
// lists such properties as required, but calls may omit them.
func hasDefault(s *jsonschema.Schema) bool { return s != nil && s.Default != nil }

// collect adds the schemas in a keyword, or behind one.
func collect(keyword reflect.Value, all map[*jsonschema.Schema]bool) {
	switch keyword.Kind() {
	case reflect.Interface:
		collect(keyword.Elem(), all)
	case reflect.Slice, reflect.Map:
		for _, element := range keyword.Seq2() {
			collect(element, all)
		}
	case reflect.Pointer:
		s, ok := keyword.Interface().(*jsonschema.Schema)
		if !ok || s == nil || all[s] {
			return
		}
		all[s] = true
		for field, value := range keyword.Elem().Fields() {
			if field.IsExported() {
				collect(value, all)
			}
		}
	}
}

// check validates value and returns its flaws in a stable order. The error is the reason why the value could not be
// checked.
func (v *validator) check(steps *Steps, value any, partial bool) ([]flaw, error) {
	e := evaluation{v: v, steps: steps}
	e.apply(&frame{schema: v.root, partial: partial, open: opened(value, v.root, false, &e)}, value)
	flaws := tidy(e.flaws, steps)
	return flaws, steps.Err()
}

// bounded returns the number of values and names in JSON. It refuses JSON that is too large or too deep, or has numbers too
// large for arithmetic.
func bounded(raw []byte, size, values int) (int, error) {
	if len(raw) > size {
		return 0, fmt.Errorf("%d bytes of JSON are more than %d", len(raw), size)
	}
	depth, parts := 0, 1
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = endOfString(raw, i)
		case c == '{' || c == '[':
			parts++
			if depth++; depth > maxDepth {
				return 0, fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == ',' || c == ':':
			parts++
		case c >= '0' && c <= '9':
			n := digits(raw[i:])
			if n > maxDigits {
				return 0, fmt.Errorf("a number has %d digits, more than %d", n, maxDigits)
			}
			i += n - 1
		case c == 'e' || c == 'E':
			exponent := bytes.TrimLeft(raw[i+1:], "+-")
			exponent = exponent[:digits(exponent)]
			if n, err := strconv.Atoi(string(exponent)); len(exponent) > 0 && (err != nil || n > maxExponent) {
				return 0, fmt.Errorf("a number has the exponent %s, beyond %d", texts.Fit(string(exponent), 20), maxExponent)
			}
		}
	}
	if parts > values {
		return 0, manyValues(values)
	}
	return parts, nil
}

// manyValues is the error of JSON with too many values.
type manyValues int

func (n manyValues) Error() string { return fmt.Sprintf("more than %d values", int(n)) }

// endOfString returns the index of the quote that closes the string at raw[i], or the end of raw.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}

// digits returns the number of digits at the beginning of raw.
func digits(raw []byte) int {
	n := 0
	for n < len(raw) && raw[n] >= '0' && raw[n] <= '9' {
		n++
	}
	return n
}

// The library compiles a schema in time quadratic in its subschemas, stores the place of each, and cannot be interrupted.
// So each schema is measured first.
const (
	maxSubschemas = 1 << 12
	maxPlaces     = 2 << 20 // bytes of the places of all subschemas
	maxLinks      = 1 << 21 // targets of references and ids, times subschemas: each may copy all known places
)

// A weight measures the work of compiling a schema. After an error nothing more is measured.
type weight struct {
	steps        *Steps
	err          error
	subschemas   int             // objects and booleans, of which most are subschemas
	places       int             // bytes of their places
	links        map[string]bool // targets of references, and ids
	instructions int
}

// weigh measures a schema. It returns an error if compiling costs too much.
func weigh(doc *document) (weight, error) {
	w := weight{steps: doc.steps, links: map[string]bool{}}
	w.add(doc.root, len(location))
	if w.err == nil && len(w.links)*w.subschemas > maxLinks {
		w.err = fmt.Errorf("the schema has references to %d places among %d parts, which is too much to resolve", len(w.links), w.subschemas)
	}
	return w, w.err
}

// take spends steps and reports whether the measurement goes on.
func (w *weight) take(n int) bool {
	if w.err == nil && !w.steps.Take(n) {
		w.err = w.steps.Err()
	}
	return w.err == nil
}

func (w *weight) add(n *node, place int) {
	if !w.take(1) {
		return
	}
	if n.is('t') || n.is('f') || n.is('{') {
		w.subschema(place)
	}
	for _, p := range n.parts {
		if n.is('[') {
			w.add(p.value, place+8)
			continue
		}
		w.keyword(p.name, p.value)
		w.add(p.value, place+len(p.name)+1)
	}
}

// keyword weighs a member that may be a keyword.
func (w *weight) keyword(name string, value *node) {
	switch name {
	case "patternProperties":
		for _, p := range value.object() {
			w.pattern(p.name)
		}
	case "pattern":
		w.pattern(value.text())
	case "$id", "id", "$ref", "$recursiveRef", "$dynamicRef":
		if text := value.text(); text != "" {
			w.links[text] = true
		}
	}
}

func (w *weight) subschema(place int) {
	w.subschemas++
	w.places += place
	switch {
	case w.err != nil:
	case w.subschemas > maxSubschemas:
		w.err = fmt.Errorf("the schema has more than %d parts", maxSubschemas)
	case w.places > maxPlaces:
		w.err = fmt.Errorf("the names in the schema are too long for its depth: its places take more than %s", texts.Bytes(maxPlaces))
	}
}

func (w *weight) pattern(text string) {
	if !w.take(len(text)) {
		return
	}
	n, err := instructions(text)
	if w.instructions += n; err == nil && w.instructions > maxInstructions {
		err = errInstructions
	}
	if w.err = err; err == nil {
		w.take(n)
	}
}

// size estimates the memory of a compiled schema in bytes.
func (w *weight) size(schema []byte) int64 {
	return int64(4*len(schema) + 2*w.places + 1500*w.subschemas + 100*w.instructions)
}
