package jq

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
)

// A rewrite is a common mistake of a filter that cannot be compiled, what to say of it, and how to mend it.
type rewrite struct {
	in   string                   // regular expression over the code outside of strings; empty: mend sees the whole text
	hint string                   // one concrete step
	out  string                   // the replacement, as in [regexp.Regexp.ReplaceAllString]
	mend func(text string) string // instead of in and out
	all  bool                     // strings are looked into as well
}

// rewrites are tried in this order; one that changes nothing has not found its mistake. Each is right only if the
// filter can be compiled in the end.
var rewrites = []rewrite{
	{mend: unquoted, hint: "leave the shell's quotes out: no shell reads arguments"},
	{in: `^\s*g?o?jq\s+(-\w+\s+)*`, hint: `the filter alone is the argument: the command's name stands in "command", options are arguments of their own`},
	{mend: unescaped, hint: `escape quotes once, as JSON does: the filter itself is not escaped`},
	{mend: doubleQuoted, hint: "strings stand in double quotes"},
	{in: `\s*&&\s*`, out: ` and `, hint: "write and, or, not instead of &&, ||, !"},
	{in: `\s*\|\|\s*`, out: ` or `, hint: "write and, or, not instead of &&, ||, !"},
	{in: `!==`, out: `!=`, hint: "jq compares with == and !="},
	{in: `===`, out: `==`, hint: "jq compares with == and !="},
	{in: `<>`, out: `!=`, hint: "jq compares with == and !="},
	{in: `=~\s*("[^"]*")`, out: `| test($1)`, all: true, hint: `test a string with test("regex")`},
	{in: `=>`, out: `|`, hint: "functions are applied with |"},
	{in: `\bis\s+not\s+null\b`, out: `!= null`, hint: "jq compares with == and !="},
	{in: `\bis\s+null\b`, out: `== null`, hint: "jq compares with == and !="},
	{in: `(\.[\w.]+)\s+not\s+in\s*(\[[^\]]*\])`, all: true, out: `($1 | IN($2[]) | not)`, hint: "write IN(…): .a | IN(1, 2)"},
	{in: `(\.[\w.]+)\s+in\s*(\[[^\]]*\])`, all: true, out: `($1 | IN($2[]))`, hint: "write IN(…): .a | IN(1, 2)"},
	{in: `(\.[\w.]+)\s+(contains|startswith|endswith|test)\s+("[^"]*")`, all: true, out: `($1 | $2($3))`, hint: `functions follow a | and take arguments in parentheses: .a | contains("x")`},
	{in: `\[\*\]`, out: `[]`, hint: "write .[] for all elements"},
	{in: `\.\*`, out: `.[]`, hint: "write .[] for all elements"},
	{in: `(^|[^\w$.\])}"?])\$\.`, out: `$1.`, hint: "a path begins with a dot: .items[0]"},
	{in: `(^|[^=!<>\w])!\s*(\.[\w.\[\]]+|\([^()]*\))`, out: `$1($2 | not)`, hint: "write (… | not) instead of !"},
	{in: `\bnot\s*\(([^()]*)\)`, out: `(($1) | not)`, hint: "not takes no argument: (… | not)"},
	{in: `\bnot\s+(\.[\w.]+)`, out: `($1 | not)`, hint: "not takes no argument: (… | not)"},
	{in: `\belse\s+if\b`, out: `elif`, hint: "write elif"},
	{in: `\b(elsif|elseif)\b`, out: `elif`, hint: "write elif"},
	{in: `\b(None|nil|undefined|NULL|Null)\b`, out: `null`, hint: "write null, true, false"},
	{in: `\b(True|TRUE)\b`, out: `true`, hint: "write null, true, false"},
	{in: `\b(False|FALSE)\b`, out: `false`, hint: "write null, true, false"},
	{mend: undotted, hint: "in an object write {id, name}, without dots, or {id: .id}"},
	{in: `\.\.([A-Za-z_]\w*)`, out: `.. | .$1?`, hint: "write .. | .name? for every name at any depth"},
	{in: `\.([@$][A-Za-z_]\w*)`, out: `."$1"`, hint: `names with other characters stand in quotes: ."@type"`},
	{in: `([\w\])])\.(\d+)`, out: `$1[$2]`, hint: "elements are numbered in brackets: .a[0]"},
	{in: `\.([A-Za-z_]\w*(?:-\w*[A-Za-z]\w*)+)`, out: `."$1"`, hint: `a name with a dash stands in quotes: ."first-name"`},
	{in: `\b(map|select|sort_by|group_by|unique_by|min_by|max_by|map_values|any|all|has|test|contains|split|join|startswith|endswith)\s+([^(\s|][^|)]*[^|)\s]|[^(\s|])`, all: true, out: `$1($2)`, hint: "functions take their arguments in parentheses: select(.a == 1)"},
	{mend: semicolons, hint: "several arguments are separated by semicolons: sub(\"a\"; \"b\")"},
	{mend: quotedWord, hint: "a string stands in double quotes"},
	{mend: comparedOnce, hint: "= assigns, == compares"},
	{in: `(\sas\s+\$\w+)\s+([^|\s])`, out: `$1 | $2`, hint: "write | behind: .a as $x | …"},
	{in: `([\w\])"}])(\s+)([A-Za-z_]\w*\s*:)`, out: `$1,$2$3`, all: true, hint: "the members of an object are separated by commas"},
	{in: `\b(count|size|len)\b(\s*\(\s*\))?`, out: `length`, hint: "use length"},
	{in: `\blength\s*\(([^()]*)\)`, out: `($1 | length)`, hint: "functions of the input take no argument: .items | length"},
	{in: `\b(keys|values|add|sort|unique|reverse|tonumber|tostring|tojson|fromjson|type|first|last|min|max|flatten|ascii_downcase|ascii_upcase)\s*\(([^()]+)\)`, out: `($2 | $1)`, hint: "functions of the input take no argument: .items | length"},
	{in: `\.(length|keys|values|add|sum|count|sort|unique|reverse|first|last|min|max|type|tostring|tonumber)\s*\(\s*\)`, out: ` | $1`, hint: "functions follow a |: .items | length"},
	{in: `\.(map|select|filter|sort_by|group_by|unique_by|min_by|max_by|join|split|test|contains|startswith|endswith|has|any|all|sub|gsub|flatten|index)\(`, out: ` | $1(`, hint: "functions follow a |: .items | map(.id)"},
	{in: `([^|{,(]+|\([^()]*\))\s\?\s+([^:|{}]+?)\s+:\s+([^|{})]+)`, all: true, out: `if $1 then $2 else $3 end`, hint: "write if … then … else … end"},
	{in: `\b([a-z_]\w*)\s*\(\s*\)`, out: `$1`, hint: "a function without arguments has no parentheses"},
	{in: `\b(lower|lowercase|downcase|tolower|toLowerCase)\b`, out: `ascii_downcase`, hint: "use ascii_downcase"},
	{in: `\b(upper|uppercase|upcase|toupper|toUpperCase)\b`, out: `ascii_upcase`, hint: "use ascii_upcase"},
	{in: `\bsum\b`, out: `add`, hint: "use add"},
	{in: `\b(avg|average|mean)\b`, out: `(add / length)`, hint: "use add / length"},
	{in: `\b(distinct|uniq)\b`, out: `unique`, hint: "use unique"},
	{in: `\b(strip)\b`, out: `trim`, hint: "use trim"},
	{in: `\btypeof\b`, out: `type`, hint: "use type"},
	{in: `\b(to|from)_(json|number|string)\b`, out: `$1$2`, hint: "use tojson, fromjson, tonumber, tostring"},
	{in: `\b(filter|where)\(([^()]*)\)`, all: true, out: `map(select($2))`, hint: "use map(select(…))"},
	{in: `[;,|.]\s*$`, out: ``, hint: "leave out what follows the filter"},
	{in: `^\s*[|;,]\s*`, out: ``, hint: "leave out what stands before the filter"},
	{mend: closed, hint: "something is not closed, or closed twice: every ( [ { needs its end, if needs then and end"},
}

