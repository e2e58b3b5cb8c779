package schemas

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/mcsh-dev/mcsh/stages"
)

// Options choose how the schema of execute_pipeline is written.
type Options struct {
	// Brief omits descriptions of fields, defaults and limits, and which fields belong to which kind of stage. The tool's
	// own description explains them.
	Brief bool

	// Durable offers durable runs.
	Durable bool
}

// stageRef is the place of the stage schema in the schema of execute_pipeline.
const stageRef = "#/$defs/stage"

// The values of a [Call].
const (
	ModeRun    = "run"
	ModeCheck  = "check"   // explain the plan, call nothing
	ModeDryRun = "dry_run" // run what only reads, show what would be changed

	DefaultTimeout = 300       // seconds
	MinTimeout     = 0.001     // seconds
	DefaultWait    = 50        // seconds
	MaxWait        = 600       // seconds
	DefaultOutput  = 32_000    // characters
	MaxOutput      = 1_000_000 // characters, unless the operator allows less
)

// Call holds the arguments of execute_pipeline.
type Call struct {
	Pipeline  RawStages `json:"pipeline" jsonschema_description:"the stages in order; each one's output is the next one's input"`
	Mode      string    `json:"mode,omitempty" jsonschema_description:"check explains the plan and calls nothing; dry_run calls only what reads, and shows the calls that would change something"`
	Timeout   float64   `json:"timeout,omitempty" jsonschema_description:"seconds for the whole run"`
	MaxOutput int       `json:"max_output,omitempty" jsonschema_description:"characters of the reply; of a longer output the shape is returned"`
	Durable   bool      `json:"durable,omitempty" jsonschema_description:"the run goes on without this call and may take hours"`
	Wait      float64   `json:"wait,omitempty" jsonschema_description:"seconds to wait for a durable run; then the reply says how far it is"`
}

// DurableArguments are the arguments of a [Call] that only durable runs have.
var DurableArguments = []string{"durable", "wait"}

// Modes returns the modes of a [Call].
func Modes() []string { return []string{ModeRun, ModeCheck, ModeDryRun} }

// JSONSchemaExtend adds the values and limits of the fields.
func (Call) JSONSchemaExtend(s *jsonschema.Schema) {
	number := func(v any) json.Number { return json.Number(fmt.Sprint(v)) }
	mode, _ := s.Properties.Get("mode")
	for _, m := range Modes() {
		mode.Enum = append(mode.Enum, m)
	}
	mode.Default = ModeRun
	timeout, _ := s.Properties.Get("timeout")
	timeout.Minimum, timeout.Default = number(MinTimeout), DefaultTimeout
	wait, _ := s.Properties.Get("wait")
	wait.Minimum, wait.Maximum, wait.Default = number(0), number(MaxWait), DefaultWait
	output, _ := s.Properties.Get("max_output")
	output.Minimum, output.Maximum, output.Default = number(1), number(MaxOutput), DefaultOutput
}

// RawStages is a list of stages as written: an array, or a string that holds one. stages.Compile reads both.
type RawStages json.RawMessage

// UnmarshalJSON keeps the text.
func (r *RawStages) UnmarshalJSON(data []byte) error {
	return (*json.RawMessage)(r).UnmarshalJSON(data)
}

// JSONSchema returns the schema of a list of stages.
func (RawStages) JSONSchema() *jsonschema.Schema { return published.list() }

// ExecutePipeline returns the input schema of execute_pipeline, with the schema of a stage at "#/$defs/stage".
func ExecutePipeline(kinds []stages.Kind, o Options) json.RawMessage {
	s, stage := published.reflect(Call{}), union
	if !o.Durable {
		for _, name := range DurableArguments {
			s.Properties.Delete(name)
		}
	}
	if o.Brief {
		stage = flat
		for field := range s.Properties.ValuesFromOldest() {
			trim(field)
		}
	}
	s.Definitions = jsonschema.Definitions{"stage": stage(kinds)}
	return marshal(s)
}

// union returns a oneOf over kinds, which differ in the constant "type".
func union(kinds []stages.Kind) *jsonschema.Schema {
	all := &jsonschema.Schema{Type: "object"}
	for _, k := range kinds {
		all.OneOf = append(all.OneOf, published.kind(k))
	}
	return all
}

