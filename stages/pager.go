package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/preview"
)

// pager is a tool stage with paginate, bound to a run.
type pager struct {
	*caller
	*paging
	lines               bool // one item a line, else one JSON array
	evalNext, evalWhile evaluator
	evalItems           evaluator
}

// bindPager readies the expressions of a paging, and makes the filter.
func bindPager(ctx context.Context, c *caller, pg *paging, lines bool) (Filter, error) {
	p := &pager{caller: c, paging: pg, lines: lines}
	var errs [3]error
	p.evalNext, errs[0] = pg.next.bind(ctx, c.r)
	p.evalWhile, errs[1] = pg.while.bind(ctx, c.r)
	p.evalItems, errs[2] = pg.items.bind(ctx, c.r)
	return p.filter, errors.Join(errs[:]...)
}

// filter fetches page after page. An item is written as soon as its page is there, and the next page is fetched when
// the reader has taken all of them.
func (p *pager) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	args, err := p.arguments(in)
	if err != nil {
		return err
	}
	w := &walk{pager: p, counts: p.counts, list: valueList{out: out, lines: p.lines}, seed: maphash.MakeSeed(), seen: map[uint64]int{}}
	if err := w.begin(args); err != nil {
		return err
	}
	p.m.lists.Add(1)
	for more := true; more; {
		if more, err = w.page(ctx); err != nil {
			return w.located(err)
		}
	}
	return w.list.end()
}

// walk is one way through the pages of a list.
type walk struct {
	*pager
	args object // of the next call
	n    int    // the page
	list valueList
	form *pageForm
	many bool // results were several values: a list
	met  bool // there was something at the stage's "items"

	counts counting // as of the argument, if its first value is a number to count from
	at     int64    // the argument's value, where it is counted
	last   uint64   // the hash of the page before

	seed maphash.Seed
	seen map[uint64]int // the page that each value of the argument was for, by the value's hash
}

// begin takes the arguments of the first call.
func (w *walk) begin(args json.RawMessage) error {
	for key, value := range members(args) {
		w.args.set(key, value)
		if key != w.arg {
			continue
		}
		w.seen[maphash.Bytes(w.seed, value)] = 1
		if w.counts == uncounted {
			continue
		}
		var err error
		if w.at, err = strconv.ParseInt(string(value), 10, 64); err != nil && w.next != nil {
			w.counts = uncounted
		} else if err != nil {
			return Errorf(InvalidArguments, "give a whole number", "%s is where counting begins, and cannot be %s", quoted(w.arg), describe(value))
		}
	}
	return nil
}

// page fetches one page, writes its items and reports whether there is another.
func (w *walk) page(ctx context.Context) (more bool, err error) {
	args := encodeObject(w.args.members)
	if w.n++; w.n > 1 {
		if err := checkFinal(w.tool, args); err != nil {
			return false, err
		}
	}
	result, err := w.once(ctx, args)
	if err != nil {
		return false, err
	}
	held := int64(len(result.Data))
	if err := w.r.hold(held); err != nil {
		return false, err
	}
	defer w.r.held.Add(-held)
	before := w.list.n
	next, err := w.take(ctx, result.Data)
	if n := w.list.n - before; n > 0 {
		w.m.pages.Add(1)
		w.m.fetched.Add(n)
	}
	if err != nil {
		return false, err
	}
	if next == nil {
		w.m.ended.Add(1)
		return false, nil
	}
	if w.n >= w.max {
		w.m.more.Store(true)
		return false, nil
	}
	w.args.set(w.arg, next)
	return true, nil
}

// take writes the items of a result and returns the argument for the next page, or nil.
func (w *walk) take(ctx context.Context, data []byte) (next json.RawMessage, err error) {
	value, err := w.value(data)
	if err != nil || value[0] == 'n' {
		return nil, err // a result that is nothing is the end
	}
	if w.form == nil {
		w.form = formFinder{w.counts, w.fits}.find(value)
		if err := w.complete(ctx, value); err != nil {
			return nil, err
		}
	}
	counted := w.counts != uncounted && w.evalNext == nil && !w.form.paged
	if counted {
		err = w.differs(data)
	} else {
		next, counted, err = w.following(ctx, value)
	}
	if err != nil {
		return nil, err
	}
	n, err := w.write(ctx, value)
	if counted && err == nil && n > 0 {
		next, err = w.count(n)
	}
	if err != nil || next == nil || w.evalWhile == nil {
		return next, err
	}
	goesOn, err := w.while.single(ctx, w.evalWhile, value)
	if err == nil && w.n == 1 {
		w.gave(w.while, goesOn[0] != 'n')
	}
	if err != nil || string(goesOn) != "true" {
		return nil, err
	}
	return next, nil
}

