package schemas

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Without removes some properties from an input schema: from properties, required and the dependent keywords, also in the
// schemas that it combines or refers to for the same object. All other bytes stay. A definition that other places use too
// is copied first. A schema that cannot be read, or would grow too large, is returned unchanged.
func Without(steps *Steps, schema json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 || steps.limits.admit(schema) != nil || !json.Valid(schema) {
		return schema
	}
	root, err := hujson.Parse(schema)
	if err != nil {
		return schema
	}
	p := &pruner{root: &root, names: names, left: visits(maxOutline, schema), room: int(steps.limits.withDefaults().Schema), seen: map[string]bool{}}
	p.prune("")
	if p.room < 0 {
		return schema
	}
	return root.Pack()
}

const maxScanned = 8 << 20 // bytes of JSON read while following references, when each reads the whole document

// visits bounds the parts of a document to visit: at most n, and fewer of a large document.
func visits(n int, document json.RawMessage) int { return min(n, 8+maxScanned/(len(document)+1)) }

// A pruner removes properties from a schema. Places are JSON pointers, because an insertion moves values.
type pruner struct {
	root  *hujson.Value
	names []string
	left  int // schemas that may still be visited
	room  int // bytes left for copies: copies of copies could double with each level
	seen  map[string]bool
}

func (p *pruner) object(pointer string) *hujson.Object {
	v := p.root.Find(pointer)
	if v == nil {
		return nil
	}
	o, _ := v.Value.(*hujson.Object)
	return o
}

// prune prunes the schema at a place and all schemas for the same object.
func (p *pruner) prune(pointer string) {
	o := p.object(pointer)
	if p.left--; p.left < 0 || o == nil || p.seen[pointer] {
		return
	}
	p.seen[pointer] = true
	p.own(o)
	for _, keyword := range []string{"if", "then", "else", "not"} {
		p.prune(pointer + "/" + keyword)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if list := arrayIn(o, keyword); list != nil {
			for i := range list.Elements {
				p.prune(fmt.Sprintf("%s/%s/%d", pointer, keyword, i))
			}
		}
	}
	p.follow(pointer, textIn(o, "$ref"))
}

// own removes the properties from one schema itself.
func (p *pruner) own(o *hujson.Object) {
	for _, keyword := range []string{"properties", "dependentRequired", "dependentSchemas", "dependencies"} {
		inner, ok := valueIn(o, keyword).(*hujson.Object)
		if !ok {
			continue
		}
		inner.Members = slices.DeleteFunc(inner.Members, func(m hujson.ObjectMember) bool { return slices.Contains(p.names, text(m.Name)) })
		for _, m := range inner.Members {
			if list, ok := m.Value.Value.(*hujson.Array); ok && keyword != "properties" {
				p.strike(list)
			}
		}
	}
	if list := arrayIn(o, "required"); list != nil {
		before := len(list.Elements)
		if p.strike(list); len(list.Elements) == 0 && before > 0 { // draft-04 forbids an empty list
			o.Members = slices.DeleteFunc(o.Members, func(m hujson.ObjectMember) bool { return text(m.Name) == "required" })
		}
	}
}

// strike removes the names from a list of names.
func (p *pruner) strike(list *hujson.Array) {
	list.Elements = slices.DeleteFunc(list.Elements, func(v hujson.Value) bool { return slices.Contains(p.names, text(v)) })
}

// follow prunes the target of the reference at a place, or a copy if there are other references to it.
func (p *pruner) follow(from, ref string) {
	target, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || !strings.HasPrefix(ref, "#/") || p.object(target) == nil || p.seen[target] {
		return
	}
	cut := strings.LastIndexByte(target, '/')
	parent := p.object(target[:cut])
	if parent == nil || p.uses(ref) < 2 {
		p.prune(target)
		return
	}
	name := target[cut+1:] + " (without what is fixed)"
	place := target[:cut] + "/" + name
	if p.root.Find(place) == nil {
		definition := p.root.Find(target)
		if p.room -= len(definition.Pack()); p.room < 0 {
			p.left = 0
			return
		}
		clone := definition.Clone()
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		parent.Members = append(parent.Members, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: clone})
	}
	p.root.Find(from + "/$ref").Value = hujson.String("#" + (&url.URL{Path: place}).EscapedPath())
	p.prune(place)
}

// uses counts the references to a place.
func (p *pruner) uses(ref string) int {
	n := 0
	for v := range p.root.All() {
		if o, ok := v.Value.(*hujson.Object); ok {
			if textIn(o, "$ref") == ref {
				n++
			}
		}
	}
	return n
}

// valueIn returns the value of a member, or nil.
func valueIn(o *hujson.Object, name string) hujson.ValueTrimmed {
	for _, m := range o.Members {
		if text(m.Name) == name {
			return m.Value.Value
		}
	}
	return nil
}

func arrayIn(o *hujson.Object, name string) *hujson.Array {
	list, _ := valueIn(o, name).(*hujson.Array)
	return list
}

func textIn(o *hujson.Object, name string) string {
	return text(hujson.Value{Value: valueIn(o, name)})
}

// text returns a value that is a string, or "".
func text(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}
