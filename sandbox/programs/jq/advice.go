package jq

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// Advice is what to do about a filter that failed on its input.
type Advice struct {
	Hint  string   // one concrete step, with what the input is; empty: nothing is known
	Fixed *Options // the filter and its options corrected, where that can be derived
}

// adviceSample is how much of an input is looked at.
const adviceSample = 64 << 10

// Advise says what to do about a run of o that ended with what it said on its standard error. sample is the beginning of
// its input, and cut says that there was more. It runs nothing, and its work is bounded.
func Advise(o Options, said string, sample []byte, cut bool) Advice {
	if len(sample) > adviceSample {
		sample, cut = sample[:adviceSample], true
	}
	c := &complaint{o: o, said: complaintOf(said), sample: sample, cut: cut}
	if c.said == "" || len(o.Filter) > maxRepaired {
		return Advice{}
	}
	var err error
	if c.query, err = gojq.Parse(o.Filter); err != nil {
		return Advice{}
	}
	c.read()
	return c.advise()
}

// complaintOf returns the first error of what jq said, without where it was.
func complaintOf(said string) string {
	for _, line := range strings.Split(said, "\n") {
		_, rest, ok := strings.Cut(line, "jq: error")
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, " (at ") {
			if _, after, ok := strings.Cut(rest, "): "); ok {
				return strings.TrimSpace(after)
			}
		}
		return strings.TrimSpace(strings.TrimPrefix(rest, ":"))
	}
	return ""
}

// A complaint is an error with all that is known of it.
type complaint struct {
	o      Options
	said   string
	m      []string // the groups of the expression that has matched said
	sample []byte
	cut    bool

	docs  []*node // what the filter is run on
	given []*node // the documents of the input
	json  bool    // whether the input is JSON, as far as it can be seen
	query *gojq.Query
	fault *fault // nil: the step could not be found
}

// read takes the sample apart as the options say.
func (c *complaint) read() {
	docs, whole := readSample(c.sample)
	c.given, c.json = docs, whole || c.cut && len(docs) > 0
	switch o := c.o; {
	case o.NullInput:
		c.docs = []*node{{kind: "null"}}
	case o.RawInput && o.Slurp:
		c.docs = []*node{{kind: "string", text: string(c.sample), cut: c.cut}}
	case o.RawInput:
		for line := range bytes.Lines(c.sample) {
			c.docs = append(c.docs, &node{kind: "string", text: strings.TrimRight(string(line), "\n")})
		}
	case o.Slurp:
		c.docs = []*node{{kind: "array", items: docs, cut: c.cut}}
	default:
		c.docs = docs
	}
}

// mends is how many mistakes of one filter are mended: behind the first there are often more of its kind.
const mends = 8

// advise looks the complaint up in the table, and mends what the first row can mend, and what shows behind it.
func (c *complaint) advise() Advice {
	first := ""
	for range mends {
		c.fault = find(c.query, c.docs, withoutValues(c.said))
		hint, mended := c.look()
		if first == "" {
			first = hint
		}
		if hint == "" || !mended {
			return Advice{Hint: first}
		}
		simplified(c.query)
		c.o.Filter = c.query.String()
		if f, err := compile(c.o); err != nil || f == nil {
			return Advice{Hint: first}
		}
		c.query = parsed(c.o.Filter)
		c.read()
		next := find(c.query, c.docs, "")
		if next == nil {
			return Advice{Hint: first, Fixed: &c.o}
		}
		c.said = next.said
	}
	return Advice{Hint: first}
}

// look finds the row of the table that knows the complaint.
func (c *complaint) look() (hint string, mended bool) {
	for _, row := range complaints {
		re := saidPatterns()[row.says]
		if c.m = re.FindStringSubmatch(c.said); c.m == nil {
			continue
		}
		if hint, mended = row.advise(c); hint != "" {
			return hint, mended
		}
	}
	return "", false
}

// withoutValues is a message without the values that it quotes: "cannot add: string and number".
func withoutValues(said string) string {
	said = strings.TrimSuffix(said, ")")
	if i := strings.Index(said, "("); i > 0 && said[i-1] != ' ' { // the arguments of a function
		if _, rest, ok := strings.Cut(said[i:], ") cannot be applied to"); ok {
			said = said[:i] + " cannot be applied to" + rest
		}
	}
	for _, end := range []string{"expected an object but got: ", "expected an array but got: ", "cannot iterate over: ", " cannot be applied to: ", " including: ", "object key but got: "} {
		if i := strings.Index(said, end); i >= 0 {
			kind, _, _ := strings.Cut(said[i+len(end):], " ")
			return said[:i+len(end)] + kind
		}
	}
	if strings.HasPrefix(said, "cannot ") {
		verb, rest, _ := strings.Cut(said, " (")
		if _, right, ok := strings.Cut(rest, ") by: "); ok {
			kind, _, _ := strings.Cut(right, " ")
			return verb + " by: " + kind
		}
		if i := strings.LastIndex(said, " and "); i >= 0 {
			left, _, _ := strings.Cut(said[:i], " (")
			right, _, _ := strings.Cut(said[i+len(" and "):], " (")
			return left + " and " + right
		}
	}
	return said
}

// input says what the input is.
func (c *complaint) input() string {
	switch {
	case c.o.NullInput:
		return "with -n the input is null"
	case len(c.given) == 0:
		return "the input is not JSON"
	case c.o.RawInput:
		return "with -R the input is text"
	case c.o.Slurp && (len(c.given) > 1 || c.cut):
		return "with -s the input is an array of the documents, the first of which is " + c.given[0].describe()
	case c.o.Slurp:
		return "with -s the input is an array of one document, " + c.given[0].describe()
	case len(c.given) > 1:
		count := fmt.Sprint(len(c.given))
		if c.cut {
			count = "many"
		}
		return fmt.Sprintf("the input is %s JSON documents, the first is %s", count, c.given[0].describe())
	}
	return "the input is " + c.given[0].describe()
}

// several reports whether there are more documents than one.
func (c *complaint) several() bool {
	return !c.o.NullInput && !c.o.Slurp && !c.o.RawInput && len(c.given) > 1
}

// atRoot reports whether the step that fails is applied to the input itself.
func (c *complaint) atRoot() bool {
	if c.fault == nil || c.fault.in.n == nil {
		return false
	}
	for _, doc := range c.docs {
		if doc == c.fault.in.n {
			return true
		}
	}
	return false
}

// there says what the step that fails was applied to.
func (c *complaint) there() string {
	if c.fault == nil || c.fault.in.n == nil || c.atRoot() {
		return c.input()
	}
	return c.input() + "; where it fails there is " + c.fault.in.n.describe()
}
