package jq

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/internal/nearest"
)

// complaints are the errors of filters at work, and who knows what to do about each. The first row that has something
// to say says it. A row mends c.query or c.o, or gives a hint alone.
var complaints = []struct {
	says   string // regular expression of the message
	advise func(c *complaint) (hint string, mended bool)
}{
	{`^(cannot iterate over|keys|expected an? (object|array) but got|\S+ cannot be applied to).*: null`, nullInput},
	{`^expected an object but got: array`, namedOnArray},
	{`^expected an object but got: string`, namedOnString},
	{`^expected an (?:object|array) but got: (?:number|boolean)`, namedOnScalar},
	{`^expected an array but got: object`, numberedOnObject},
	{`^expected an array but got: string`, onText},
	{`^cannot iterate over: null`, iteratedNull},
	{`^cannot iterate over: string`, onText},
	{`^cannot iterate over: (?:number|boolean)`, namedOnScalar},
	{`^fromjson cannot be applied to: `, alreadyJSON},
	{`^fromjson cannot be applied to "`, notJSON},
	{`^tonumber cannot be applied to`, notNumber},
	{`^strptime\(.*cannot be applied to "`, otherDate},
	{`^strptime\(.*cannot be applied to: number`, secondsAlready},
	{`^(?:strftime|todate|gmtime|mktime)\S*( .*)? cannot be applied to: string`, dateText},
	{`^@(?:csv|tsv) cannot be applied to: object`, rowOfObject},
	{`^@(?:csv|tsv) cannot format an array including`, nestedRow},
	{`^(?:sort|unique|reverse|min|max|join|implode|flatten|transpose|add)\S*.* cannot be applied to: object`, listWanted},
	{`^(?:sort|unique|min|max|join|transpose|flatten|reverse|add).* cannot be applied to: (?:string|number)`, onText},
	{`^has\(".*cannot be applied to: array`, hasOnArray},
	{`^contains\(.*cannot be applied to: array`, anyElement},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|contains|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode|inside|indices|index).* cannot be applied to: null`, textOfNull},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|contains|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode).* cannot be applied to: (?:number|boolean)`, textOfScalar},
	{`^(?:test|match|startswith|endswith|split|ltrimstr|rtrimstr|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode).* cannot be applied to: array`, anyElement},
	{`^(?:test|match|startswith|endswith|split|ascii_downcase|ascii_upcase|trim|contains).* cannot be applied to: object`, textOfObject},
	{`^(?:keys|length|has).* cannot be applied to: (?:null|boolean|string|number)`, nothingToCount},
	{`^(?:floor|ceil|round|sqrt|fabs|abs).* cannot be applied to: string`, numberOfText},
	{`^cannot (?:add|subtract|multiply|divide|modulo): (?:number .*string|string .*number)`, textAndNumber},
	{`^cannot (?:subtract|multiply|divide|modulo): .*null`, nullInSum},
	{`^cannot (?:subtract|multiply|divide): string .*string`, numbersAsText},
	{`^cannot (?:add|subtract|multiply|divide|modulo): `, oddSum},
	{`^cannot (?:divide|modulo) .* by: `, byZero},
	{`^expected a string for object key but got: `, keyOfObject},
	{`^expected an object but got: null`, nullInput},
	{`^invalid path`, noPath},
	{`^No more inputs`, noMoreInputs},
	{`^invalid regular expression`, badRegex},
	{`negative count|index should not be negative|index too large|depth should not be negative`, badCount},
	{`^invalid JSON: `, notJSONInput},
}

// saidPatterns compiles the expressions of complaints when the first filter fails.
var saidPatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	m := map[string]*regexp.Regexp{}
	for _, c := range complaints {
		m[c.says] = regexp.MustCompile(`(?s)` + c.says)
	}
	return m
})

