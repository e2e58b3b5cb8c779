package jq

import (
	"regexp"
	"strings"

	"github.com/itchyny/gojq"
)

// Values that cannot be converted: numbers, dates, JSON within strings.

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
