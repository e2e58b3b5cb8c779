package schemas

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Without removes some properties from an input schema: from properties, required and the dependent keywords, also in the
// schemas that it combines or refers to for the same object. All other bytes stay. A definition that other places use too
// is copied first. It fails if the schema cannot be read within the steps, or would grow too large.
func Without(steps *Steps, schema json.RawMessage, names []string) (json.RawMessage, error) {
	if len(names) == 0 {
		return schema, nil
	}
	doc, err := newDocument(schema, steps)
	if err != nil {
		return nil, err
	}
	p := &pruner{
		document: doc, names: names, left: maxOutline, room: int(steps.limits.withDefaults().Schema),
		uses: map[string]int{}, seen: map[*node]bool{},
	}
	p.count(doc.root)
	p.prune(doc.root)
	switch {
	case steps.Err() != nil:
		return nil, steps.Err()
	case p.left < 0 || p.room < 0:
		return nil, errors.New("it combines too many schemas")
	}
	return doc.root.write(nil), nil
}

// A pruner removes properties from a schema.
type pruner struct {
	*document
	names []string
	left  int            // schemas that may still be visited
	room  int            // bytes left for copies: copies of copies could double with each level
	uses  map[string]int // by references
	seen  map[*node]bool
}

// count counts the references in a part of the document.
func (p *pruner) count(n *node) {
	if ref := p.text(n, "$ref"); ref != "" {
		p.uses[ref]++
	}
	for _, inner := range n.parts {
		p.count(inner.value)
	}
}

// prune prunes a schema and all schemas for the same object.
func (p *pruner) prune(s *node) {
	if p.left--; p.left < 0 || p.room < 0 || !s.is('{') || p.seen[s] {
		return
	}
	p.seen[s] = true
	for _, keyword := range []string{"properties", "dependentRequired", "dependentSchemas", "dependencies"} {
		inner := p.get(s, keyword)
		inner.remove(func(m part) bool { return slices.Contains(p.names, m.name) })
		if keyword != "properties" {
			for _, m := range inner.object() {
				p.strike(m.value)
			}
		}
	}
	if required := p.get(s, "required"); len(required.array()) > 0 {
		if p.strike(required); len(required.parts) == 0 { // draft-04 forbids an empty list
			s.remove(func(m part) bool { return m.name == "required" })
		}
	}
	for sub := range p.each(s, "if", "then", "else", "not", "allOf", "anyOf", "oneOf") {
		p.prune(sub)
	}
	p.follow(s)
}

// strike removes the names from a list of names.
func (p *pruner) strike(list *node) {
	if list.is('[') {
		list.remove(func(e part) bool { return slices.Contains(p.names, e.value.text()) })
	}
}

// follow prunes the target of the reference of a schema, or a copy if there are other references to it.
func (p *pruner) follow(s *node) {
	ref := p.text(s, "$ref")
	target, cut := p.resolve(ref), strings.LastIndexByte(ref, '/')
	if cut < 0 || !target.is('{') || p.seen[target] {
		return
	}
	parent := p.resolve(ref[:cut])
	if p.uses[ref] < 2 || !parent.is('{') {
		p.prune(target)
		return
	}
	const mark = " (without what is fixed)"
	copied := ref + url.PathEscape(mark)
	if p.resolve(copied) == nil {
		text := target.write(nil)
		if p.room -= len(text); p.room < 0 {
			return
		}
		last, _ := url.PathUnescape(ref[cut+1:])
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(last + mark)
		clone := part{before: []byte(texts.JSON(name) + ":"), name: name, value: readNode(text)}
		p.count(clone.value)
		parent.parts = append(parent.parts, clone)
	}
	p.get(s, "$ref").raw = json.RawMessage(texts.JSON(copied))
	p.prune(p.resolve(copied))
}

// remove removes parts of an object or an array.
func (n *node) remove(unwanted func(part) bool) {
	if n == nil || len(n.parts) == 0 {
		return
	}
	if n.parts = slices.DeleteFunc(n.parts, unwanted); len(n.parts) == 0 {
		n.raw = slices.Concat(n.raw[:1], n.raw[len(n.raw)-1:])
	}
}

// write appends a value as it was read, but for the parts that were added and removed.
func (n *node) write(b []byte) []byte {
	if len(n.parts) == 0 {
		return append(b, n.raw...)
	}
	for i, p := range n.parts {
		if b = append(b, n.raw[0]); i > 0 {
			b[len(b)-1] = ','
		}
		b = append(p.value.write(append(b, p.before...)), p.after...)
	}
	return append(b, n.raw[len(n.raw)-1])
}
