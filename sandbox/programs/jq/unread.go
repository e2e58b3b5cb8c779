package jq

import (
	"strings"
)

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
