package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schema comes from a server that nobody here has read. These bounds keep one from taking the process down; a schema
// beyond them is not compiled, and its server is left to judge.
const (
	maxSchema   = 1 << 20 // bytes of a schema
	maxDepth    = 128     // nested brackets in a schema or in arguments
	maxExponent = 400     // decimal exponent of a number: exact arithmetic on 1e999999999 would fill the memory
	maxDigits   = 1000    // consecutive digits of a number: exact arithmetic on millions of them takes minutes
	maxSteps    = 1 << 17 // subschemas applied in one check: references can make that exponential in their number
)

// location is where the schema is mounted. Nothing is ever loaded from it.
const location = "mem:///schema"

// dialects are tried in order: a schema that names none is 2020-12 by the MCP specification, but many are older ones.
var dialects = []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4}

// knownDialects are parts of the "$schema" URLs that the compiler knows; any other is dropped.
var knownDialects = []string{
	"json-schema.org/draft/2020-12/", "json-schema.org/draft/2019-09/",
	"json-schema.org/draft-07/", "json-schema.org/draft-06/", "json-schema.org/draft-04/",
}

// A budget is what one check may still spend.
type budget struct{ left int }

func (b *budget) spent() bool { return b.left <= 0 }

// step counts one application of a subschema. Once the budget is spent every subschema fails at once, without looking
// at its children, so that the check ends quickly; its outcome is not used then.
func (b *budget) step(any) error {
	if b.spent() {
		return errSpent
	}
	b.left--
	return nil
}

var errSpent = errors.New("budget spent")

// A validator is a compiled schema. It may be used concurrently.
type validator struct {
	whole   *jsonschema.Schema
	partial *jsonschema.Schema            // whole, but for what only complete arguments can satisfy
	at      map[string]*jsonschema.Schema // by location

	mu     sync.Mutex // a compiled schema can only hold one budget, so checks take turns
	budget *budget    // guarded by mu
}

// compile compiles a schema in the first dialect that takes it. The error is that of the first dialect.
func compile(raw json.RawMessage) (*validator, error) {
	if err := bounded(raw, maxSchema); err != nil {
		return nil, err
	}
	var first error
	for i, dialect := range dialects {
		v, err := compileAs(raw, dialect, i == 0)
		if err == nil {
			return v, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func compileAs(raw json.RawMessage, dialect *jsonschema.Draft, trust bool) (*validator, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if root, ok := doc.(map[string]any); ok {
		delete(root, "$id") // where the schema was published matters only to references that we do not follow
		if _, isString := root["id"].(string); isString {
			delete(root, "id")
		}
		if !trust || !known(root["$schema"]) {
			delete(root, "$schema")
		}
	}
	v := &validator{budget: new(budget), at: map[string]*jsonschema.Schema{}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(dialect)
	c.UseRegexpEngine(engine(v.budget))
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	if v.whole, err = c.Compile(location); err != nil {
		return nil, shorten(err)
	}
	if err := v.meter(v.whole); err != nil {
		return nil, err
	}
	v.partial = lenient(v.whole, new(64))
	return v, nil
}

// known reports whether the compiler knows the dialect that a schema declares.
func known(declared any) bool {
	url, _ := declared.(string)
	return slices.ContainsFunc(knownDialects, func(part string) bool { return strings.Contains(url, part) })
}

// noLoader refuses every document: fetching what a schema refers to would let a server make requests in our name.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to another document, %s, and those are not fetched", url)
}

// shorten cuts the compiler's messages, which can be as long as the schema, to their first lines.
func shorten(err error) error {
	text := strings.ReplaceAll(err.Error(), location, "")
	lines := strings.SplitN(text, "\n", 5)
	return errors.New(cut(strings.Join(lines[:min(len(lines), 4)], "; "), 400))
}

// meter makes every subschema count a step before anything else that it does. The place for that is its format, which
// is tested before the children; formats themselves are left to the server to judge, as JSON Schema 2020-12 has it.
func (v *validator) meter(root *jsonschema.Schema) error {
	step := &jsonschema.Format{Name: "step", Validate: v.budget.step}
	todo := []*jsonschema.Schema{root}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s == nil || s.Format == step {
			continue
		}
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return errors.New("the schema uses dynamic references, which are not supported here")
		}
		s.Format = step
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) })
		v.at[s.Location] = s
		todo = append(todo, children(s)...)
	}
	return nil
}

