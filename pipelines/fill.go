package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
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

// Fill puts values into the plan. What has no value is removed, with its key where it is a member. The error is an *Error of
// stages: a value that cannot stand where it should.
func (d *Definition) Fill(values map[string]json.RawMessage) (Plan, error) {
	f := &filler{values: values, spots: map[stages.Place][]int{}}
	f.list(&d.plan, "pipeline", "")
	if len(f.errs) > 0 {
		return Plan{}, stages.Errorf(stages.InvalidArguments, "the parameters are "+d.said(), "%s", f.errs[0].text)
	}
	return Plan{f.out.Bytes(), f.spots}, nil
}

// uses refuses a plan whose parameters are not those that are declared, or stand where they cannot.
func (r *reader) uses(d *Definition) {
	f := &filler{spots: map[stages.Place][]int{}, used: map[string]int{}, open: true}
	f.list(&d.plan, "pipeline", "")
	for _, e := range f.errs {
		r.fail(e.offset, e.key, "%s", e.text)
	}
	for _, name := range slices.Sorted(maps.Keys(f.used)) {
		if !slices.Contains(d.names, name) {
			r.fail(f.used[name], "pipeline", "the parameter %s is used and not declared in parameters; these are %s", texts.Quote(name), d.said())
		}
	}
	for _, name := range d.names {
		if _, used := f.used[name]; !used && !f.all {
			r.fail(strings.Index(string(r.text), string(hujson.String(name))), "parameters.properties."+name, `the parameter is declared and not used: write {"$param": %s} in place of a value, or $params in a jq program`, texts.JSON(name))
		}
	}
	d.calls, d.servers = f.calls, f.servers
	if len(r.errs) == 0 {
		r.checkDefaults(d)
	}
}

// A filler writes a plan with values in the place of its holes.
type filler struct {
	values map[string]json.RawMessage
	open   bool // there are no values yet: a hole is written as it is

	guessed  map[string]bool       // parameters whose values nobody has written
	doubtful map[stages.Place]bool // commands that have such a value as an argument
	out      bytes.Buffer
	size     int // bytes of values in the plan
	spots    map[stages.Place][]int

	used  map[string]int // names of parameters, with the offset of a use
	all   bool           // some program reads all of $params
	calls []string

	servers []string // that tools are called of
	errs    []mistake
}

type mistake struct {
	offset int
	key    string
	text   string
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
	object, _ := v.Value.(*hujson.Object)
	if object == nil {
		return "", false
	}
	for i := range object.Members {
		m := &object.Members[i]
		if nameOf(m) != holeKey {
			continue
		}
		literal, isText := m.Value.Value.(hujson.Literal)
		if len(object.Members) > 1 || !isText || literal.Kind() != '"' {
			f.fail(v, key, `%s stands alone, with the name of a parameter: {"%s": "name"}; an object that has such a member stands in {"%s": ...}`, holeKey, holeKey, literalKey)
		}
		return literal.String(), true
	}
	return "", false
}

// literal returns the value in a {"$literal": value}, or nil.
func literal(v *hujson.Value) *hujson.Value {
	if object, ok := v.Value.(*hujson.Object); ok && len(object.Members) == 1 && nameOf(&object.Members[0]) == literalKey {
		return &object.Members[0].Value
	}
	return nil
}

// list writes a list of stages, whose own place is at.
func (f *filler) list(v *hujson.Value, key string, at stages.Place) {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		f.plain(v, key)
		return
	}
	f.out.WriteByte('[')
	for i := range array.Elements {
		if i > 0 {
			f.out.WriteByte(',')
		}
		f.stage(&array.Elements[i], fmt.Sprintf("%s[%d]", key, i), stages.Place(fmt.Sprint(i+1)).In(at))
	}
	f.out.WriteByte(']')
}

// stage writes one stage.
func (f *filler) stage(v *hujson.Value, key string, at stages.Place) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		f.plain(v, key)
		return
	}
	text := func(name string) string {
		for i := range object.Members {
			if l, ok := object.Members[i].Value.Value.(hujson.Literal); ok && nameOf(&object.Members[i]) == name && l.Kind() == '"' {
				return l.String()
			}
		}
		return ""
	}
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
		f.fail(v, key, "a saved pipeline cannot begin with what an earlier run has produced")
	}
	f.object(object, func(name string, v *hujson.Value) func() {
		at, key := at, within(key, name)
		switch {
		case kind.Values == stages.ValuesInArgs && name == "args":
			return f.argument(v, key)
		case kind.Values == stages.ValuesAsWords && name == "args":
			return func() { f.command(v, key, at, text("command") == "jq") }
		case name == "stages":
			return func() { f.list(v, key, at) }
		case name == "branches" || name == "inputs":
			return func() { f.branches(v, key, at) }
		}
		return func() { f.plain(v, key) }
	})
}

// object writes an object. member returns what writes the value of a member; nil: the member is left out.
func (f *filler) object(object *hujson.Object, member func(name string, v *hujson.Value) func()) {
	f.out.WriteByte('{')
	first := true
	for i := range object.Members {
		m := &object.Members[i]
		write := member(nameOf(m), &m.Value)
		if write == nil {
			continue
		}
		if !first {
			f.out.WriteByte(',')
		}
		first = false
		f.out.Write(m.Name.Value.(hujson.Literal))
		f.out.WriteByte(':')
		write()
	}
	f.out.WriteByte('}')
}

// branches writes an object of lists of stages.
func (f *filler) branches(v *hujson.Value, key string, at stages.Place) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		f.plain(v, key)
		return
	}
	f.object(object, func(name string, v *hujson.Value) func() {
		return func() { f.list(v, within(key, name), stages.BranchPlace(name).In(at)) }
	})
}