// repairs is how many mistakes of one filter are mended.
const repairs = 6

// repaired returns the filter without its mistakes and what was wrong, or nothing.
func (o Options) repaired() (filter, hint string) {
	text := o.Filter
	if len(text) > maxRepaired {
		return "", ""
	}
	var hints []string
	tried := make([]bool, len(rewrites))
	for i := 0; i < len(rewrites) && len(hints) < repairs; i++ {
		next := rewrites[i].apply(text)
		if tried[i] || next == text || len(next) > 2*maxRepaired {
			continue
		}
		tried[i] = true
		// A rewrite that leads to the same mistake elsewhere or to none is a step; any other stays without.
		o.Filter = next
		_, err := compile(o)
		if err != nil && !nearer(text, next, o) {
			continue
		}
		text = next
		if len(hints) == 0 || hints[len(hints)-1] != rewrites[i].hint {
			hints = append(hints, rewrites[i].hint)
		}
		if err == nil {
			return strings.TrimSpace(text), strings.Join(hints, "; ")
		}
		i = -1
	}
	return "", ""
}

// maxRepaired is the longest filter, in bytes, that is looked at: longer ones are programs, not slips.
const maxRepaired = 2048

// nearer reports whether the rewritten filter is wrong later than before, or wrong only in its names.
func nearer(before, after string, o Options) bool {
	o.Filter = before
	_, old := compile(o)
	o.Filter = after
	_, now := compile(o)
	switch {
	case now.offset < 0 && old.offset < 0:
		return now.Msg != old.Msg
	case now.offset < 0 || old.offset < 0:
		return now.offset < 0
	}
	left := func(text string, e *Error) int { return len(text) - e.offset }
	return left(after, now) < left(before, old) || left(after, now) == left(before, old) && len(after) < len(before)
}

