package schemas

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

const (
	maxStage       = 16 << 20 // bytes of the JSON of one stage, nested ones included
	maxStageValues = 1 << 16  // values and names in it
)

// maxFlaws is the number of reported mistakes of one stage; more are counted only. An object with more is not a stage, and
// describing all could take longer than a run.
const maxFlaws = 100

// StageChecker checks the JSON of stages against the schemas of their kinds. It implements [stages.Schemas] and may be used
// concurrently.
type StageChecker struct {
	names []string
	kinds map[string]kindSchema
}

// A kindSchema is the schema of the stages of one kind.
type kindSchema struct {
	validator *validator
	fields    []string // in the order of the schema
	nested    []string // the fields that hold stages
}

var _ stages.Schemas = (*StageChecker)(nil)

// Stages returns the check of stages of all kinds, which is prepared once: that takes longer than the rest of a gateway.
var Stages = sync.OnceValue(func() *StageChecker { return NewStageChecker(stages.Kinds()) })

// NewStageChecker prepares the check of stages of the given kinds. It panics if the schema of a Go type does not compile.
func NewStageChecker(kinds []stages.Kind) *StageChecker {
	s := &StageChecker{kinds: map[string]kindSchema{}}
	for _, k := range kinds {
		schema := checked.kind(k)
		v, err := compile(NewSteps(context.Background(), DefaultSteps), marshal(schema))
		if err != nil {
			panic(fmt.Sprintf("schemas: compiling the schema of stage type %q: %v", k.Name, err))
		}
		s.names = append(s.names, k.Name)
		s.kinds[k.Name] = kindSchema{v, slices.Collect(schema.Properties.KeysFromOldest()), nestedFields(k)}
	}
	return s
}

// nestedFields returns the fields of a kind that hold stages.
func nestedFields(k stages.Kind) (names []string) {
	for name, field := range published.kind(k).Properties.FromOldest() {
		if strings.Contains(string(marshal(field)), stageRef) {
			names = append(names, name)
		}
	}
	return names
}

// Check returns every mistake of one stage, each with Code, Field, Msg and Hint. A stage of an unknown kind has only
// that mistake. Nested stages are not checked.
func (s *StageChecker) Check(kind string, stage []byte) []*stages.Error {
	if _, err := bounded(stage, maxStage, maxStageValues); err != nil {
		return []*stages.Error{wrong("", "make the stage smaller and flatter", "a stage cannot be read: %w", err)}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(stage))
	if err != nil {
		return []*stages.Error{wrong("", "", "a stage is not valid JSON: %w", err)}
	}
	steps := NewSteps(context.Background(), DefaultSteps)
	fields, ok := value.(map[string]any)
	if !ok {
		return []*stages.Error{wrong("", `write a stage as {"type": ..., ...}`, "a stage must be a JSON object, got %s", show(value))}
	}
	sh, ok := s.kinds[kind]
	if !ok {
		return []*stages.Error{s.badKind(kind)}
	}
	errs := readNode(stage).repeated(nil, sh.nested)
	flaws, err := sh.validator.check(steps, value, false)
	if err != nil {
		return append(errs, wrong("", "make the stage smaller and flatter", "a stage cannot be checked: %w", err))
	}
	more := max(0, len(flaws)-maxFlaws)
	t := teller{value, "the stage", NewSteps(context.Background(), maxHintSteps)}
	errs = append(errs, s.errors(kind, fields, flaws[:len(flaws)-more], t)...)
	splitName(errs, fields)
	if more > 0 {
		errs = append(errs, wrong("", "fix the ones listed first", "the stage has %s", texts.Count(more, "more mistake")))
	}
	return errs
}

// wrong makes the error for one field of a stage.
func wrong(field, hint, format string, args ...any) *stages.Error {
	err := stages.Errorf(stages.InvalidPipeline, hint, format, args...)
	err.Field = field
	return err
}

// splitName corrects a stage that names a tool as SERVER/TOOL in one field and lacks the other field.
func splitName(errs []*stages.Error, fields map[string]any) {
	for _, pair := range [][2]string{{"server", "name"}, {"name", "server"}} {
		missing, given := pair[0], pair[1]
		i := slices.IndexFunc(errs, func(e *stages.Error) bool { return e.Field == missing && fields[missing] == nil })
		text, _ := fields[given].(string)
		server, tool, ok := strings.Cut(text, "/")
		if i < 0 || !ok || server == "" || tool == "" {
			continue
		}
		if fix, err := json.Marshal(map[string]string{"server": server, "name": tool}); err == nil {
			errs[i].Hint, errs[i].Fix = "server and name are two fields", fix
		}
	}
}

