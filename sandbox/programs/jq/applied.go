package jq

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/itchyny/gojq"
)

// Functions and operators that do not take what they are given.

func rowOfObject(c *complaint) (string, bool) {
	if c.fault == nil || c.fault.term == nil {
		return "a row is an array: [.id, .name] | @csv", false
	}
	if key := c.fault.in.n.wrapped(); key != "" {
		return c.there() + ": a row is an array: " + shownMember(key) + "[] | [.id, .name] | @csv", false
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
	if strings.HasSuffix(c.said, ": null") {
		return "the name of a member is null, as what it is taken from is not there or null; " + c.there(), false
	}
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

func badRegex(c *complaint) (string, bool) {
	if strings.Contains(c.said, "Perl syntax") {
		return "regular expressions are RE2's, without look-around and back-references: match more and take the part with a group, capture(\"x=(?<v>[0-9]+)\").v", false
	}
	return `mind the two layers: in the JSON of a stage \\d of a filter's regular expression is written \\\\d, and \\( is \\\\(`, false
}

func badCount(*complaint) (string, bool) {
	return "give a number from 0 on; .[-1] counts from the end", false
}
