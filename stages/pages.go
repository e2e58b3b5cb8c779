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
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/preview"
)

// filter fetches page after page. The items of a page are written as soon as it has come, and the next page is fetched
// when the reader has taken all of them.
func (pg *paging) filter(c *caller, lines bool) Filter {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		room := c.r.deps.Memory.Lease()
		defer room.Close()
		args, err := c.arguments(ctx, in, room)
		if err != nil {
			return err
		}
		w := &pages{
			caller: c, paging: pg, next: pg.next, items: pg.items, counts: pg.counts,
			list: newValueList(out, lines), seed: maphash.MakeSeed(), seen: map[uint64]int{},
		}
		if pg.while != nil {
			w.whiles = []*pathField{pg.while}
		}
		if err := w.begin(args); err != nil {
			return err
		}
		headersOf(ctx).out.describe(about{Kind: Values})
		c.m.count(func(r *StageReport) { r.lists++ })
		for more := true; more; {
			if more, err = w.page(ctx); err != nil {
				return w.located(err)
			}
		}
		return w.list.end()
	}
}

// pages are those of one list, fetched one after another.
type pages struct {
	*caller
	*paging
	args   []member // of the next call
	n      int      // the page
	list   valueList
	form   *pageForm
	held   int64 // bytes that the page takes of the run's memory
	many   bool  // results were several content blocks: a list
	found  bool  // there was something at the stage's "items"
	unsure bool  // the stage's "while" gave neither true nor false, so this may not be the end of the list

	// The stage's paths, or those that the first result has shown. The paging goes on while all of "whiles" are true.
	next, items *pathField
	whiles      []*pathField

	counts counting // as of the argument, if its first value is a number to count from
	at     int64    // the argument's value, where it is counted
	last   uint64   // the hash of the page before

	seed maphash.Seed
	seen map[uint64]int // the page that each value of the argument was for, by the value's hash
}

// begin takes the arguments of the first call.
func (w *pages) begin(args json.RawMessage) error {
	for key, value := range members(args) {
		w.args = append(w.args, member{key, value})
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
			return Errorf(InvalidArguments, "give a whole number", "%s is the number at which counting begins, and cannot be %s", texts.Quote(w.arg), describe(value))
		}
	}
	return nil
}

// page fetches one page, writes its items and reports whether there is another.
func (w *pages) page(ctx context.Context) (more bool, err error) {
	args := encodeObject(w.args)
	if w.n++; w.n > 1 {
		if err := w.check(ctx, args); err != nil {
			return false, err
		}
	}
	result, err := w.once(ctx, args)
	if err != nil {
		return false, err
	}
	defer result.Memory.Close()
	defer w.release()
	if err := w.hold(len(result.Data)); err != nil {
		return false, err
	}
	before := w.list.n
	next, err := w.take(ctx, result)
	if n := w.list.n - before; n > 0 {
		w.m.count(func(r *StageReport) { r.Pages, r.Fetched = r.Pages+1, r.Fetched+n })
	}
	switch {
	case err != nil:
		return false, err
	case next == nil:
		if !w.unsure {
			w.m.count(func(r *StageReport) { r.listsEnded++ })
		}
		return false, nil
	case w.n >= w.max:
		w.m.count(func(r *StageReport) { r.More = true })
		return false, nil
	}
	w.args = merge(w.args, []member{{w.arg, next}})
	return true, nil
}

// hold counts bytes of the page as memory of the run, until release.
func (w *pages) hold(n int) error {
	err := w.r.hold(int64(n))
	if err == nil {
		w.held += int64(n)
	}
	return err
}

func (w *pages) release() {
	w.r.release(w.held)
	w.held = 0
}

// take writes the items of a result and returns the argument for the next page, or nil.
func (w *pages) take(ctx context.Context, r Result) (next json.RawMessage, err error) {
	value, err := w.value(r)
	if err != nil || kindOfValue(value) == 'n' {
		return nil, err // a result that is nothing is the end
	}
	if w.form == nil {
		if err := w.settle(ctx, value); err != nil {
			return nil, err
		}
	}
	next, counted, err := w.following(ctx, value)
	if err != nil {
		return nil, err
	}
	n, err := w.write(ctx, value)
	if counted && err == nil && n > 0 {
		return w.count(n)
	}
	return next, err
}

