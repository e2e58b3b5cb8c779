package pipelines

import (
	"fmt"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/stages"
)

// eachStage calls f with each stage of a list, in the order of their places, and with what stands where a list should. f may change
// the stage, also the members that the walk goes on with.
func eachStage(list *hujson.Value, key string, at stages.Place, f func(stage *hujson.Value, key string, at stages.Place)) {
	array, ok := list.Value.(*hujson.Array)
	if !ok {
		f(list, key, at)
		return
	}
	for i := range array.Elements {
		stage, key, place := &array.Elements[i], fmt.Sprintf("%s[%d]", key, i), stages.Place(fmt.Sprint(i+1)).In(at)
		f(stage, key, place)
		for name, v := range membersOf(stage) {
			switch key := within(key, name); name {
			case "stages":
				eachStage(v, key, place, f)
			case "branches", "inputs":
				for branch, list := range membersOf(v) {
					eachStage(list, within(key, branch), stages.BranchPlace(branch).In(place), f)
				}
			}
		}
	}
}

// nests reports whether the walk goes on with a member of a stage.
func nests(name string) bool { return name == "stages" || name == "branches" || name == "inputs" }

// within is the path of a member of an object.
func within(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// repeated returns a member of some object within a value that has the name of another one, or nil.
func repeated(v *hujson.Value) *hujson.ObjectMember {
	for inner := range v.All() {
		object, _ := inner.Value.(*hujson.Object)
		seen := map[string]bool{}
		for i := 0; object != nil && i < len(object.Members); i++ {
			name := nameOf(&object.Members[i])
			if seen[name] {
				return &object.Members[i]
			}
			seen[name] = true
		}
	}
	return nil
}

// membersOf are the members of an object, none of anything else.
func membersOf(v *hujson.Value) func(func(string, *hujson.Value) bool) {
	return func(yield func(string, *hujson.Value) bool) {
		object, _ := v.Value.(*hujson.Object)
		for i := 0; object != nil && i < len(object.Members); i++ {
			if m := &object.Members[i]; !yield(nameOf(m), &m.Value) {
				return
			}
		}
	}
}

func nameOf(m *hujson.ObjectMember) string { return textOf(&m.Name) }

// member returns a member of an object, or nil.
func member(v *hujson.Value, name string) *hujson.Value {
	for key, value := range membersOf(v) {
		if key == name {
			return value
		}
	}
	return nil
}

// textOf returns a string, or "" of anything else.
func textOf(v *hujson.Value) string {
	if v != nil {
		if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == '"' {
			return literal.String()
		}
	}
	return ""
}

// single is an object with one member.
func single(name string, value hujson.Value) hujson.Value {
	return hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{{Name: hujson.Value{Value: hujson.String(name)}, Value: value}}}}
}

// standard is a value as JSON without comments.
func standard(v *hujson.Value) []byte {
	own := v.Clone()
	own.Minimize()
	return own.Pack()
}