// plain writes what no parameter can stand in.
func (f *filler) plain(v *hujson.Value, key string) { f.out.Write(f.fixed(v, key)) }

// fixed returns a value in which no parameter can stand.
func (f *filler) fixed(v *hujson.Value, key string) json.RawMessage {
	for inner := range v.All() {
		if name, ok := f.hole(inner, key); ok {
			f.use(name, inner.StartOffset)
			f.fail(inner, key, `the parameter %s cannot stand here: only in "args" of a tool, as an element of "args" of a command, and as $params in jq`, texts.Quote(name))
			break
		}
	}
	return standard(v)
}

// argument returns what writes a value in the arguments of a tool; nil: it is a parameter without a value.
func (f *filler) argument(v *hujson.Value, key string) func() {
	if name, ok := f.hole(v, key); ok {
		value, given := f.use(name, v.StartOffset)
		switch {
		case f.open:
			return func() { f.out.Write(standard(v)) }
		case !given:
			return nil
		case f.guessed[name]:
			value = json.RawMessage(guess)
		}
		return func() { f.out.Write(f.room(v, key, value)) }
	}
	if inner := literal(v); inner != nil {
		return func() { f.out.Write(standard(inner)) }
	}
	switch composite := v.Value.(type) {
	case *hujson.Object:
		return func() {
			f.object(composite, func(name string, v *hujson.Value) func() {
				if name == literalKey {
					f.fail(v, key, `%s stands alone in its object: {"%s": value}`, literalKey, literalKey)
				}
				return f.argument(v, within(key, name))
			})
		}
	case *hujson.Array:
		return func() { f.elements(composite, key) }
	}
	return func() { f.out.Write(standard(v)) }
}

// room returns a value that still has room in the plan, else an empty string.
func (f *filler) room(v *hujson.Value, key string, value json.RawMessage) json.RawMessage {
	before := f.size
	if f.size += len(value); f.size <= maxValues {
		return value
	}
	if before <= maxValues {
		f.fail(v, key, "the values in the plan are more than %s", texts.Bytes(maxValues))
	}
	f.size = maxValues + 1
	return json.RawMessage(`""`)
}

// elements writes an array in the arguments of a tool.
func (f *filler) elements(array *hujson.Array, key string) {
	f.out.WriteByte('[')
	first := true
	for i := range array.Elements {
		write := f.argument(&array.Elements[i], fmt.Sprintf("%s[%d]", key, i))
		if write == nil {
			continue
		}
		if !first {
			f.out.WriteByte(',')
		}
		first = false
		write()
	}
	f.out.WriteByte(']')
}

// command writes the arguments of a command. A jq program that reads $params gets them before all others.
func (f *filler) command(v *hujson.Value, key string, at stages.Place, jq bool) {
	elements := []hujson.Value{*v}
	if array, ok := v.Value.(*hujson.Array); ok {
		elements = array.Elements
	}
	var args []json.RawMessage
	if jq {
		args = f.params(v, key, elements)
	}
	for i := range elements {
		e, key := &elements[i], fmt.Sprintf("%s[%d]", key, i)
		name, ok := f.hole(e, key)
		if !ok {
			args = append(args, f.fixed(e, key))
			continue
		}
		value, given := f.use(name, e.StartOffset)
		if given {
			value = f.operand(e, key, name, f.room(e, key, value))
		}
		if given || f.open {
			f.spots[at] = append(f.spots[at], len(args))
			f.doubt(at, name)
			args = append(args, value)
		}
	}
	if _, single := v.Value.(hujson.Literal); single && len(args) == 1 {
		f.out.Write(args[0])
		return
	}
	f.out.WriteByte('[')
	f.out.Write(bytes.Join(raws(args), []byte{','}))
	f.out.WriteByte(']')
}

// doubt notes that a command has an argument that nobody has written.
func (f *filler) doubt(at stages.Place, name string) {
	if f.guessed[name] {
		if f.doubtful == nil {
			f.doubtful = map[stages.Place]bool{}
		}
		f.doubtful[at] = true
	}
}

func raws(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, raw := range list {
		all[i] = raw
	}
	return all
}

// operand is a value as the argument of a command.
func (f *filler) operand(v *hujson.Value, key, name string, value json.RawMessage) json.RawMessage {
	value = bytes.TrimSpace(value)
	switch value[0] {
	case '"':
		return value
	case '{', '[', 'n':
		f.fail(v, key, "the parameter %s is an argument of a command: want a string, a number, true or false", texts.Quote(name))
	}
	return json.RawMessage(hujson.String(string(value)))
}

// reads matches the uses of $params in a jq program: with the name of one parameter, or as a whole.
var reads = lazy.Regexp(`\$params\b(?:\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)|\s*\.?\s*(\["(?:[^"\\]|\\.)*"\])|\s*\.\s*("(?:[^"\\]|\\.)*"))?`)

// params returns the arguments with which a jq program gets the parameters that it reads; none where it reads none.
func (f *filler) params(v *hujson.Value, key string, elements []hujson.Value) []json.RawMessage {
	given, found := map[string]json.RawMessage{}, false
	take := func(name string, offset int) {
		if value, ok := f.use(name, offset); ok {
			given[name] = value
		}
	}
	for i := range elements {
		program, ok := elements[i].Value.(hujson.Literal)
		if !ok || program.Kind() != '"' {
			continue
		}
		for _, m := range reads().FindAllStringSubmatch(program.String(), -1) {
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
	all := f.room(v, key, json.RawMessage(hujson.String(texts.JSON(given))))
	return []json.RawMessage{json.RawMessage(`"--argjson"`), json.RawMessage(`"params"`), all}
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