// nullInput knows a filter for the input that runs without it.
func nullInput(c *complaint) (string, bool) {
	if !c.o.NullInput || len(c.given) == 0 || !c.atRoot() {
		return "", false
	}
	c.o.NullInput = false
	return "with -n the input is not read and . is null: leave -n out", true
}

// namedOnArray knows .name where an array is.
func namedOnArray(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		if hint, ok := c.slurpedInput(); ok {
			return hint, true
		}
		return c.input() + ": use .[] for its elements", false
	}
	name := f.name()
	v := f.in.n
	switch {
	case counting[name] && !hasKey(v, name):
		if !atEnd(f) {
			return c.there() + ": write | " + counting1(name), false
		}
		drop(f.term, f.at)
		tail(f.term, counting1(name))
		return c.there() + ": " + name + " is a function, not a field: write | " + counting1(name), true
	case c.o.Slurp && c.atRoot() && len(v.items) > 0 && hasField(v.items[0], name):
		hint := c.input() + ": leave -s out"
		c.o.Slurp = false
		return hint, true
	case f.in.from != nil && f.in.from.name == "":
		return c.unwrap(f.in.from)
	case v.group && hasKey(v, name):
		firstOf(f.term, f.at)
		return "each group of group_by is an array: use .[0]." + name + " or map(." + name + ")", true
	case hasKey(v, name):
		insertSuffix(f.term, f.at, f.in.scope, everyItem())
		return c.there() + ": use .[] for its elements, or map(…)", true
	case isWrapper(name):
		drop(f.term, f.at)
		return c.there() + ": there is nothing around it, use .[] without ." + name, true
	}
	return c.there() + ": use .[] for its elements, or map(…)", false
}

// slurpedInput knows $b.name where $b holds the values of a named input.
func (c *complaint) slurpedInput() (hint string, mended bool) {
	for _, v := range c.o.Named {
		if !v.Input || !v.JSON {
			continue
		}
		terms(c.query, func(t *gojq.Term) {
			if t.Type != gojq.TermTypeFunc || t.Func.Name != "$"+v.Name || len(t.SuffixList) == 0 || t.SuffixList[0].Index == nil {
				return
			}
			if _, named := indexName(t.SuffixList[0].Index); named {
				firstOf(t, 0)
				hint, mended = fmt.Sprintf("$%s of --slurpfile is an array of the values of its input: use $%s[0]", v.Name, v.Name), true
			}
		})
	}
	return hint, mended
}

// name is the name of the step that fails.
func (f *fault) name() string {
	x := f.term.Index
	if f.at >= 0 {
		x = f.term.SuffixList[f.at].Index
	}
	if x == nil {
		return ""
	}
	name, _ := indexName(x)
	return name
}

func atEnd(f *fault) bool { return f.at == len(f.term.SuffixList)-1 }

// firstOf puts .[0] before the name of the step at a term.
func firstOf(t *gojq.Term, at int) {
	first := &gojq.Index{Start: parsed("0")}
	if at >= 0 {
		t.SuffixList = slices.Insert(slices.Clone(t.SuffixList), at, &gojq.Suffix{Index: first})
		return
	}
	t.SuffixList = slices.Insert(slices.Clone(t.SuffixList), 0, &gojq.Suffix{Index: t.Index})
	t.Index = first
}

// tail applies a function to the result of a term.
func tail(t *gojq.Term, function string) {
	if t.Type == gojq.TermTypeIdentity && len(t.SuffixList) == 0 {
		*t = gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: function}}
		return
	}
	inner := *t
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: &gojq.Query{Left: &gojq.Query{Term: &inner}, Op: gojq.OpPipe, Right: parsed(function)}}
}

// counting are functions that people write like fields.
var counting = map[string]bool{
	"length": true, "count": true, "size": true, "keys": true, "first": true, "last": true, "add": true, "sort": true,
	"unique": true, "reverse": true, "min": true, "max": true, "type": true,
}