// apply returns the text after the rewrite, or the text as it was.
func (w rewrite) apply(text string) string {
	if w.in == "" {
		return w.mend(text)
	}
	re := patterns()[w.in]
	if w.all {
		return re.ReplaceAllString(text, w.out)
	}
	return outside(text, func(code string) string { return re.ReplaceAllString(code, w.out) })
}

// patterns compiles the regular expressions of rewrites when the first filter is wrong: most never are, and every
// command is a process that would compile them.
var patterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	m := map[string]*regexp.Regexp{}
	for _, w := range rewrites {
		m[w.in] = regexp.MustCompile(w.in)
	}
	return m
})

// outside maps the parts of a filter that are not strings.
func outside(text string, f func(code string) string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '"')
		if i < 0 {
			b.WriteString(f(text))
			break
		}
		n := stringEnd(text[i:])
		b.WriteString(f(text[:i]))
		b.WriteString(text[i : i+n])
		text = text[i+n:]
	}
	return b.String()
}

// stringEnd returns the length of the string literal that text begins with, interpolations included.
func stringEnd(text string) int {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == '(' {
				depth++
			}
		case depth > 0 && c == '(':
			depth++
		case depth > 0 && c == ')':
			depth--
		case depth == 0 && c == '"':
			return i + 1
		}
	}
	return len(text)
}

// unquoted takes off the quotes of a shell around the filter.
func unquoted(text string) string {
	s := strings.TrimSpace(text)
	if len(s) > 2 && s[0] == '\'' && s[len(s)-1] == '\'' && !strings.Contains(s[1:len(s)-1], "'") {
		return s[1 : len(s)-1]
	}
	return text
}

// unescaped takes off one layer of backslashes where no string has begun before the first of them.
func unescaped(text string) string {
	i := strings.Index(text, `\"`)
	if i < 0 || strings.Contains(text[:i], `"`) {
		return text
	}
	var s string
	if json.Unmarshal([]byte(`"`+text+`"`), &s) != nil {
		return text
	}
	return s
}