// hasDefault reports whether a property has a default. Servers that publish the schema of their parsed arguments list
// such properties as required, and take calls without them.
func hasDefault(s *jsonschema.Schema) bool { return s != nil && s.Default != nil }

// children returns the subschemas of s; some may be nil.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema,
	}
	all = slices.Concat(all, s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems)
	for _, sub := range s.Properties {
		all = append(all, sub)
	}
	for _, sub := range s.PatternProperties {
		all = append(all, sub)
	}
	for _, sub := range s.DependentSchemas {
		all = append(all, sub)
	}
	for _, either := range s.Dependencies {
		all = append(all, asSchemas(either)...)
	}
	for _, either := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		all = append(all, asSchemas(either)...)
	}
	return all
}

// asSchemas returns the schemas in a keyword that may also hold something else.
func asSchemas(either any) []*jsonschema.Schema {
	switch v := either.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// lenient returns a copy of s without the keywords that more fields could still satisfy, or could not yet decide. It
// follows references and allOf, which speak of the same object; left bounds how often.
func lenient(s *jsonschema.Schema, left *int) *jsonschema.Schema {
	if s == nil || *left <= 0 {
		return nil
	}
	*left--
	c := *s
	c.Required, c.MinProperties, c.Const, c.Enum = nil, nil, nil, nil
	c.AnyOf, c.OneOf, c.Not, c.If, c.Then, c.Else = nil, nil, nil, nil, nil, nil
	c.Dependencies, c.DependentRequired, c.DependentSchemas, c.UnevaluatedProperties = nil, nil, nil, nil
	c.Ref = lenient(s.Ref, left)
	c.AllOf = nil
	for _, sub := range s.AllOf {
		if sub = lenient(sub, left); sub != nil {
			c.AllOf = append(c.AllOf, sub)
		}
	}
	return &c
}

// check validates value and returns its flaws in a stable order. It finds none when the check costs too much.
func (v *validator) check(value any, partial bool) []flaw {
	schema := v.whole
	if partial {
		schema = v.partial
	}
	err := v.validate(schema, value)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil
	}
	return tidy(finder{value: value, at: v.at}.flaws(invalid))
}

func (v *validator) validate(schema *jsonschema.Schema, value any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.budget.left = maxSteps
	err := schema.Validate(value)
	if v.budget.spent() {
		return nil
	}
	return err
}

// bounded refuses JSON that is too large, too deep or has numbers too large to compute with.
func bounded(raw []byte, size int) error {
	if len(raw) > size {
		return fmt.Errorf("%d bytes of JSON are more than %d", len(raw), size)
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = endOfString(raw, i)
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c >= '0' && c <= '9':
			n := digits(raw[i:])
			if n > maxDigits {
				return fmt.Errorf("a number has %d digits, more than %d", n, maxDigits)
			}
			i += n - 1
		case c == 'e' || c == 'E':
			exponent := bytes.TrimLeft(raw[i+1:], "+-")
			exponent = exponent[:digits(exponent)]
			if n, err := strconv.Atoi(string(exponent)); len(exponent) > 0 && (err != nil || n > maxExponent) {
				return fmt.Errorf("a number has the exponent %s, beyond %d", cut(string(exponent), 20), maxExponent)
			}
		}
	}
	return nil
}

// endOfString returns the index of the quote that closes the string at raw[i], or the end of raw.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}

// digits returns how many digits begin raw.
func digits(raw []byte) int {
	n := 0
	for n < len(raw) && raw[n] >= '0' && raw[n] <= '9' {
		n++
	}
	return n
}