// value returns a result as one JSON value, nil if it is nothing. Several content blocks are an array: tools that write a
// block for each item mean a list, of which a page may have one.
func (w *pages) value(r Result) (json.RawMessage, error) {
	if len(bytes.TrimSpace(r.Data)) == 0 {
		return nil, nil
	}
	if len(r.Spans) > 1 {
		if err := w.hold(len(r.Data)); err != nil { // for the array
			return nil, err
		}
		w.many = true
	}
	value := r.about().values(r.Data)[0]
	switch c := kindOfValue(value); {
	case c == '"' && r.Kind != Values && !w.whole():
		return nil, Errorf(ToolError, `"items": "." takes texts as they are; without paginate one sees what the tool gives`,
			"the result is text, and pages are taken apart as JSON: %s", texts.Quote(r.Data))
	case w.many && c != '[':
		return slices.Concat([]byte{'['}, value, []byte{']'}), w.hold(len(value))
	}
	return value, nil
}

// whole reports whether results are not taken apart.
func (w *pages) whole() bool { return w.items != nil && w.items.name != "" && len(w.items.path) == 0 }

// settle finds in the first result the places that the stage does not name. One that is nowhere is an error.
func (w *pages) settle(ctx context.Context, value json.RawMessage) (err error) {
	if w.form, err = (&formFinder{counts: w.counts, fits: w.fits}).find(ctx, value); err != nil {
		return err
	}
	if w.items == nil && w.form.items == nil {
		return w.unclear(ctx, value, "there is no array of items in "+w.form.searched(),
			`say where they are: "paginate": {"items": ".path.to.array"}; "." gives whole results`)
	}
	if w.items == nil {
		w.items = &pathField{text: w.form.items.String(), path: w.form.items}
		w.found = true
	}
	switch {
	case w.next != nil:
	case w.form.next != nil:
		w.next = &pathField{path: w.form.next}
		if w.form.more != nil {
			w.whiles = append(w.whiles, &pathField{path: w.form.more})
		}
	case w.counts == uncounted && !w.isLast(ctx, value):
		form := fmt.Sprintf(`{"arg": %q, "next": ".path.to.next", "items": %q}`, w.arg, w.items.text)
		return w.unclear(ctx, value, fmt.Sprintf("nothing in %s tells the next value of %q", w.form.searched(), w.arg),
			fmt.Sprintf(`say where it is: "paginate": %s; a path that is missing in the last result ends the paging`, form))
	}
	return nil
}

// isLast reports whether a page ends the list by itself: it has no items.
func (w *pages) isLast(ctx context.Context, value json.RawMessage) bool {
	if w.form.items == nil {
		return false
	}
	list, err := w.form.items.one(ctx, value)
	return err == nil && kindOfValue(list) == '[' && isEmpty(list)
}

func (w *pages) unclear(ctx context.Context, value json.RawMessage, problem, hint string) error {
	shape, err := preview.Preview(ctx, bytes.NewReader(value), preview.Options{Chars: 600})
	if err != nil {
		return err
	}
	return Errorf(CommandFailed, hint, "%s; it is:\n%s", problem, strings.TrimSuffix(shape.Text, "\n"))
}

// following returns the argument for the next page as the result gives it, nil if there is none, or says that it is to
// be counted.
func (w *pages) following(ctx context.Context, value json.RawMessage) (next json.RawMessage, counted bool, err error) {
	for _, f := range w.whiles {
		goesOn, err := f.one(ctx, value)
		found := "neither true nor false"
		if kindOfValue(goesOn) == 'n' {
			found = "nothing"
		}
		w.unsure = f.name != "" && !strings.ContainsRune("tf", rune(kindOfValue(goesOn)))
		if err == nil && w.n == 1 && f.name != "" {
			w.m.used(f.name, !w.unsure, fmt.Sprintf("%s %s gave %s", f.name, texts.Quote(f.text), found))
		}
		if err != nil || string(goesOn) != "true" {
			return nil, false, err
		}
	}
	counted = w.counts != uncounted
	if w.next == nil {
		return nil, counted, w.differs(value)
	}
	next, err = w.next.one(ctx, value)
	if err != nil {
		return nil, false, err
	}
	if w.n == 1 && w.next.name != "" {
		w.compare(ctx, value, next)
	}
	if counted && string(next) == "true" {
		return nil, true, nil
	}
	next, err = w.new(next)
	return next, false, err
}