// value returns a result as one JSON value. Several are an array: tools that write a block for each item mean a list.
func (w *walk) value(data []byte) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	if json.Valid(data) && !w.many {
		return data, nil
	}
	list := values(data)
	switch {
	case len(list) == 0:
		return null, nil
	case len(list) > 1:
		w.many = true
	case json.Valid(data):
	case w.whole():
		return list[0], nil
	default:
		return nil, Errorf(ToolError, `"items": "." takes texts as they are; without paginate one sees what the tool gives`,
			"the result is text, and pages are taken apart as JSON: %s", quoted(data))
	}
	all := []byte{'['}
	for i, v := range list {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, v...)
	}
	return append(all, ']'), nil
}

// whole reports whether results are not taken apart.
func (w *walk) whole() bool {
	return w.items != nil && w.items.program == nil && len(w.items.path) == 0
}

// complete refuses a first result in which something is not found that the stage does not give either.
func (w *walk) complete(ctx context.Context, value json.RawMessage) error {
	if w.evalItems == nil && !w.form.listed {
		return w.unclear(ctx, value, "there is no array of items in the result",
			`say where they are: "paginate": {"items": ".path.to.array"}; "." gives whole results`)
	}
	if w.evalNext != nil || w.form.paged || w.counts != uncounted || w.isLast(value) {
		return nil
	}
	place := ".path.to.items"
	if w.items != nil {
		place = w.items.text
	} else if w.form.listed {
		place = w.form.items.String()
	}
	form := fmt.Sprintf(`{"arg": %q, "next": ".path.to.next", "items": %q}`, w.arg, place)
	return w.unclear(ctx, value, fmt.Sprintf("nothing in the result tells the next value of %q", w.arg),
		fmt.Sprintf(`say where it is: "paginate": %s; a path that is missing in the last result ends the paging`, form))
}

// isLast reports whether a page ends the list by itself: it has no items.
func (w *walk) isLast(value json.RawMessage) bool {
	if !w.form.listed {
		return false
	}
	list, err := w.form.items.one(value)
	return err == nil && list[0] == '[' && isEmpty(list)
}

func (w *walk) unclear(ctx context.Context, value json.RawMessage, problem, hint string) error {
	shape, err := preview.Preview(ctx, bytes.NewReader(value), preview.Options{Chars: 600})
	if err != nil {
		return err
	}
	return Errorf(InvalidArguments, hint, "%s; it is:\n%s", problem, strings.TrimSuffix(shape.Text, "\n"))
}

// fits reports whether a value can tell the next page.
func (w *walk) fits(value json.RawMessage) bool {
	next, err := w.argument(value)
	return err == nil && next != nil && (!w.number || next[0] != '"')
}

// argument makes the argument of what tells the next page: nil if that says that there is none.
func (w *walk) argument(value json.RawMessage) (json.RawMessage, error) {
	if isEmpty(value) {
		return nil, nil
	}
	switch value[0] {
	case '{', '[', 't':
		return nil, Errorf(ToolError, `name its place: "paginate": {"next": ".path"}`, "what tells the next page is %s, not a value for %q", describe(value), w.arg)
	case '"':
		query, isURL := queryValue(text(value), w.arg)
		switch {
		case isURL && query == "":
			return nil, Errorf(ToolError, `cut the value out of it with jq: "next": ".next | capture(\"…\").name"`,
				"the next page is the URL %s, whose query has no %q", quoted(text(value)), w.arg)
		case isURL:
			value = appendString(nil, []byte(query))
			if w.counts != uncounted && !w.text {
				if n, err := strconv.ParseInt(query, 10, 64); err == nil {
					return strconv.AppendInt(nil, n, 10), nil
				}
			}
		}
	}
	return w.typed(value), nil
}