// flat returns one object with the fields of all kinds: short, and enough to write a stage. It accepts every valid stage
// and some invalid ones, which the check of the plan reports.
func flat(kinds []stages.Kind) *jsonschema.Schema {
	names := &jsonschema.Schema{}
	all := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), Required: []string{"type"}, AdditionalProperties: jsonschema.FalseSchema,
	}
	all.Properties.Set("type", names)
	for _, k := range kinds {
		names.Enum = append(names.Enum, k.Name)
		for pair := published.kind(k).Properties.Oldest(); pair != nil; pair = pair.Next() {
			if pair.Key == "type" {
				continue
			}
			field := trim(pair.Value)
			if other, ok := all.Properties.Get(pair.Key); ok {
				field = anyOfTypes(other, field)
			}
			all.Properties.Set(pair.Key, field)
		}
	}
	return all
}

// trim removes descriptions, defaults and limits from s, and returns s.
func trim(s *jsonschema.Schema) *jsonschema.Schema {
	s.Description, s.Default, s.Minimum, s.Maximum, s.ExclusiveMinimum, s.MinLength = "", nil, "", "", "", nil
	s.MaxLength, s.MinItems, s.MaxItems, s.Pattern, s.PropertyNames = nil, nil, nil, "", nil
	if s.Const != nil || len(s.Enum) > 0 {
		s.Type = ""
	}
	if len(s.OneOf) > 0 {
		options := s.OneOf
		for s = options[0]; len(options) > 1; options = options[1:] {
			s = anyOfTypes(s, options[1])
		}
	}
	return s
}

// anyOfTypes returns a schema with the types of both schemas.
func anyOfTypes(a, b *jsonschema.Schema) *jsonschema.Schema {
	if string(marshal(a)) == string(marshal(b)) {
		return a
	}
	return &jsonschema.Schema{Items: cmp.Or(a.Items, b.Items), Extras: map[string]any{"type": []string{a.Type, b.Type}}}
}

// A dialect writes the Go types of stages as schemas.
type dialect bool

const (
	published dialect = true  // shows agents the form to write
	checked   dialect = false // also accepts other forms and any nested stages
)

// list returns the schema of a list of stages.
func (d dialect) list() *jsonschema.Schema {
	if d == published {
		return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Ref: stageRef}}
	}
	return &jsonschema.Schema{Type: "array"}
}

// args returns the schema of the arguments of a command.
func (d dialect) args() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
	if d == published {
		return s
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "string"}}}
}

// inputs returns the schema of the inputs of a command. For wrong names stages.Compile has the better message.
func (d dialect) inputs() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: d.list()}
	if d == published {
		s.PropertyNames = &jsonschema.Schema{Pattern: stages.InputName}
	}
	return s
}

// kind returns the schema of the stages of one kind.
func (d dialect) kind(k stages.Kind) *jsonschema.Schema {
	own := d.reflect(k.New())
	s := &jsonschema.Schema{
		Description: k.Summary, Type: "object", Properties: jsonschema.NewProperties(),
		Required: append([]string{"type"}, own.Required...), AdditionalProperties: jsonschema.FalseSchema,
	}
	s.Properties.Set("type", &jsonschema.Schema{Type: "string", Const: k.Name})
	add := func(from *jsonschema.Schema) {
		for name, field := range from.Properties.FromOldest() {
			if _, present := s.Properties.Get(name); !present {
				s.Properties.Set(name, field)
			}
		}
	}
	add(own)
	if k.Each {
		add(d.reflect(stages.EachOptions{}))
	}
	return s
}

// reflect returns the schema of a struct, without references and metadata.
func (d dialect) reflect(v any) *jsonschema.Schema { return d.reflectType(reflect.TypeOf(v), d.mapped) }

func (dialect) reflectType(t reflect.Type, mapped func(reflect.Type) *jsonschema.Schema) *jsonschema.Schema {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true, Mapper: mapped}
	s := r.ReflectFromType(t)
	s.Version = ""
	return s
}

// mapped returns the schema of a type whose JSON form differs from its Go form, or nil.
func (d dialect) mapped(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[stages.List]():
		return d.list()
	case reflect.TypeFor[stages.Args]():
		return d.args()
	case reflect.TypeFor[stages.Inputs]():
		return d.inputs()
	case reflect.TypeFor[stages.Branches]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: d.list()}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{Type: "object"}
	}
	if t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return d.switchable(t)
	}
	return nil
}

// switchable returns the schema of a struct with its own decoder: true means all defaults, and false none.
func (d dialect) switchable(t reflect.Type) *jsonschema.Schema {
	s := d.reflectType(t, func(other reflect.Type) *jsonschema.Schema {
		if other == t {
			return nil
		}
		return d.mapped(other)
	})
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "boolean"}, s}}
}

// marshal writes a schema that was made from Go types.
func marshal(s *jsonschema.Schema) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("schemas: writing the schema of a Go type: %v", err))
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}