func counting1(name string) string {
	if name == "count" || name == "size" {
		return "length"
	}
	return name
}

// hasKey reports whether one of the first elements of an array has a member of that name.
func hasKey(n *node, name string) bool {
	for i, item := range n.items {
		if i < 20 && hasField(item, name) {
			return true
		}
	}
	return false
}

func hasField(n *node, name string) bool { return n != nil && n.fields[name] != nil }

func isWrapper(name string) bool {
	for _, w := range wrappers {
		if w == name {
			return true
		}
	}
	return false
}

// slurped has all documents in one array.
func (c *complaint) slurped() (string, bool) {
	hint := c.input() + ": add -s to have them in one array"
	c.o.Slurp = true
	return hint, true
}

// unwrap mends what takes the members of an object for the elements of the list in it.
func (c *complaint) unwrap(s *step) (string, bool) {
	what := "what .[] is applied to is " + s.obj.describe()
	key := s.obj.wrapped()
	lines := c.several() && s.at < 0 && slices.Contains(c.docs, s.obj)
	if key != "" && (isWrapper(key) || !lines) {
		insertSuffix(s.term, s.at, s.scope, member(key))
		return fmt.Sprintf("%s: use %s[] for the elements", what, member(key)), true
	}
	if lines {
		return c.slurped()
	}
	if s.at >= 0 && s.at < len(s.term.SuffixList) {
		drop(s.term, s.at)
		return what + ", and .[] gives the values of its members: leave [] out", true
	}
	insert(s.term, s.at, s.scope, "[.]")
	return what + ", not an array: leave " + functionOf(s.term) + " out, or make an array of it: [.]", true
}

func functionOf(t *gojq.Term) string {
	if t.Func != nil {
		return t.Func.Name
	}
	return "[]"
}

// namedOnString knows .name where a string is.
func namedOnString(c *complaint) (string, bool) {
	f := c.fault
	if f == nil {
		return c.input(), false
	}
	if f.in.from != nil && f.in.from.name == "" {
		return c.unwrap(f.in.from)
	}
	if c.o.RawInput && !c.o.Slurp && c.atRoot() && c.json {
		c.o.RawInput = false
		return "with -R every line is a string: leave -R out, the input is JSON", true
	}
	return onText(c)
}

// onText knows steps that want JSON where a string is.
func onText(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.in.n == nil || f.term == nil {
		return c.input(), false
	}
	if f.in.from != nil && f.in.from.name == "" {
		return c.unwrap(f.in.from)
	}
	text := strings.TrimSpace(f.in.n.text)
	if json.Valid([]byte(text)) && text != "" && strings.Contains("[{", text[:1]) {
		insert(f.term, f.at, f.in.scope, "fromjson")
		return c.there() + ": it is JSON within a string, use fromjson", true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	if f.in.n.kind != "string" {
		return c.there(), false
	}
	return c.there() + ": a string has no fields and no elements; split(…), test(…) and capture(…) take it apart", false
}

// namedOnScalar knows .name or .[] where a number or a boolean is.
func namedOnScalar(c *complaint) (string, bool) {
	f := c.fault
	switch {
	case f == nil || f.in.n == nil || f.term == nil:
		return c.input(), false
	case f.in.from != nil && f.in.from.name == "":
		return c.unwrap(f.in.from)
	case c.several() && c.atRoot():
		return c.slurped()
	}
	return c.there() + ": it has no fields and no elements, leave that step out", false
}

// numberedOnObject knows .[0] and .[1:2] where an object is.
func numberedOnObject(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input(), false
	}
	if key := f.in.n.wrapped(); key != "" {
		insertSuffix(f.term, f.at, f.in.scope, member(key))
		return fmt.Sprintf("%s: use %s", c.there(), member(key)), true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	return c.there() + ": name its members, or use to_entries", false
}

// listWanted knows functions of arrays that are given an object.
func listWanted(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input() + ": an array is wanted", false
	}
	if key := f.in.n.wrapped(); key != "" {
		insertSuffix(f.term, f.at, f.in.scope, member(key))
		return fmt.Sprintf("%s: use %s | %s", c.there(), member(key), functionOf(f.term)), true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	return c.there() + ": an array is wanted; use to_entries, or [.[]] for its values", false
}

// iteratedNull knows .[] where nothing is.
func iteratedNull(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input() + ": .[]? passes over null", false
	}
	if from := f.in.from; from != nil && from.name != "" && from.term != nil {
		if near := nearest.Name(from.name, from.obj.keys); near != "" {
			rename(from.term, from.at, near)
			return fmt.Sprintf("there is no .%s, did you mean %s? %s", shownName(from.name), member(near), c.input()), true
		}
		if key := from.obj.wrapped(); key != "" && isWrapper(from.name) {
			rename(from.term, from.at, key)
			return fmt.Sprintf("there is no .%s: use %s; %s", shownName(from.name), member(key), c.input()), true
		}
	}
	if f.at >= 0 {
		insertSuffix(f.term, f.at+1, nil, &gojq.Suffix{Optional: true})
		return c.input() + "; where it fails there is null: .[]? passes over it", true
	}
	insert(f.term, f.at, f.in.scope, ". // []")
	return c.input() + "; where it fails there is null: // [] gives it a default", true
}