// following returns the argument for the next page as the result tells it, or nil; or that it is to be counted. One
// that was there before is an error: the pages would never end.
func (w *walk) following(ctx context.Context, value json.RawMessage) (next json.RawMessage, count bool, err error) {
	told, more := null, true
	switch {
	case w.evalNext != nil:
		if told, err = w.next.single(ctx, w.evalNext, value); err == nil && w.n == 1 {
			w.compare(value, told)
		}
	case w.form.more != nil:
		var goesOn json.RawMessage
		goesOn, err = w.form.more.one(value)
		more = string(goesOn) == "true"
	}
	if err == nil && more && w.form.paged && w.evalNext == nil {
		told, err = w.form.next.one(value)
	}
	switch {
	case err != nil:
		return nil, false, w.odd(err)
	case string(told) == "true" && w.counts != uncounted:
		return nil, true, nil
	}
	next, err = w.new(bytes.Clone(told))
	return next, false, err
}

// compare notes that the stage's "next" gives nothing for the first page, where the result tells the next one as results
// mostly do. A list that is at its end has nothing to tell.
func (w *walk) compare(value, told json.RawMessage) {
	if !isEmpty(told) {
		w.gave(w.next, true)
		return
	}
	if !w.form.paged {
		return
	}
	if w.form.more != nil {
		if more, err := w.form.more.one(value); err != nil || string(more) != "true" {
			return
		}
	}
	if next, err := w.form.next.one(value); err == nil && !isEmpty(next) {
		w.m.used(w.next.field, false, fmt.Sprintf("%s %s gave nothing, but there is %s", w.next.field, quoted(w.next.text), w.form.next))
	}
}

// odd says that a result does not have the form of the first one.
func (w *walk) odd(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return Errorf(ToolError, `name the places with "next" and "items"`, "the result has not the form of the one before: %w", err)
}

// new returns the argument that told stands for, which must not have been there before.
func (w *walk) new(told json.RawMessage) (json.RawMessage, error) {
	next, err := w.argument(told)
	if err != nil || next == nil {
		return nil, err
	}
	if limit := w.r.deps.Limits.Input; int64(len(next)) > limit {
		return nil, OverLimit("input", "", "the value for the next page is longer than %s", size(limit))
	}
	sum := maphash.Bytes(w.seed, next)
	if before, ok := w.seen[sum]; ok {
		return nil, Errorf(ToolError, "the pages would never end; fewer can be had with \"max\"",
			"the result names %s %s as the next page, which was page %d already", w.arg, shortened(string(next), 60), before)
	}
	w.seen[sum] = w.n + 1
	return next, nil
}

// count returns the argument for the page after one with n items.
func (w *walk) count(n int64) (json.RawMessage, error) {
	if w.counts == countedPages {
		n = 1
	}
	if w.at > math.MaxInt64-n {
		return nil, Errorf(InvalidArguments, "", "%s cannot count beyond %d", quoted(w.arg), w.at)
	}
	w.at += n
	return w.typed(strconv.AppendInt(nil, w.at, 10)), nil
}

// differs refuses a page that is the one before once more: the tool does not look at the argument, or gives its last
// page for all that would follow.
func (w *walk) differs(data []byte) error {
	sum := maphash.Bytes(w.seed, data)
	same := w.n > 1 && sum == w.last
	w.last = sum
	if !same {
		return nil
	}
	return Errorf(ToolError, fmt.Sprintf(`give "while" or "next", or the number of pages as "max": %d`, w.n-1),
		"the result is the one of the page before once more: the tool does not seem to look at %q", w.arg)
}

// located says in an error at which page it happened.
func (w *walk) located(err error) error {
	var e *Error
	if !errors.As(err, &e) || echo(err) {
		return err
	}
	c := *e
	c.Msg = fmt.Sprintf("page %d, after %d items: %s", w.n, w.list.n, c.Msg)
	if w.n == 1 {
		c.Msg = "page 1: " + e.Msg
	}
	return &c
}
