package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Draft is a plan that becomes the content of a file.
type Draft struct {
	Description string
	Pipeline    json.RawMessage // an array of stages

	// Ran says that the pipeline was run as it is, so that nothing in it is a parameter yet.
	Ran bool

	// Parameters are a JSON Schema as in a file, or an object with a member for each parameter: its JSON Schema, and beside that
	// "stage" and "arg" name the literal whose place it takes, and "required": true keeps the literal from being its default. One
	// without a default is required, unless "required" is false.
	Parameters json.RawMessage
}

// Text returns the content of the file. It says everything that is wrong with the parameters, and nothing of the rest, which
// [Parse] reads.
func (d Draft) Text() ([]byte, []*stages.Error) {
	if len(d.Pipeline)+len(d.Parameters)+len(d.Description) > MaxFile {
		return nil, refused(stages.InvalidArguments, "keep data out of it: a parameter or an earlier stage brings it", "the pipeline is larger than %s", texts.Bytes(MaxFile))
	}
	var text string
	if json.Unmarshal(d.Pipeline, &text) == nil { // some models send the array so
		d.Pipeline = json.RawMessage(text)
	}
	if tooDeep(d.Pipeline) || tooDeep(d.Parameters) {
		return nil, refused(stages.InvalidPipeline, "make it flatter", "brackets are nested deeper than %d", maxNested)
	}
	plan, err := hujson.Parse(d.Pipeline)
	if err != nil {
		return nil, refused(stages.InvalidPipeline, "send it as an array", "the pipeline is not an array of stages")
	}
	for v := range plan.All() { // kept runs have escapes that nobody reads well
		if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == '"' {
			v.Value = hujson.String(literal.String())
		}
	}
	w := drafter{plan: &plan}
	eachStage(&plan, "", "", func(stage *hujson.Value, _ string, at stages.Place) {
		if kind := stages.KindNamed(textOf(member(stage, "type"))); kind != nil && kind.Begins {
			w.errs = append(w.errs, stages.Errorf(stages.InvalidPipeline, "save the run that it begins with, or give the whole as pipeline",
				"stage %s begins with what an earlier run has left, which is not kept for long", at))
		}
		if args := member(stage, "args"); d.Ran && args != nil {
			escape(args)
		}
	})
	schema := w.parameters(d.Parameters)
	if w.errs != nil {
		return nil, w.errs
	}
	members := []exactjson.Member{{Name: "description", Value: json.RawMessage(hujson.String(d.Description))}, {Name: "pipeline", Value: plan.Pack()}}
	if schema != nil {
		members = slices.Insert(members, 1, exactjson.Member{Name: "parameters", Value: schema})
	}
	file, err := hujson.Parse(object(members))
	if err != nil {
		return nil, refused(stages.InvalidArguments, "send parameters as a JSON object", "the parameters are not JSON")
	}
	file.Format()
	return file.Pack(), nil
}

func refused(code stages.Code, hint, format string, args ...any) []*stages.Error {
	return []*stages.Error{stages.Errorf(code, hint, format, args...)}
}

// escape makes literals of the objects that would be read as parameters.
func escape(v *hujson.Value) {
	for name := range membersOf(v) {
		if name == holeKey || name == literalKey {
			*v = single(literalKey, *v)
			return
		}
	}
	for _, inner := range membersOf(v) {
		escape(inner)
	}
	if array, ok := v.Value.(*hujson.Array); ok {
		for i := range array.Elements {
			escape(&array.Elements[i])
		}
	}
}

// A drafter puts parameters into a plan.
type drafter struct {
	plan *hujson.Value
	errs []*stages.Error
}

func (w *drafter) fail(name, hint, format string, args ...any) {
	w.errs = append(w.errs, stages.Errorf(stages.InvalidArguments, hint, "parameters.%s: %s", texts.Cut(name, 60), fmt.Sprintf(format, args...)))
}