// compare notes that the stage's "next" finds nothing in the first result though a convention does.
func (w *pages) compare(ctx context.Context, value, next json.RawMessage) {
	if !isEmpty(next) {
		w.gave(w.next, true)
		return
	}
	f := w.form
	if f.next == nil {
		return
	}
	if f.more != nil {
		if more, err := f.more.one(ctx, value); err != nil || string(more) != "true" {
			return
		}
	}
	if other, err := f.next.one(ctx, value); err == nil && !isEmpty(other) {
		w.m.used(w.next.name, false, fmt.Sprintf("%s %s gave nothing, but there is %s", w.next.name, texts.Quote(w.next.text), f.next))
	}
}

// new returns the argument that a value for the next page stands for, which must not have been there before: else the
// pages would never end.
func (w *pages) new(value json.RawMessage) (json.RawMessage, error) {
	if limit := w.r.deps.Limits.Input; int64(len(value)) > limit {
		return nil, OverLimit("input", `name another place with "next", or raise the limit with --limit input=SIZE`,
			"the value for the next page has %d bytes, longer than %s", len(value), texts.Bytes(limit))
	}
	next, err := w.argument(value)
	if err != nil || next == nil {
		return nil, err
	}
	sum := maphash.Bytes(w.seed, next)
	if before, ok := w.seen[sum]; ok {
		return nil, Errorf(ToolError, "the paging would never end; set \"max\" to get the first pages",
			"the result names %s %s as the next page, which was page %d already", w.arg, texts.Cut(string(next), 60), before)
	}
	w.seen[sum] = w.n + 1
	return bytes.Clone(next), nil
}

// fits reports whether a value can tell the next page.
func (w *pages) fits(value json.RawMessage) bool {
	next, err := w.argument(value)
	return err == nil && next != nil && (!w.number || next[0] != '"')
}