func alreadyJSON(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return c.input() + ": it is JSON already, leave fromjson out", false
	}
	if c.fault.in.n.kind == "null" {
		replace(c.fault.term, `. // "null" | fromjson`)
		return c.there() + ": there is null where a string is wanted", true
	}
	drop(c.fault.term, c.fault.at)
	return c.there() + ": it is JSON already, leave fromjson out", true
}

func notJSON(c *complaint) (string, bool) {
	return everywhere(c, "fromjson", "(fromjson? // .)"), true
}

// everywhere replaces a function without arguments wherever it stands.
func everywhere(c *complaint, name, text string) string {
	terms(c.query, func(t *gojq.Term) {
		if t.Type == gojq.TermTypeFunc && t.Func.Name == name && len(t.Func.Args) == 0 {
			replace(t, strings.Trim(text, "()"))
		}
	})
	return "some of it cannot be converted: write " + text
}

// notNumber knows texts that are no numbers.
func notNumber(c *complaint) (string, bool) {
	if m := regexp.MustCompile(`cannot be applied to "((?:[^"\\]|\\.)*)`).FindStringSubmatch(c.said); m != nil {
		digits := regexp.MustCompile(`[^0-9.-]`).ReplaceAllString(m[1], "")
		if digits != m[1] && regexp.MustCompile(`^-?\d+(\.\d+)?$`).MatchString(digits) && !regexp.MustCompile(`\d[A-Za-z]*[-:/]\d`).MatchString(m[1]) {
			return everywhere(c, "tonumber", `(gsub("[^0-9.-]"; "") | tonumber)`), true
		}
	}
	return everywhere(c, "tonumber", "(tonumber? // null)"), true
}

// otherDate knows dates that fromdate does not read.
func otherDate(c *complaint) (string, bool) {
	for _, form := range []struct{ like, instead, hint string }{
		{`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"`, `sub("\\.[0-9]+"; "") | fromdate`, "fromdate reads no fractions of seconds"},
		{`"\d{4}-\d\d-\d\d"`, `strptime("%Y-%m-%d") | mktime`, "fromdate wants a time too"},
		{`"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"`, `strptime("%Y-%m-%d %H:%M:%S") | mktime`, "fromdate wants a T and a Z"},
		{`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"`, `. + "Z" | fromdate`, "fromdate wants a Z at the end"},
	} {
		if regexp.MustCompile(`cannot be applied to `+form.like).MatchString(c.said) && strings.Contains(c.said, "%Y-%m-%dT%H:%M:%S%z") {
			for _, name := range []string{"fromdate", "fromdateiso8601"} {
				everywhere(c, name, form.instead)
			}
			return form.hint + ": write " + form.instead, true
		}
	}
	return "the form of strptime does not fit the text: %Y-%m-%dT%H:%M:%SZ stands for 2024-05-06T07:08:09Z", false
}