// doubleQuoted gives strings in single quotes double ones.
func doubleQuoted(text string) string {
	return outside(text, func(code string) string {
		parts := strings.Split(code, "'")
		if len(parts)%2 == 0 {
			return code
		}
		var b strings.Builder
		for i, part := range parts {
			if i%2 == 1 {
				part = compact(part)
			}
			b.WriteString(part)
		}
		return b.String()
	})
}

// undotted leaves out the dots before the names of an object's members.
func undotted(text string) string {
	re := regexp.MustCompile(`([{,]\s*)\.([A-Za-z_]\w*\s*[,}])`)
	return outside(text, func(code string) string {
		for range strings.Count(code, ",") + 1 { // neighbours share a comma
			code = re.ReplaceAllString(code, "$1$2")
		}
		return code
	})
}

// semicolons puts semicolons for the commas between the arguments of functions that take several.
func semicolons(text string) string {
	const names = `\b(sub|gsub|limit|test|match|capture|scan|splits|split|until|while|recurse|ltrimstr|join|pow|atan2|fmod|setpath|reduce|index|nth|first|last|any|all|range|group_by|with_entries|ascii|log|getpath|paths|input|tojson|error|halt_error|skip|IN|INDEX)\(`
	re := regexp.MustCompile(names)
	for from := 0; ; {
		m := re.FindStringIndex(text[from:])
		if m == nil {
			return text
		}
		begin := from + m[1]
		text = text[:begin] + topCommas(text[begin:])
		from = begin
	}
}

// topCommas replaces the commas of an argument list that text begins with, up to its end.
func topCommas(text string) string {
	b := []byte(text)
	for i, depth := 0, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(text[i:]) - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return string(b)
			}
		case ',':
			if depth == 0 {
				b[i] = ';'
			}
		}
	}
	return string(b)
}

// quotedWord quotes a bare word that something is compared with.
func quotedWord(text string) string {
	re := regexp.MustCompile(`(==|!=)\s*([A-Za-z_][\w-]*)\b`)
	return outside(text, func(code string) string {
		return re.ReplaceAllStringFunc(code, func(s string) string {
			m := re.FindStringSubmatch(s)
			switch m[2] {
			case "null", "true", "false", "if", "length", "now", "empty", "type", "input", "reduce", "try":
				return s
			}
			return m[1] + " " + compact(m[2])
		})
	})
}

// comparedOnce makes comparisons of what looks like them within conditions.
func comparedOnce(text string) string {
	return outside(text, func(code string) string {
		b := []byte(code)
		var out []byte
		for i, c := range b {
			alone := c == '=' && (i == 0 || !strings.ContainsRune("=!<>|+-*/%", rune(b[i-1]))) && (i+1 == len(b) || b[i+1] != '=')
			if alone {
				out = append(out, '=')
			}
			out = append(out, c)
		}
		return string(out)
	})
}

// closed closes what is open at the end, and leaves out what closes nothing.
func closed(text string) string {
	var open []byte
	var b strings.Builder
	ends := map[byte]byte{'(': ')', '[': ']', '{': '}'}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			n := stringEnd(text[i:])
			b.WriteString(text[i : i+n])
			if i+n == len(text) && (n == 1 || text[len(text)-1] != '"') {
				b.WriteByte('"')
			}
			i += n - 1
			continue
		case ends[c] != 0:
			open = append(open, ends[c])
		case c == ')' || c == ']' || c == '}':
			at := bytes.LastIndexByte(open, c)
			if at < 0 {
				continue
			}
			for n := len(open) - 1; n > at; n-- {
				b.WriteByte(open[n])
			}
			open = open[:at]
		}
		b.WriteByte(c)
	}
	s := b.String()
	for i := len(open) - 1; i >= 0; i-- {
		s += string(open[i])
	}
	ifs, ended := regexp.MustCompile(`\bif\b`), regexp.MustCompile(`\bend\b`)
	if n := len(ifs.FindAllString(s, -1)) - len(ended.FindAllString(s, -1)); n > 0 && n < 10 {
		s += strings.Repeat(" end", n)
	}
	return s
}