// errors returns the errors of flaws. A wrong name makes two flaws, an unknown field and the missing field that was meant:
// only the first becomes an error.
func (s *StageChecker) errors(kind string, fields map[string]any, flaws []flaw, t teller) (errs []*stages.Error) {
	var missing []string
	for _, fl := range flaws {
		if fl.about == missingField {
			missing = append(missing, t.field(fl))
		}
	}
	implied := map[string]bool{}
	for _, fl := range flaws {
		hint := ""
		if fl.about == "" && lookup(t.value, fl.path) == nil && !slices.Contains(s.kinds[kind].validator.root.Required, fl.path[0]) {
			hint = "leave it out"
		}
		if fl.about == unknownField && len(fl.path) == 0 {
			target := s.closestField(kind, fl.member, fields, missing)
			implied[target], hint = true, s.fieldHint(kind, fl.member, target)
		}
		errs = append(errs, t.asError(fl, hint))
	}
	return slices.DeleteFunc(errs, func(e *stages.Error) bool { return implied[e.Field] && strings.HasPrefix(e.Msg, missingField) })
}

// asError makes the error of a flaw in a stage.
func (t teller) asError(fl flaw, hint string) *stages.Error {
	said, own := t.tell(fl)
	hint = cmp.Or(hint, own)
	if fl.fixed && hint != "" { // the hint says that it is one of them
		fl.fixed = false
		said, _ = t.tell(fl)
	}
	if fl.about == fieldName {
		fl.about = "" // the field that has the name
	}
	return wrong(t.field(fl), hint, "%s", said)
}

// closestField returns the field of a kind that an unknown name probably means, or "". It is not a field that the stage already
// has.
func (s *StageChecker) closestField(kind, name string, given map[string]any, missing []string) string {
	free := slices.DeleteFunc(slices.Clone(s.kinds[kind].fields), func(f string) bool { _, ok := given[f]; return ok })
	for _, target := range synonyms[strings.ToLower(name)] {
		if slices.Contains(free, target) {
			return target
		}
	}
	if best := nearest.Name(name, missing); best != "" {
		return best
	}
	return nearest.Name(name, free)
}

// fieldHint proposes the field that was meant. Otherwise it names the kinds that have a field, if there are any, and the
// fields of this kind.
func (s *StageChecker) fieldHint(kind, name, target string) string {
	if target != "" {
		return meant(texts.JSON(target))
	}
	var have []string
	for _, other := range s.names {
		if slices.Contains(s.kinds[other].fields, name) {
			have = append(have, other)
		}
	}
	hint := fmt.Sprintf("the fields of a %s stage are %s", kind, strings.Join(s.kinds[kind].fields, ", "))
	if len(have) > 0 {
		hint = fmt.Sprintf("it belongs to %s stages; %s", alternatives(have), hint)
	}
	return hint
}

// badKind returns the error of a stage of an unknown kind.
func (s *StageChecker) badKind(kind string) *stages.Error {
	hint := "the types are " + strings.Join(s.names, ", ")
	if slices.Contains(programs, kind) && slices.Contains(s.names, "command") {
		hint = fmt.Sprintf(`write "type": "command", "command": %q`, kind)
	} else if best := s.meantKind(kind); best != "" {
		hint = fmt.Sprintf("did you mean %q? %s", best, hint)
	}
	return wrong("type", hint, "unknown stage type %s", texts.JSON(texts.Fit(kind, maxShown)))
}

func (s *StageChecker) meantKind(name string) string {
	if target := kindSynonyms[strings.ToLower(name)]; slices.Contains(s.names, target) {
		return target
	}
	return nearest.Name(name, s.names)
}

// repeated returns an error for every member that an object holds twice: JSON decoders would drop the first silently.
// Fields in skip hold stages with their own check.
func (n *node) repeated(path []string, skip []string) []*stages.Error {
	var errs []*stages.Error
	seen := map[string]int{}
	for _, m := range n.object() {
		at := append(slices.Clone(path), m.name)
		if seen[m.name]++; seen[m.name] == 2 {
			place := field(nil, at)
			errs = append(errs, wrong(place, "keep one of the two", "field %s is given twice", texts.JSON(place)))
		}
		if !slices.Contains(skip, m.name) {
			errs = append(errs, m.value.repeated(at, nil)...)
		}
	}
	return errs
}