func secondsAlready(c *complaint) (string, bool) {
	if c.fault != nil && c.fault.term != nil && c.fault.term.Func != nil && strings.HasPrefix(c.fault.term.Func.Name, "fromdate") {
		drop(c.fault.term, -1)
		return c.there() + ": it is seconds already, leave fromdate out", true
	}
	return c.there() + ": strptime reads text; a number of seconds is written with todate or strftime", false
}

func dateText(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil || !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`).MatchString(c.fault.in.n.text) {
		return c.there() + ": a number of seconds is wanted; fromdate reads 2024-05-06T07:08:09Z, strptime other forms", false
	}
	insert(c.fault.term, c.fault.at, c.fault.in.scope, "fromdate")
	return c.there() + ": a number of seconds is wanted, use fromdate before", true
}

func rowOfObject(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return "a row is an array: [.id, .name] | @csv", false
	}
	if key := c.fault.in.n.wrapped(); key != "" {
		return c.there() + ": a row is an array: " + member(key).String() + "[] | [.id, .name] | @csv", false
	}
	replace(c.fault.term, "[.[]] | "+c.fault.term.Format)
	return c.there() + ": a row is an array: [.id, .name] | @csv, or [.[]] for all members", true
}

func nestedRow(c *complaint) (string, bool) {
	const flat = `map(if type == "array" or type == "object" then tojson else . end)`
	if c.fault == nil || c.fault.term == nil {
		return "a row has only strings, numbers, booleans and null: " + flat, false
	}
	if v := c.fault.in.n; len(v.items) > 0 && v.itemKind() == "array" {
		insertSuffix(c.fault.term, c.fault.at, c.fault.in.scope, everyItem())
		return c.there() + ": it has rows, use .[] | @csv for each", true
	}
	replace(c.fault.term, flat+" | "+c.fault.term.Format)
	return c.there() + ": a row has only strings, numbers, booleans and null", true
}

func hasOnArray(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return c.there() + ": write any(.[]; has(…)) or map(has(…))", false
	}
	replace(c.fault.term, "any(.[]; "+c.fault.term.Func.String()+")")
	return c.there() + ": has(…) asks an object; ask the elements: any(.[]; has(…))", true
}

func anyElement(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return arrayOfTexts(c)
	}
	text := c.fault.term.Func.String()
	if signatures[c.fault.term.Func.Name].gives == "boolean" {
		replace(c.fault.term, "any(.[]; "+text+")")
		return c.there() + ": ask its elements: any(.[]; " + cutText(text) + ")", true
	}
	replace(c.fault.term, "map("+text+")")
	return c.there() + ": apply it to the elements: map(" + cutText(text) + ")", true
}

// arrayOfTexts mends contains("x") where it stands only once: the walker does not follow its argument.
func arrayOfTexts(c *complaint) (string, bool) {
	var found []*gojq.Term
	terms(c.query, func(t *gojq.Term) {
		if t.Type == gojq.TermTypeFunc && strings.HasPrefix(c.said, t.Func.Name+"(") && len(t.Func.Args) == 1 {
			found = append(found, t)
		}
	})
	if len(found) != 1 {
		return c.there() + `: ask the elements: any(.[]; contains("x")), or index("x") for an equal one`, false
	}
	text := found[0].Func.String()
	replace(found[0], "any(.[]; "+text+")")
	return c.there() + ": it is applied to an array: ask its elements, any(.[]; " + cutText(text) + ")", true
}

func textOfNull(c *complaint) (string, bool) {
	return convert(c, `. // "" | `, "there is null in some places: give it a default, .name // \"\"")
}