// argument makes the argument of a value for the next page: nil if that says that there is none.
func (w *pages) argument(value json.RawMessage) (json.RawMessage, error) {
	if isEmpty(value) {
		return nil, nil
	}
	switch value[0] {
	case '{', '[', 't':
		return nil, Errorf(ToolError, `name its place: "paginate": {"next": ".path"}`, "the value for the next page is %s, not a value for %q", describe(value), w.arg)
	case '"':
		query, isURL := queryValue(text(value), w.arg)
		switch {
		case isURL && query == "":
			return nil, Errorf(ToolError, `if the query has it by another name, set "arg" to an argument of that name; else name another place with "next"`,
				"the next page is the URL %s, whose query has no %q", texts.Quote(value[1:len(value)-1]), w.arg)
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

// count returns the argument for the page after one with n items.
func (w *pages) count(n int64) (json.RawMessage, error) {
	if w.counts == countedPages {
		n = 1
	}
	if w.at > math.MaxInt64-n {
		return nil, Errorf(CommandFailed, "", "%s cannot count beyond %d", texts.Quote(w.arg), w.at)
	}
	w.at += n
	return w.typed(strconv.AppendInt(nil, w.at, 10)), nil
}

// differs refuses a page that equals the one before: the tool ignores the argument, or gives its last page for all that
// would follow.
func (w *pages) differs(value json.RawMessage) error {
	sum := maphash.Bytes(w.seed, value)
	same := w.n > 1 && sum == w.last
	w.last = sum
	if !same {
		return nil
	}
	return Errorf(ToolError, fmt.Sprintf(`give "while" or "next", or the number of pages as "max": %d`, w.n-1),
		"this page equals the one before: the tool seems to ignore %q", w.arg)
}

// located says in an error at which page it happened.
func (w *pages) located(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || echo(err) {
		return err
	}
	c := *e
	page := "page 1"
	if w.n > 1 {
		page = fmt.Sprintf("page %d, after %d items", w.n, w.list.n)
	}
	if c.Foreign { // a message must begin with those words
		c.adds(" (" + page + ")")
	} else {
		c.Msg = page + ": " + c.Msg
	}
	return &c
}

// eachElement is the path to all elements of an array.
var eachElement = path{{goes: toAll}}

// items gives the items at the path to yield: the elements, if it names one array. Null stands for an empty list, as some
// servers write it. It returns the list, nil if there is nothing in its place.
func (f *pathField) items(ctx context.Context, value json.RawMessage, yield func(json.RawMessage) error) (list json.RawMessage, err error) {
	base := f.path.fixed()
	rest := f.path[len(base):]
	if list, err = base.one(ctx, value); err != nil || kindOfValue(list) == 'n' {
		return list, f.failed(err)
	}
	switch isArray := list[0] == '['; {
	case len(rest) > 0:
	case isArray:
		rest = eachElement
	case f.name == "":
		return list, f.failed(&misfit{fmt.Sprintf("there is %s at %s", describe(list), f.path)})
	}
	return list, f.failed(rest.each(ctx, list, yield))
}

// write writes the items of a page and returns how many there are, for counting.
func (w *pages) write(ctx context.Context, value json.RawMessage) (n int64, err error) {
	before := w.list.n
	if !w.whole() {
		err = w.writeItems(ctx, value)
		n = w.list.n - before
	} else if n, err = w.length(ctx, value); err == nil && (n > 0 || w.n == 1) {
		err = w.list.add(value)
	}
	if err != nil {
		return 0, err
	}
	return n, w.list.Flush()
}

// length returns how many items a whole result stands for.
func (w *pages) length(ctx context.Context, value json.RawMessage) (n int64, err error) {
	if w.form.items != nil {
		f := pathField{path: w.form.items}
		_, err = f.items(ctx, value, func(json.RawMessage) error { n++; return nil })
	} else if !isEmpty(value) {
		n = 1
	}
	return n, err
}

func (w *pages) writeItems(ctx context.Context, value json.RawMessage) error {
	before := w.list.n
	list, err := w.items.items(ctx, value, w.add)
	switch {
	case err != nil || w.items.name == "":
		return err
	case list == nil && !w.items.path.optional():
		return w.missing(ctx, value)
	}
	w.found = true
	switch named := list != nil && len(w.items.path.fixed()) == len(w.items.path); {
	case w.list.n > before || named || string(list) == "null":
		w.gave(w.items, true)
	case list != nil && isEmpty(list) || isEmpty(value) || w.isLast(ctx, value): // the page says that it is empty
	default:
		w.gave(w.items, false)
	}
	return nil
}

// gave notes whether a path of the stage has found anything.
func (w *pages) gave(f *pathField, something bool) {
	w.m.used(f.name, something, fmt.Sprintf("%s %s gave nothing", f.name, texts.Quote(f.text)))
}

// missing refuses a page without a place for items, until one had it: servers leave an empty list out, but a name that is
// misspelt must not look like one.
func (w *pages) missing(ctx context.Context, value json.RawMessage) error {
	if w.found || isEmpty(value) {
		return nil
	}
	optional := slices.Clone(w.items.path)
	optional[min(len(optional.fixed()), len(optional)-1)].try = true
	hint := fmt.Sprintf(`name the array's place; where the tool leaves an empty list out, write "items": %q`, optional)
	if w.form.items != nil {
		hint = fmt.Sprintf(`did you mean "items": %q? %s`, w.form.items, hint)
	}
	return w.unclear(ctx, value, fmt.Sprintf("the result has nothing at %s, which %s names", texts.Cut(w.items.text, 60), w.items.name), hint)
}

// add writes an item: of the edges of a Relay connection, their nodes.
func (w *pages) add(v json.RawMessage) error {
	if v == nil {
		v = null
	}
	if w.items.name == "" && w.form.node && v[0] == '{' {
		if node := memberOf(v, relayNode); kindOfValue(node) != 'n' {
			v = node
		}
	}
	return w.list.add(v)
}
