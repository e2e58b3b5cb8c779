package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// write writes the items of a page and returns how many there are, for counting.
func (w *walk) write(ctx context.Context, value json.RawMessage) (int64, error) {
	before := w.list.n
	var err error
	n := int64(-1)
	switch {
	case w.whole():
		if n, err = w.length(value); err == nil && (n > 0 || w.n == 1) {
			err = w.list.add(value)
		}
	case w.evalItems != nil:
		err = w.given(ctx, value)
	default:
		err = w.listed(value, w.add)
	}
	if err != nil {
		return 0, err
	}
	if n < 0 {
		n = w.list.n - before
	}
	return n, w.list.flush()
}

// listed gives the items that stand at the place of the first result's.
func (w *walk) listed(value json.RawMessage, yield func(json.RawMessage) error) error {
	list, err := w.form.items.one(value)
	switch {
	case err != nil:
		return w.odd(err)
	case list[0] == '[':
		return yieldAll(list, yield)
	case list[0] != 'n':
		return w.odd(fmt.Errorf("there is %s at %s", describe(list), w.form.items))
	}
	return nil
}

// length is how many items a whole result stands for, when pages are counted.
func (w *walk) length(value json.RawMessage) (n int64, err error) {
	switch {
	case w.form.listed:
		err = w.listed(value, func(json.RawMessage) error { n++; return nil })
	case !isEmpty(value):
		n = 1
	}
	return n, err
}

// given writes the items that the stage's expression gives. If it gives one array, its elements are the items.
func (w *walk) given(ctx context.Context, value json.RawMessage) error {
	if nothing, err := w.nothing(ctx, value); nothing || err != nil {
		return err
	}
	var only json.RawMessage
	n := 0
	err := w.evalItems(ctx, value, func(v json.RawMessage) error {
		if n++; n == 1 {
			only = v
			return nil
		}
		if n == 2 {
			if err := w.list.add(only); err != nil {
				return err
			}
		}
		return w.list.add(v)
	})
	iterates := w.items.path.iterates()
	switch {
	case n == 0 && err == nil:
		w.barren(value)
		return nil
	case err != nil || n != 1:
		w.met = w.met || n > 1
		w.gave(w.items, true)
		return err
	case only[0] == 'n' && !iterates:
		return w.unmet(ctx, value)
	}
	w.met = true
	w.gave(w.items, true)
	if only[0] == '[' && !iterates {
		return yieldAll(only, w.list.add)
	}
	return w.list.add(only)
}

// nothing reports whether there is no list at the stage's "items", where that is a path: null stands for one that is
// empty, as servers write it.
func (w *walk) nothing(ctx context.Context, value json.RawMessage) (bool, error) {
	if w.items.program != nil {
		return false, nil
	}
	base, try := w.items.path.fixed()
	list, err := base.one(value)
	switch {
	case err != nil || list[0] != 'n':
		w.met = w.met || err == nil
		return false, nil // evaluated, it gives something, or says why not
	case base.holds(value):
		w.met = true
		w.gave(w.items, true)
		return true, nil
	case try:
		w.met = true
		w.barren(value)
		return true, nil
	}
	return true, w.unmet(ctx, value)
}

// barren notes that the stage's "items" gives nothing at all for a page, unless the page says itself that it is empty:
// that may be meant, as by a select, or a name may be misspelt.
func (w *walk) barren(value json.RawMessage) {
	if isEmpty(value) || w.isLast(value) {
		return
	}
	if w.items.program == nil {
		base, _ := w.items.path.fixed()
		if list, err := base.one(value); err == nil && list[0] == '[' && isEmpty(list) {
			return
		}
	}
	w.gave(w.items, false)
}

// gave notes whether an expression of the stage gave anything.
func (w *walk) gave(e *expression, something bool) {
	w.m.used(e.field, something, fmt.Sprintf("%s %s gave nothing", e.field, quoted(e.text)))
}

// unmet refuses a page that has no place for items, until one had it: servers leave an empty list out, but a name that
// is misspelt must not look like one.
func (w *walk) unmet(ctx context.Context, value json.RawMessage) error {
	if w.met || isEmpty(value) {
		return nil
	}
	hint := fmt.Sprintf(`name the array's place; where the tool leaves an empty list out, write "items": %s`, quoted(w.items.orEmpty()))
	if w.form.listed {
		hint = fmt.Sprintf(`did you mean "items": %s? %s`, quoted(w.form.items.String()), hint)
	}
	return w.unclear(ctx, value, fmt.Sprintf("the result has nothing at %s, which %s names", shortened(w.items.text, 60), w.items.field), hint)
}

// add writes one item of a list that was found by convention.
func (w *walk) add(v json.RawMessage) error {
	if w.form.node && v[0] == '{' {
		if node := memberOf(v, relayNode); string(node) != "null" {
			v = node
		}
	}
	return w.list.add(v)
}

// orEmpty is an expression that takes what is missing for an empty list.
func (e *expression) orEmpty() string {
	base, _ := e.path.fixed()
	switch {
	case e.program != nil:
		return "(" + e.text + ") // []"
	case len(base) == len(e.path):
		return base.String() + " // []"
	}
	return "(" + base.String() + " // [])" + strings.TrimPrefix(e.path[len(base):].String(), ".")
}