func textOfScalar(c *complaint) (string, bool) {
	return convert(c, "tostring | ", "there is no string: use tostring before")
}

// convert puts text before every call of the function that the message names.
func convert(c *complaint, text, hint string) (string, bool) {
	spokenAs, _, _ := strings.Cut(strings.Split(c.said, " cannot")[0], "(")
	changed := false
	terms(c.query, func(t *gojq.Term) {
		if t.Type != gojq.TermTypeFunc {
			return
		}
		if name := t.Func.Name; name != spokenAs && spoken[name] != spokenAs {
			return
		}
		replace(t, text+t.Func.String())
		changed = true
	})
	return hint + "; " + c.input(), changed
}

func textOfObject(c *complaint) (string, bool) {
	return c.there() + ": a string is wanted; name the member, or use tojson", false
}

func nothingToCount(c *complaint) (string, bool) {
	if c.fault != nil && c.fault.term != nil && c.fault.in.n.kind == "null" {
		insert(c.fault.term, c.fault.at, c.fault.in.scope, ". // {}")
		return c.there() + ": give null a default, // {}", true
	}
	return c.there() + ": an object or an array is wanted", false
}

func numberOfText(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return "use tonumber before", false
	}
	insert(c.fault.term, c.fault.at, c.fault.in.scope, "tonumber")
	return c.there() + ": use tonumber before", true
}

// textAndNumber knows sums of a string and a number.
func textAndNumber(c *complaint) (string, bool) {
	f := c.fault
	const hint = "a string and a number: use tonumber on the string, or tostring on the number"
	if f == nil {
		return hint, false
	}
	if f.query == nil { // add
		numeric := true
		for _, item := range f.in.n.items {
			numeric = numeric && (item.kind == "number" || item.kind == "string" && isNumeric(item.text) || item.kind == "null")
		}
		if numeric {
			insert(f.term, f.at, f.in.scope, "map(tonumber? // 0)")
			return c.there() + ": numbers are strings in some places: map(tonumber) before add", true
		}
		insert(f.term, f.at, f.in.scope, "map(tostring)")
		return c.there() + ": map(tostring) before add", true
	}
	text, side := f.left, &f.query.Left
	other := &f.query.Right
	if f.left.kind == "number" {
		text, side, other = f.right, other, side
	}
	if isNumeric(text.text) || f.query.Op != gojq.OpAdd {
		if !isNumeric(text.text) {
			return hint, false
		}
		*side = wrap(*side, "tonumber")
		return "the number is a string in the data: use tonumber", true
	}
	*other = wrap(*other, "tostring")
	return "a string and a number: use tostring on the number, or \"text \\(.n)\"", true
}

func isNumeric(text string) bool {
	return regexp.MustCompile(`^-?\d+(\.\d+)?$`).MatchString(text)
}

func numbersAsText(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.query == nil || !isNumeric(f.left.text) || !isNumeric(f.right.text) {
		return "numbers are strings in the data: use tonumber", false
	}
	f.query.Left, f.query.Right = wrap(f.query.Left, "tonumber"), wrap(f.query.Right, "tonumber")
	return "the numbers are strings in the data: use tonumber", true
}

func nullInSum(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.query == nil {
		return "there is null in some places: give it a default, .n // 0", false
	}
	if f.left.kind == "null" {
		f.query.Left = wrap(f.query.Left, ". // 0")
	}
	if f.right.kind == "null" {
		f.query.Right = wrap(f.query.Right, ". // 0")
	}
	return "there is null in some places: give it a default, .n // 0", true
}

func oddSum(c *complaint) (string, bool) {
	return "the two sides are of different kinds: arrays are joined with [.a] + .b, objects with {a: .a} + .b; " + c.input(), false
}