// parameters returns the schema of the parameters; nil: there are none.
func (w *drafter) parameters(given json.RawMessage) json.RawMessage {
	list, err := exactjson.List(given)
	if len(given) > 0 && err != nil {
		w.errs = append(w.errs, stages.Errorf(stages.InvalidArguments, `write {"state": {"stage": 1, "arg": "state"}}`, "parameters is not an object"))
		return nil
	}
	if slices.ContainsFunc(list, func(m exactjson.Member) bool { return m.Name == "type" && string(m.Value) == `"object"` }) {
		return given
	}
	var properties []exactjson.Member
	var required []string
	for _, m := range list {
		schema, needed := w.parameter(m)
		properties = append(properties, exactjson.Member{Name: m.Name, Value: schema})
		if needed {
			required = append(required, m.Name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	whole := []exactjson.Member{{Name: "type", Value: json.RawMessage(`"object"`)}, {Name: "properties", Value: object(properties)}}
	if required != nil {
		whole = append(whole, exactjson.Member{Name: "required", Value: json.RawMessage(texts.JSON(required))})
	}
	return object(whole)
}

// parameter puts one parameter into the plan, and returns its schema.
func (w *drafter) parameter(p exactjson.Member) (schema json.RawMessage, required bool) {
	list, err := exactjson.List(p.Value)
	if err != nil {
		w.fail(p.Name, `write {"stage": 1, "arg": "state"}, or a JSON Schema`, "it is not an object")
		return nil, false
	}
	var rest []exactjson.Member
	own := map[string]json.RawMessage{}
	for _, m := range list {
		switch inner, _ := exactjson.List(m.Value); {
		case m.Name == "stage", m.Name == "arg", m.Name == "required" && typeOf(m.Value) == "boolean":
			own[m.Name] = m.Value
		case m.Name == "schema" && inner != nil:
			rest = append(rest, inner...)
		default:
			rest = append(rest, m)
		}
	}
	required = string(own["required"]) == "true"
	if own["stage"] == nil && own["arg"] == nil {
		byDefault := slices.ContainsFunc(rest, func(m exactjson.Member) bool { return m.Name == "default" })
		return object(rest), required || own["required"] == nil && !byDefault
	}
	value := w.replace(p.Name, strings.Trim(string(own["stage"]), `"`), own["arg"])
	if value == nil {
		return nil, false
	}
	return object(described(rest, value, required)), required
}

// described adds to a schema what the literal says: its type, and the default.
func described(schema []exactjson.Member, value json.RawMessage, required bool) []exactjson.Member {
	has := map[string]string{}
	for _, m := range schema {
		has[m.Name] = string(m.Value)
	}
	if has["type"] == "" && has["enum"] == "" && has["const"] == "" && has["$ref"] == "" {
		schema = slices.Insert(schema, 0, exactjson.Member{Name: "type", Value: json.RawMessage(`"` + typeOf(value) + `"`)})
	}
	var text string
	if kind := strings.Trim(has["type"], `"`); json.Unmarshal(value, &text) == nil && kind != "string" && kind != "" && json.Valid([]byte(text)) {
		value = json.RawMessage(text) // an argument of a command is always text
	}
	if has["default"] == "" && !required {
		schema = append(schema, exactjson.Member{Name: "default", Value: value})
	}
	return schema
}

// typeOf is the type of a value in JSON Schema.
func typeOf(value json.RawMessage) string {
	switch c := value[0]; {
	case c == '-' || c >= '0' && c <= '9':
		if bytes.ContainsAny(value, ".eE") {
			return "number"
		}
		return "integer"
	default:
		return map[byte]string{'"': "string", '{': "object", '[': "array", 't': "boolean", 'f': "boolean", 'n': "null"}[c]
	}
}

// replace puts a parameter in the place of a literal, and returns that; nil: there is an error.
func (w *drafter) replace(name, stage string, arg json.RawMessage) json.RawMessage {
	var places []string
	var found *hujson.Value
	eachStage(w.plan, "", "", func(v *hujson.Value, _ string, at stages.Place) {
		if places = append(places, string(at)); string(at) == stage {
			found = v
		}
	})
	var wanted string
	switch {
	case found == nil:
		w.fail(name, "the stages are "+texts.Fit(strings.Join(places, ", "), 200), "there is no stage %s", texts.Quote(stage))
		return nil
	case json.Unmarshal(arg, &wanted) != nil:
		w.fail(name, `write {"stage": 1, "arg": "state"}`, "arg is not a string")
		return nil
	}
	args := member(found, "args")
	at, known := argumentNamed(args, wanted)
	if at == nil {
		part := args != nil && args.Value.Kind() == '[' && slices.ContainsFunc(known, func(arg string) bool { return arg != wanted && strings.Contains(arg, wanted) })
		hint := fmt.Sprintf(`name another stage, or give pipeline instead of run, with {"$param": %s} for the argument or %s in a jq program`, texts.JSON(name), inJQ(name))
		switch best := nearest.Name(wanted, known); {
		case best != "" && best != wanted:
			hint = fmt.Sprintf("did you mean %q?", best)
		case part:
			hint = "it is only a part of an argument there: give the stages as pipeline instead of run, with " + inJQ(name) + " in the jq program"
		case known != nil:
			hint = "its arguments are " + texts.Fit(texts.JSON(known), 300) + "; for a value within a jq program, give the stages as pipeline and write " + inJQ(name)
		}
		w.fail(name, hint, "stage %s has no argument %s, or more than one", stage, texts.Quote(wanted))
		return nil
	}
	if other := member(at, holeKey); other != nil {
		w.fail(name, "use one parameter for both", "that argument is the parameter %s already", texts.Quote(textOf(other)))
		return nil
	}
	value := standard(at)
	*at = single(holeKey, hujson.Value{Value: hujson.String(name)})
	return value
}

// argumentNamed finds an argument: of a tool by its name, or by names with points between them; of a command by its text, which
// must stand there once. It returns the names that there are.
func argumentNamed(args *hujson.Value, wanted string) (found *hujson.Value, known []string) {
	if args == nil {
		return nil, nil
	}
	if array, ok := args.Value.(*hujson.Array); ok {
		for i := range array.Elements {
			v := &array.Elements[i]
			known = append(known, textOf(v))
			if textOf(v) == wanted && found != nil {
				return nil, known
			} else if textOf(v) == wanted {
				found = v
			}
		}
		return found, known
	}
	for name, v := range membersOf(args) {
		known = append(known, name)
		if name == wanted {
			return v, known
		}
		if rest, ok := strings.CutPrefix(wanted, name+"."); ok {
			inner, below := argumentNamed(v, rest)
			if inner != nil {
				return inner, nil
			}
			for _, b := range below {
				known = append(known, name+"."+b)
			}
		}
	}
	return nil, known
}
