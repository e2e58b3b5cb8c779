package schemas

import (
	"fmt"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

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