func byZero(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.query == nil {
		return "guard it: if .n == 0 then null else .sum / .n end", false
	}
	text := fmt.Sprintf("if (%s) == 0 then null else (%s) %s (%s) end", f.query.Right, f.query.Left, f.query.Op, f.query.Right)
	*f.query = *parsed(text)
	return "the divisor is 0 in some places: guard it with if", true
}

func keyOfObject(c *complaint) (string, bool) {
	const hint = "the name of a member is a string: {(.id | tostring): .name}"
	if c.fault == nil || c.fault.key == nil {
		return hint, false
	}
	c.fault.key.KeyQuery = wrap(c.fault.key.KeyQuery, "tostring")
	return hint, true
}

func noPath(*complaint) (string, bool) {
	return "the left side of |= and =, and what del, path and to_entries take, is a place such as .a[0]: compute on the right, .a |= tostring", false
}

func noMoreInputs(c *complaint) (string, bool) {
	if c.o.NullInput {
		return "input reads one document, and there is none left: use inputs, or first(inputs)", false
	}
	c.o.NullInput = true
	return "without -n the first document is . and input reads the one behind: add -n", true
}

func badRegex(*complaint) (string, bool) {
	return `mind the two layers: in the JSON of a stage \\d of a filter's regular expression is written \\\\d, and \\( is \\\\(`, false
}

func badCount(*complaint) (string, bool) {
	return "give a number from 0 on; .[-1] counts from the end", false
}

// notJSONInput knows inputs that jq cannot read.
func notJSONInput(c *complaint) (string, bool) {
	text := strings.TrimSpace(string(c.sample))
	switch {
	case strings.Contains(c.said, "unexpected end of the input") && len(c.given) > 0:
		return "the JSON ends too early: a stage before, such as head -c or cut, has cut it; cut with jq instead (.[:10])", false
	case strings.Contains(c.said, `'\''`) || strings.Contains(c.said, `'N'`) || strings.Contains(c.said, `'T'`) && strings.HasPrefix(text, "{"):
		return "this is written like Python, not JSON (single quotes, True, None): take the JSON that the tool has, or mend it with sed before", false
	case len(c.given) > 0 && (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")):
		return "the input begins as JSON and does not stay so: look at it with a preview stage; grep keeps the lines that are JSON", false
	}
	return c.textInput(text)
}

// textInput knows text that is given to a filter for JSON.
func (c *complaint) textInput(text string) (string, bool) {
	first, rest, _ := strings.Cut(text, "\n")
	if second, _, _ := strings.Cut(rest, "\n"); strings.Contains(first, ",") && strings.Count(second, ",") == strings.Count(first, ",") {
		names := strings.Split(first, ",")
		n := &node{kind: "object", fields: map[string]*node{}}
		for _, name := range names {
			name = strings.Trim(strings.TrimSpace(name), `"`)
			n.keys, n.fields[name] = append(n.keys, name), &node{kind: "string", cut: true}
		}
		return c.tableInput(n)
	}
	c.o.RawInput = true
	c.read()
	if f := find(c.query, c.docs, ""); f != nil {
		return "the input is text, not JSON: -R gives every line as a string, and capture(…), split(…) or fromcsv take it apart", false
	}
	return "the input is text, not JSON: add -R to have every line as a string", true
}

// tableInput mends a filter for CSV whose rows look like n.
func (c *complaint) tableInput(n *node) (string, bool) {
	const hint = "the input is CSV, not JSON: -R -s with fromcsv makes an array of objects"
	c.o.RawInput, c.o.Slurp = true, true
	array := &node{kind: "array", items: []*node{n}, cut: true}
	for _, step := range []string{"fromcsv", "fromcsv | .[]"} {
		c.docs = []*node{array}
		if step != "fromcsv" {
			c.docs = []*node{n}
		}
		if find(c.query, c.docs, "") == nil {
			before(c.query, step)
			return hint, true
		}
	}
	return hint, false
}
