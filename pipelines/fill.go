package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// The members that make an object of a plan a hole or its opposite.
const (
	holeKey    = "$param"
	literalKey = "$literal"
)

// maxValues bounds what values take in a plan, in bytes: each use of a parameter is a copy.
const maxValues = 32 << 20

// A Plan is a plan whose parameters have values.
type Plan struct {
	Stages json.RawMessage

	// Values are the arguments of commands that are values, by the places of their stages; see [stages.Deps].
	Values map[stages.Place][]int
}

// Fill puts values into the plan. A place without a value is removed, with its key where it is a member. The error is an *Error of
// stages: a value that cannot stand where it should.
func (d *Definition) Fill(values map[string]json.RawMessage) (Plan, error) {
	f := &filler{values: values}
	plan := f.fill(d)
	if len(f.errs) > 0 {
		return Plan{}, stages.Errorf(stages.InvalidArguments, "the parameters are "+d.ParameterList(), "%s", f.errs[0].text)
	}
	return Plan{plan, f.spots}, nil
}

// uses refuses a plan whose parameters are not those that are declared, or stand where they cannot.
func (r *reader) uses() {
	d := r.d
	f := &filler{used: map[string]int{}, open: true}
	f.fill(d)
	for _, e := range f.errs {
		r.fail(e.offset, e.key, "%s", e.text)
	}
	for _, name := range slices.Sorted(maps.Keys(f.used)) {
		if !slices.Contains(d.names, name) {
			r.fail(f.used[name], "pipeline", "the parameter %s is used and not declared in parameters; these are %s", texts.Quote(name), d.ParameterList())
		}
	}
	for _, name := range d.names {
		if _, used := f.used[name]; !used && !f.all {
			r.fail(strings.Index(string(r.text), string(hujson.String(name))), "parameters.properties."+name, `the parameter is declared and not used: write {"$param": %s} in place of a value, or %s in a jq program`, texts.JSON(name), inJQ(name))
		}
	}
	d.calls, d.servers = once(f.calls), once(f.servers)
	if len(r.errs) == 0 {
		r.checkDefaults()
	}
}

