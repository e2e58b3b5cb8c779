package stages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Paginate says how all pages of a tool's list are fetched (docs/pipeline.md, tool, pages). A missing member is found by
// convention. In JSON true stands for the zero value.
type Paginate struct {
	Arg   string `json:"arg,omitempty" jsonschema:"minLength=1" jsonschema_description:"Argument that chooses the page. Default: cursor, after, page, offset or the like, if the tool has it."`
	Next  string `json:"next,omitempty" jsonschema:"minLength=1" jsonschema_description:"Path to the argument's value for the next page, such as .meta.cursor."`
	While string `json:"while,omitempty" jsonschema:"minLength=1" jsonschema_description:"Path to what is true while there are more pages."`
	Items string `json:"items,omitempty" jsonschema:"minLength=1" jsonschema_description:"Path to the array of items, or to each of them (.edges[].node). . gives whole results."`
	Start *int64 `json:"start,omitempty" jsonschema_description:"Where counting begins, of a page or an offset."`
	Max   int    `json:"max,omitempty" jsonschema:"minimum=1,default=100" jsonschema_description:"Calls at most."`

	off bool // written as false
}

// defaultPages is how many pages are fetched where the stage does not say.
const defaultPages = 100

// UnmarshalJSON reads true, false or an object.
func (p *Paginate) UnmarshalJSON(data []byte) error {
	switch string(bytes.TrimSpace(data)) {
	case "true":
		*p = Paginate{}
		return nil
	case "false":
		*p = Paginate{off: true}
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plainPaginate)(p)); err != nil {
		return decodeError("paginate", err)
	}
	return nil
}

// plainPaginate is a [Paginate] as an object.
type plainPaginate Paginate

// paging is how one tool's pages are fetched, checked.
type paging struct {
	arg    string
	number bool // the argument is a number
	text   bool // it is a string; where the schema leaves both open, neither is set
	counts counting
	start  json.RawMessage // the value for the first page where nothing else gives one; nil: the tool's own

	next, while, items *pathField // nil: found in the first result
	max                int
}

// on reports whether pages are fetched; else the tool is called once.
func (p *Paginate) on() bool { return p != nil && !p.off }