// once returns names, each once and sorted.
func once(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// A filler puts values in the place of the holes of a plan.
type filler struct {
	values map[string]json.RawMessage
	open   bool // there are no values yet: a hole stays

	guessed  map[string]bool       // parameters whose values nobody has written
	doubtful map[stages.Place]bool // commands that have such a value as an argument
	size     int                   // bytes of values in the plan
	spots    map[stages.Place][]int

	used    map[string]int // names of parameters, with the offset of a use
	all     bool           // some program reads all of $params
	calls   []string
	servers []string // that tools are called of
	errs    []mistake
}

type mistake struct {
	offset int
	key    string
	text   string
}

// fill returns the plan of a definition with the values.
func (f *filler) fill(d *Definition) json.RawMessage {
	f.spots, f.doubtful = map[stages.Place][]int{}, map[stages.Place]bool{}
	plan := d.plan.Clone()
	eachStage(&plan, "pipeline", "", f.stage)
	plan.Minimize()
	return plan.Pack()
}

func (f *filler) fail(v *hujson.Value, key, format string, args ...any) {
	f.errs = append(f.errs, mistake{v.StartOffset, key, fmt.Sprintf(format, args...)})
}

// use returns the value of a parameter; false: it has none.
func (f *filler) use(name string, offset int) (json.RawMessage, bool) {
	if _, known := f.used[name]; !known && f.used != nil {
		f.used[name] = offset
	}
	value, ok := f.values[name]
	return value, ok
}

// hole returns the parameter that a value stands for.
func (f *filler) hole(v *hujson.Value, key string) (name string, ok bool) {
	hole := member(v, holeKey)
	if hole == nil {
		return "", false
	}
	literal, _ := hole.Value.(hujson.Literal)
	if len(v.Value.(*hujson.Object).Members) > 1 || literal.Kind() != '"' {
		f.fail(v, key, `%s must be the only member, with the name of a parameter: {"%s": "name"}; write an object that has such a member as {"%s": ...}`, holeKey, holeKey, literalKey)
	}
	return literal.String(), true
}

// stage fills one stage.
func (f *filler) stage(stage *hujson.Value, key string, at stages.Place) {
	if _, ok := stage.Value.(*hujson.Object); !ok || member(stage, holeKey) != nil {
		f.fixed(stage, key)
		return
	}
	text := func(name string) string { return textOf(member(stage, name)) }
	kind := stages.KindNamed(text("type"))
	if kind == nil {
		kind = &stages.Kind{} // the check against the tools says so
	}
	switch calls := kind.Values == stages.ValuesInArgs; {
	case calls && text("server") == Server:
		f.calls = append(f.calls, text("name"))
	case calls:
		f.servers = append(f.servers, text("server"))
	case kind.Begins:
		f.fail(stage, key, "a saved pipeline cannot begin with what an earlier run has produced")
	}
	f.members(stage, key, func(name string, v *hujson.Value, key string) bool {
		switch {
		case name == "args" && kind.Values == stages.ValuesInArgs:
			return f.argument(v, key)
		case name == "args" && kind.Values == stages.ValuesAsWords:
			f.command(v, key, at, text("command"))
		case !nests(name):
			f.fixed(v, key)
		}
		return true
	})
}

// members calls f with each member of an object, and leaves out those for which it returns false.
func (f *filler) members(v *hujson.Value, key string, keep func(name string, v *hujson.Value, key string) bool) {
	object := v.Value.(*hujson.Object)
	var kept []hujson.ObjectMember
	for _, m := range object.Members {
		if name := nameOf(&m); keep(name, &m.Value, within(key, name)) {
			kept = append(kept, m)
		}
	}
	object.Members = kept
}

// fixed refuses a parameter in what can have none.
func (f *filler) fixed(v *hujson.Value, key string) {
	for inner := range v.All() {
		if name, ok := f.hole(inner, key); ok {
			f.use(name, inner.StartOffset)
			f.fail(inner, key, `the parameter %s cannot stand here: only in "args" of a tool, as an element of "args" of a command, and as $params in jq`, texts.Quote(name))
			return
		}
	}
}

// argument fills a value in the arguments of a tool; false: it is a parameter without a value.
func (f *filler) argument(v *hujson.Value, key string) bool {
	if name, ok := f.hole(v, key); ok {
		value, given := f.use(name, v.StartOffset)
		if f.guessed[name] {
			value = json.RawMessage(guess)
		}
		if given {
			f.put(v, key, value)
		}
		return given || f.open
	}
	switch composite := v.Value.(type) {
	case *hujson.Object:
		if inner := member(v, literalKey); inner != nil && len(composite.Members) == 1 {
			*v = *inner
			return true
		}
		f.members(v, key, func(name string, v *hujson.Value, below string) bool {
			if name == literalKey {
				f.fail(v, key, `%s stands alone in its object: {"%s": value}`, literalKey, literalKey)
			}
			return f.argument(v, below)
		})
	case *hujson.Array:
		var kept []hujson.ArrayElement
		for i, e := range composite.Elements {
			if f.argument(&e, fmt.Sprintf("%s[%d]", key, i)) {
				kept = append(kept, e)
			}
		}
		composite.Elements = kept
	}
	return true
}

// put writes a value in the place of another one, as long as there is room in the plan.
func (f *filler) put(v *hujson.Value, key string, value json.RawMessage) {
	full := f.size > maxValues
	if f.size += len(value); f.size > maxValues {
		if value = json.RawMessage(`""`); !full {
			f.fail(v, key, "the values in the plan are more than %s", texts.Bytes(maxValues))
		}
	}
	v.Value = hujson.Literal(value) // it is packed as it is, of any kind
}

// command fills the arguments of a command. A jq program that reads $params gets them before all others.
func (f *filler) command(v *hujson.Value, key string, at stages.Place, name string) {
	elements := []hujson.Value{*v}
	array, several := v.Value.(*hujson.Array)
	if several {
		elements = array.Elements
	}
	var args []hujson.Value
	if name == "jq" {
		args = f.params(v, key, elements)
	}
	for i, e := range elements {
		key := fmt.Sprintf("%s[%d]", key, i)
		param, ok := f.hole(&e, key)
		if !ok {
			f.fixed(&e, key)
			args = append(args, e)
			continue
		}
		value, given := f.use(param, e.StartOffset)
		if given {
			f.put(&e, key, f.operand(&e, key, param, value))
		}
		if given || f.open {
			f.spots[at] = append(f.spots[at], len(args))
			f.doubtful[at] = f.doubtful[at] || f.guessed[param]
			args = append(args, e)
		}
	}
	if f.open {
		f.scripts(key, name, args, f.spots[at])
	}
	if several || len(args) != 1 {
		v.Value = &hujson.Array{Elements: args}
		return
	}
	*v = args[0]
}

// scripts refuses parameters that are the program of a command.
func (f *filler) scripts(key, name string, args []hujson.Value, spots []int) {
	words := make([]string, len(args))
	for i := range args {
		words[i] = textOf(&args[i])
	}
	for _, at := range programs.Scripts(name, words, spots) {
		param, hint := textOf(member(&args[at], holeKey)), ""
		if name == "jq" {
			hint = ", which reads the value as " + inJQ(param)
		}
		f.fail(&args[at], fmt.Sprintf("%s[%d]", key, at), "the parameter %s cannot be the program of %s: a value is no text of a program; write the program here%s", texts.Quote(param), name, hint)
	}
}

// maxExact is a whole number below which a float64 has each one exactly.
const maxExact = 1 << 53

// operand is a value as the argument of a command.
func (f *filler) operand(v *hujson.Value, key, name string, value json.RawMessage) json.RawMessage {
	value = bytes.TrimSpace(value)
	switch value[0] {
	case '"':
		return value
	case '{', '[', 'n':
		f.fail(v, key, "the parameter %s is an argument of a command: want a string, a number, true or false", texts.Quote(name))
	default:
		if n, err := strconv.ParseFloat(string(value), 64); err == nil && n == math.Trunc(n) && math.Abs(n) <= maxExact && bytes.ContainsAny(value, ".eE") {
			value = strconv.AppendFloat(nil, n, 'f', -1, 64) // programs know 10, and not always 1e1 or 10.0
		}
	}
	return json.RawMessage(hujson.String(string(value)))
}

// reads matches the uses of $params in a jq program: with the name of one parameter, or as a whole.
var reads = lazy.Regexp(`\$params\b(?:\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)|\s*\.?\s*(\["(?:[^"\\]|\\.)*"\])|\s*\.\s*("(?:[^"\\]|\\.)*"))?`)

// params returns the arguments with which a jq program gets the parameters that it reads; none where it reads none.
func (f *filler) params(v *hujson.Value, key string, elements []hujson.Value) []hujson.Value {
	given, found := map[string]json.RawMessage{}, false
	take := func(name string, offset int) {
		if value, ok := f.use(name, offset); ok {
			given[name] = value
		}
	}
	for i := range elements {
		for _, m := range reads().FindAllStringSubmatch(textOf(&elements[i]), -1) {
			found = true
			name, whole := paramName(m)
			if !whole {
				take(name, elements[i].StartOffset)
				continue
			}
			f.all = true
			for name := range f.values {
				take(name, elements[i].StartOffset)
			}
		}
	}
	if !found || f.size > maxValues {
		return nil
	}
	all := hujson.Value{StartOffset: v.StartOffset}
	f.put(&all, key, json.RawMessage(hujson.String(texts.JSON(given))))
	return []hujson.Value{{Value: hujson.String("--argjson")}, {Value: hujson.String("params")}, all}
}

var jqName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// inJQ is what a jq program reads a parameter with.
func inJQ(name string) string {
	if jqName().MatchString(name) {
		return "$params." + name
	}
	return "$params[" + texts.JSON(name) + "]"
}

// paramName returns the name in a match of reads; whole: it has none.
func paramName(m []string) (name string, whole bool) {
	if m[1] != "" {
		return m[1], false
	}
	quoted := strings.Trim(m[2], "[]") + m[3]
	if quoted == "" || json.Unmarshal([]byte(quoted), &name) != nil { // \( begins a program in a string
		return "", true
	}
	return name, false
}