// compile checks the stage's paging against the tool; nil where it is called once.
func (p *Paginate) compile(info *Tool, s Scope) (*paging, error) {
	if !p.on() {
		return nil, nil
	}
	pg := &paging{arg: p.Arg, max: p.Max}
	pg.max = cmp.Or(pg.max, defaultPages)
	errs := []error{p.mayRepeat(info), p.argument(info, pg)}
	if p.Max > s.Limits.Calls {
		errs = append(errs, fielded("paginate.max", Errorf(InvalidPipeline, fmt.Sprintf(`leave max out for %d calls, or write how many are wanted: "max": 1000`, defaultPages),
			"paginate.max must be 1 to %d (limit calls), got %d", s.Limits.Calls, p.Max)))
	}
	for _, f := range []struct {
		name, text string
		to         **pathField
		many       bool // it may name several places
	}{
		{"paginate.next", p.Next, &pg.next, false},
		{"paginate.while", p.While, &pg.while, false},
		{"paginate.items", p.Items, &pg.items, true},
	} {
		var err error
		*f.to, err = compilePath(f.name, f.text, f.many)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return pg, p.begin(info, pg)
}

// paginateHints say what the fields of a paginate look like.
var paginateHints = map[string]string{
	"paginate":       `write "paginate": true, or an object that replaces parts of the convention: "paginate": {"arg": "cursor", "next": ".meta.cursor", "items": ".data", "max": 100}`,
	"paginate.arg":   `name an argument of the tool: "paginate": {"arg": "cursor"}`,
	"paginate.next":  `write the path to the argument for the next page, in a string: "paginate": {"next": ".meta.cursor"}`,
	"paginate.while": `write the path to what is true while there are more pages, in a string: "paginate": {"while": ".has_more"}`,
	"paginate.items": `write the path to the array of items, in a string: "paginate": {"items": ".data"}`,
	"paginate.start": `write where counting begins, with digits only: "paginate": {"start": 0}`,
	"paginate.max":   `write how many calls there may be, with digits only: "paginate": {"max": 100}`,
}

// mayRepeat refuses tools that are not known to only read. To page is to call up to a hundred times what the plan
// names once, and an argument such as "after" may as well be the place where something is inserted. Tools of which
// nothing is said count as reading by their name, as in a for_each: many servers annotate nothing.
func (p *Paginate) mayRepeat(info *Tool) error {
	if info.ReadOnly || !info.Annotated && sideBySide(info) {
		return nil
	}
	return fielded("paginate", Errorf(InvalidPipeline,
		`call it without paginate; if it only reads, the operator can say so ("readOnly" in the server's configuration)`,
		"paginate would call %s/%s again and again, and it may change something", shown(info.Server), shown(info.Name)))
}

// argument chooses the argument.
func (p *Paginate) argument(info *Tool, pg *paging) error {
	in := info.Input
	if p.Arg == "" {
		if pg.arg = conventionOf(in.Properties); pg.arg == "" {
			return fielded("paginate", Errorf(InvalidPipeline,
				fmt.Sprintf(`name it: "paginate": {"arg": "…", "next": ".path.to.next"}; if the tool gives everything at once, leave paginate out (signature: %s)`, info.Signature),
				"%s has no known paging argument: none of %s", shown(info.Name), strings.Join(pageArguments, ", ")))
		}
	} else if !slices.Contains(in.Properties, p.Arg) && (in.Closed || len(in.Properties) > 0) {
		hint := "signature: " + info.Signature
		if best := nearest.Name(p.Arg, in.Properties); best != "" {
			hint = fmt.Sprintf("did you mean %q? %s", best, hint)
		}
		return fielded("paginate.arg", Errorf(InvalidPipeline, hint, "%s has no argument %s", shown(info.Name), texts.Quote(p.Arg)))
	}
	if slices.ContainsFunc(in.Fixed, func(f string) bool { return strings.EqualFold(f, pg.arg) }) {
		return fielded("paginate", Errorf(InvalidPipeline, "leave paginate out", "the argument %s is given by the operator with every call", texts.Quote(pg.arg)))
	}
	return nil
}

// begin reads what the schema says of the argument, and chooses where a counted one begins: where the stage says, or
// the tool says that it does, else at page 1, or offset 0.
func (p *Paginate) begin(info *Tool, pg *paging) error {
	declared := info.Input.Declared[pg.arg]
	aNumber := slices.Contains(declared.Types, "integer") || slices.Contains(declared.Types, "number")
	aText := slices.Contains(declared.Types, "string")
	pg.number, pg.text = aNumber && !aText, aText && !aNumber
	if pg.number || !pg.text && (slices.Contains(pageArguments, pg.arg) || p.Start != nil) {
		pg.counts = countingOf(pg.arg)
	}
	switch {
	case p.Start != nil && pg.counts == uncounted && pg.next == nil:
		return fielded("paginate.start", Errorf(InvalidPipeline, fmt.Sprintf(`give the first value with "args": {%q: …}`, pg.arg),
			"start is the number at which counting begins, and %s is not counted", texts.Quote(pg.arg)))
	case p.Start != nil:
		pg.start = pg.typed(json.RawMessage(fmt.Sprint(*p.Start)))
	case pg.counts != uncounted && len(declared.Default) > 0 && declared.Default[0] != 'n':
		pg.start = declared.Default
	case pg.counts == countedPages:
		pg.start = json.RawMessage("1")
	case pg.counts == countedItems:
		pg.start = json.RawMessage("0")
	}
	return nil
}

// typed returns a value as the type that the argument has, where it is a number or a string.
func (pg *paging) typed(value json.RawMessage) json.RawMessage {
	switch isText := value[0] == '"'; {
	case pg.number && isText:
		if digits := []byte(text(value)); json.Valid(digits) && len(digits) > 0 && (digits[0] == '-' || digits[0] >= '0' && digits[0] <= '9') {
			return digits
		}
	case pg.text && !isText:
		return appendString(nil, value)
	}
	return value
}

// fallback returns the argument for the first page, which data and args may replace.
func (pg *paging) fallback() []member {
	if pg == nil || pg.start == nil {
		return nil
	}
	return []member{{pg.arg, pg.start}}
}

// does adds to what a stage says that it does.
func (pg *paging) does() string {
	if pg == nil {
		return ""
	}
	return fmt.Sprintf(" for every page, by %s, at most %d times", shown(pg.arg), pg.max)
}
