package programs

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Complaint is what is known of a command that has failed, in its check or at work.
type Complaint struct {
	Args    []string // as the agent wrote them
	Message string   // the program's own message
	Sample  []byte   // the beginning of its input
}

// hintText is how much of a message is looked at, in bytes.
const hintText = 4 << 10

// Hint says what to do about a command that has failed: one concrete step, or nothing. It reads the message and the
// beginning of the input, and no script.
func Hint(name string, c Complaint) string {
	said := strings.ToValidUTF8(c.Message[:min(len(c.Message), hintText)], "")
	if at := strings.Index(said, "jq: error"); name == "jq" && at >= 0 { // its first error says why
		said, _, _ = strings.Cut(said[at:], "\n")
	}
	for i, row := range hints {
		if !slices.Contains(strings.Fields(row.of), name) {
			continue
		}
		re := hintPatterns()[i]
		m := re.FindStringSubmatchIndex(said)
		if m == nil {
			continue
		}
		hint := row.hint
		if strings.Contains(hint, "{") {
			hint = c.inShape(hint)
		}
		return string(re.ExpandString(nil, hint, said, m))
	}
	return ""
}

var hintPatterns = sync.OnceValue(func() []*regexp.Regexp {
	all := make([]*regexp.Regexp, len(hints))
	for i, row := range hints {
		all[i] = regexp.MustCompile(`(?s)` + row.says)
	}
	return all
})

// jq's messages about its input, as expressions.
const (
	textFunctions = `\): (?:test|match|capture|scan|startswith|endswith|split|ltrimstr|rtrimstr|ascii_downcase|ascii_upcase|trim|ltrim|rtrim|explode|contains|index|indices|inside)`
	listFunctions = `\): (?:sort|sort_by|group_by|unique|unique_by|reverse|min|max|min_by|max_by|join|implode|flatten|transpose|add)`
	jqSyntax      = `^syntax error in the filter: .*`
	jqNoFunction  = `^function not defined: `
)

// hints is the table: of which programs, what their message looks like (RE2), and the one step to take. The first row that
// fits counts. $1 is a group of the expression. {input} says what the input is, {list} where its list is: ".items" or ".".
var hints = []struct{ of, says, hint string }{
	// Filters of jq that cannot be parsed. The message ends with the line that is wrong, as it was written.
	{"jq", jqSyntax + `invalid escape sequence`, `a jq string takes \\d for the \d of an expression, which is "\\\\d" in JSON; [0-9] needs no backslash`},
	{"jq", jqSyntax + `token "'"`, "strings stand in double quotes, and no shell's quotes stand around the filter"},
	{"jq", jqSyntax + `token "\\\\"`, "escape quotes once, as JSON does: the filter itself is not escaped"},
	{"jq", jqSyntax + `token "&"|` + jqSyntax + `\|\|`, "write and, or, not instead of &&, ||, !"},
	{"jq", jqSyntax + `(?:===|!==|<>|\bis (?:not )?null)`, "jq compares with == and !="},
	{"jq", jqSyntax + `token "!"`, "write (… | not) instead of !"},
	{"jq", jqSyntax + `token "~"`, `test a string with test("regex")`},
	{"jq", jqSyntax + `=>`, "functions are applied with |"},
	{"jq", jqSyntax + `token "in"`, "write IN(…): .a | IN(1, 2)"},
	{"jq", jqSyntax + `token "="`, "= assigns, == compares"},
	{"jq", jqSyntax + `(?:\[\*\]|\.\*|token "\*")`, "write .[] for all elements"},
	{"jq", jqSyntax + `token "[$@]\w{1,40}"`, `names with other characters stand in quotes: ."@type"`},
	{"jq", jqSyntax + `token "\$"`, "a path begins with a dot: .items[0]"},
	{"jq", jqSyntax + `invalid token "\.\d`, "elements are numbered in brackets: .a[0]"},
	{"jq", jqSyntax + `token "(contains|startswith|endswith|test|has|split|join)"`, `functions follow a | and take arguments in parentheses: .a | $1("x")`},
	{"jq", jqSyntax + `\.(map|select|filter|length|keys|values|sort_by|group_by|join|split|test|contains|first|last|add|unique)\(`, "functions follow a |: .items | $1(…); those of the input alone take no parentheses"},
	{"jq", jqSyntax + `[{,] ?\.\w`, "in an object write {id, name}, without dots, or {id: .id}"},
	{"jq", jqSyntax + `\.\.\w`, "write .. | .name? for every name at any depth"},
	{"jq", jqSyntax + `as \$\w+ [^|]`, "write | behind: .a as $$x | …"},
	{"jq", jqSyntax + `\? .* : `, "write if … then … else … end"},
	{"jq", jqSyntax + `else if\b`, "write elif, or an end for each if"},
	{"jq", jqSyntax + `\{.*token "?\w+"?|` + jqSyntax + `token "\w+".*\{.*\w+: \S+ \w+:`, "the members of an object are separated by commas"},
	{"jq", jqSyntax + `unexpected EOF`, "something is not closed, or missing at the end: every ( [ { and string needs its end, if needs then and end"},
	{"jq", jqSyntax + `token "[\])}]"`, "something is closed twice, or in the wrong order: every ( [ { and string needs its end"},
	{"jq", jqSyntax + `token "[|;,]"`, "leave out what follows the filter or stands before it: a | needs a filter on both sides"},
	{"jq", jqSyntax, "write filters as .a[0].b, .[] | select(.a == 1), map({id, name}); several arguments are separated by semicolons"},

	// Functions that other languages have.
	{"jq", jqNoFunction + `not/1`, "not takes no argument: (… | not)"},
	{"jq", jqNoFunction + `(?:None|nil|undefined|NULL|Null)/`, "write null"},
	{"jq", jqNoFunction + `(?:True|TRUE|False|FALSE)/`, "write true, false"},
	{"jq", jqNoFunction + `(?:lower|lowercase|downcase|tolower|toLowerCase)/`, "use ascii_downcase"},
	{"jq", jqNoFunction + `(?:upper|uppercase|upcase|toupper|toUpperCase)/`, "use ascii_upcase"},
	{"jq", jqNoFunction + `sum/`, "use add"},
	{"jq", jqNoFunction + `(?:count|len|size)/`, "use length"},
	{"jq", jqNoFunction + `(?:avg|average|mean)/`, "use add / length"},
	{"jq", jqNoFunction + `(?:substr|substring|slice)/`, "use slices: .[0:10]"},
	{"jq", jqNoFunction + `(?:filter|where)/`, "use map(select(…))"},
	{"jq", jqNoFunction + `(?:distinct|uniq)/`, "use unique"},
	{"jq", jqNoFunction + `concat/`, "use + or add"},
	{"jq", jqNoFunction + `replace/`, `use gsub("old"; "new")`},
	{"jq", jqNoFunction + `strip/`, "use trim"},
	{"jq", jqNoFunction + `includes/`, "use contains or index"},
	{"jq", jqNoFunction + `typeof/`, "use type"},
	{"jq", jqNoFunction + `merge/`, "use +, or * for nested objects"},
	{"jq", jqNoFunction + `sort_desc/`, "use sort | reverse"},
	{"jq", jqNoFunction + `(to|from)_(json|number|string)/`, "use $1$2"},
	{"jq", jqNoFunction + `input_filename/`, "there are no files; to tell sources apart, let an earlier stage put a name into the data"},
	{"jq", jqNoFunction + `get_search_list/`, "there are no modules"},
	{"jq", jqNoFunction + `(?:length|keys|values|add|sort|unique|reverse|tonumber|tostring|tojson|fromjson|type|min|max|ascii_downcase|ascii_upcase)/1`, "functions of the input take no argument: .items | length"},
	{"jq", jqNoFunction + `(?:select|map|sort_by|group_by|unique_by|min_by|max_by|has|test|contains|split|join|startswith|endswith)/0`, "functions take their arguments in parentheses: select(.a == 1)"},
	{"jq", jqNoFunction + `(?:sub|gsub|limit|test|match|split|join|range|until|while|reduce|first|nth)/1.*,`, `several arguments are separated by semicolons: sub("a"; "b")`},
	{"jq", jqNoFunction + `(\w{1,40})/0.*\.\w+-`, `a name with a dash stands in quotes: ."first-name"`},
	{"jq", jqNoFunction + `.*(did you mean [\w, ]+\?)$`, "$1"},
	{"jq", jqNoFunction + `(\w{1,40})/0`, `a field is written .$1, a string "$1"`},
	{"jq", jqNoFunction, "there is no such function with so many arguments: define it, def f(g): …; …, or write it with those that there are"},
	{"jq", `^variable not defined: \$__loc__`, "leave it out"},
	{"jq", `^variable not defined: \$(\w{1,40})`, "give its value with --arg $1 TEXT or --argjson $1 JSON, or of a named input with --slurpfile $1 @NAME"},
	{"jq", `^cannot load module`, "there are no modules; define functions in the filter: def f: …; …"},

	// Filters at work.
	{"jq", `\(at <unknown>\): .*null`, "with -n the input is not read and . is null: leave -n out"},
	{"jq", `expected an object but got: array`, "{input}; an array has no names: use {list}[] for its elements, or {list} | map(…)"},
	{"jq", `(?:expected an (?:object|array) but got|cannot iterate over): string \("[\[{]`, "{input}; where it fails there is JSON within a string, use fromjson"},
	{"jq", `(?:expected an (?:object|array) but got|cannot iterate over): string`, "{input}; a string has no fields and no elements: split(…), test(…) and capture(…) take it apart"},
	{"jq", `(?:expected an (?:object|array) but got|cannot iterate over): (?:number|boolean)`, "{input}; a number or boolean has no fields and no elements: leave out the step that asks for them; .[] and map give the values of an object"},
	{"jq", `expected an array but got: object`, "{input}; an object has no numbers: name a member that is a list"},
	{"jq", `cannot iterate over: null`, "{input}; what is not there is null: look at the names, or pass over it with .[]?"},
	{"jq", `expected an object but got: null|^jq: error .*keys cannot be applied to: null`, "{input}; give null a default, // {}"},
	{"jq", `fromjson cannot be applied to: `, "{input}; it is JSON already, leave fromjson out"},
	{"jq", `fromjson cannot be applied to "`, "some of it is no JSON: write (fromjson? // .)"},
	{"jq", `tonumber cannot be applied to "[^"]*[$,]`, `take out what is no digit: (gsub("[^0-9.-]"; "") | tonumber)`},
	{"jq", `tonumber cannot be applied to`, "some of it is no number: write (tonumber? // null)"},
	{"jq", `strptime\("%Y-%m-%dT%H:%M:%S%z"\) cannot be applied to "[0-9T:-]+\.`, `fromdate reads no fractions of seconds: write sub("\\.[0-9]+"; "") | fromdate`},
	{"jq", `strptime\("%Y-%m-%dT%H:%M:%S%z"\) cannot be applied to "\d+-\d+-\d+"`, `fromdate wants a time too: write strptime("%Y-%m-%d") | mktime`},
	{"jq", `strptime\("%Y-%m-%dT%H:%M:%S%z"\) cannot be applied to "\d+-\d+-\d+ `, `fromdate wants a T and a Z: write strptime("%Y-%m-%d %H:%M:%S") | mktime`},
	{"jq", `strptime\(.*cannot be applied to: number`, "strptime and fromdate read text; a number of seconds is written with todate or strftime"},
	{"jq", `strptime\(.*cannot be applied to "`, "the form of strptime does not fit the text: %Y-%m-%dT%H:%M:%SZ stands for 2024-05-06T07:08:09Z"},
	{"jq", `(?:strftime|todate|gmtime|mktime)\S* cannot be applied to: string`, "a number of seconds is wanted: fromdate reads 2024-05-06T07:08:09Z, strptime other forms"},
	{"jq", `@(csv|tsv) cannot be applied to: object`, "a row is an array: [.id, .name] | @$1, or [.[]] for all members"},
	{"jq", `@(csv|tsv) cannot format an array including: (?:array|object)`, "a row has only strings, numbers, booleans and null: where the input has rows, use .[] | @$1 for each"},
	{"jq", listFunctions + `.* cannot be applied to: object`, "{input}; a list is wanted: name the member that is one, or use to_entries"},
	{"jq", listFunctions + `.* cannot be applied to: (?:string|number|boolean)`, "{input}; a list is wanted: map(…) or [.[] | …] makes one"},
	{"jq", `has\(\S* cannot be applied to: array`, "{input}; write any(.[]; has(…)) or map(has(…))"},
	{"jq", textFunctions + `.* cannot be applied to: null`, `there is null in some places: give it a default, (.name // "")`},
	{"jq", textFunctions + `.* cannot be applied to: (?:number|boolean)`, "there is no string: use tostring before"},
	{"jq", textFunctions + `.* cannot be applied to: array`, "{input}; where it fails there is an array: ask its elements, any(.[]; …), or map(…)"},
	{"jq", textFunctions + `.* cannot be applied to: object`, "{input}; where it fails there is an object: name the member that is meant"},
	{"jq", `(?:keys|length|has)\S* cannot be applied to: `, "{input}; where it fails an object or an array is wanted"},
	{"jq", `cannot be applied to: string`, "use tonumber before"},
	{"jq", `cannot add: (?:number .*string|string .*number)`, `a string and a number: tostring makes text of the number, or "text \(.n)"; tonumber makes a number of the text`},
	{"jq", `cannot (?:subtract|multiply|divide|modulo): .*null`, "there is null in some places: give it a default, .n // 0"},
	{"jq", `cannot (?:subtract|multiply|divide|modulo): .*string`, "numbers are strings in the data: use tonumber"},
	{"jq", `cannot (?:add|subtract|multiply|divide|modulo): `, "the two sides are of different kinds: arrays are joined with [.a] + .b, objects with {a: .a} + .b"},
	{"jq", `cannot (?:divide|modulo) .* by: `, "the divisor is 0 in some places: guard it with if"},
	{"jq", `expected a string for object key but got: null`, "the name of a member is null, as what it is taken from is not there: give it a default, {(.k // \"none\"): 1}"},
	{"jq", `expected a string for object key`, "the name of a member is a string: {(.id | tostring): .name}"},
	{"jq", `invalid path`, "the left side of |= and =, and what del, path and to_entries take, is a place such as .a[0]: compute on the right, .a |= tostring"},
	{"jq", `\(at <unknown>\): No more inputs`, "nothing is left to read: use inputs, which ends with the input, or first(inputs) // null"},
	{"jq", `No more inputs`, "without -n the first document is . and input reads the one behind: add -n"},
	{"jq", `invalid regular expression .*invalid or unsupported`, `regular expressions are RE2's, without look-around and back-references: match more and take the part with a group, capture("x=(?<v>[0-9]+)").v`},
	{"jq", `invalid regular expression`, `mind the two layers: in the JSON of a stage \\d of a filter's regular expression is written \\\\d, and \\( is \\\\(`},
	{"jq", `negative count|should not be negative|index too large`, "give a number from 0 on; .[-1] counts from the end"},
	{"jq", `unexpected end of the input`, "the JSON ends too early: a stage before, such as head -c or cut, has cut it; cut with jq instead (.[:10])"},
	{"jq", `invalid JSON: .*'(?:\\''|N'|T')`, "this is written like Python, not JSON (single quotes, True, None): read it with -R -s and frompy, or -R and frompy where each line is a value"},
	{"jq", `invalid JSON: .*near .\w+,\w`, "the input may be CSV: -R -s with fromcsv makes an array of objects; -R gives every line as a string"},
	{"jq", `invalid JSON: .*looks like text`, "the input is text, not JSON: add -R to have every line as a string; capture(…), split(…) or fromcsv take it apart"},
	{"jq", `invalid JSON: `, "the input is not JSON from some place on: look at it with a preview stage; grep keeps the lines that are JSON"},

	// Other programs.
	{"grep", `(?i)unmatched|unbalanced|invalid preceding|invalid regular expression|trailing backslash|missing (?:terminating|closing)|quantifier does not follow|nothing to repeat`, "-F looks for the text as it stands; as a regular expression, escape ( [ { + * ? ."},
	{"rg", `look-around|backreferences are not supported`, "-P has look-around and back-references"},
	{"rg", `PCRE2: .*UTF-8 error`, "with -P the input must be UTF-8: add --no-unicode, which takes it as bytes, or leave -P out"},
	{"rg", `regex parse error`, "-F looks for the text as it stands; as a regular expression, escape ( [ { + * ? ."},
	{"sed", `disabled in sandbox mode`, "leave out the commands e, r, R, w and W and the flags e and w of s: what sed prints goes to the next stage by itself; to save it, end with tee"},
	{"sed", "unterminated `s' command", "an s command has three delimiters: s/old/new/"},
	{"sed", "unknown option to `s'", "the text has the delimiter in it: use another one, s|old|new|"},
	{"sed", `invalid reference`, `groups are ( ) with -E, \( \) without: add -E`},
	{"sed", `unknown command|missing command|unexpected|unterminated address|unmatched .\{|extra characters`, "a script is a list of commands such as s/old/new/g, /re/d or 5,10p (with -n)"},
	{"sed", `(?i)unmatched|invalid preceding|invalid regular`, "escape ( [ { + * ? . where they stand for themselves"},
	{"awk", `division by zero`, "guard the division: n ? sum / n : 0"},
	{"awk", `syntax error|unexpected newline|unterminated`, `a program is PATTERN { ACTION }, strings in double quotes: {print $$1 ": " $$2}`},
	{"awk", `(?i)invalid regexp|unmatched`, "escape ( [ { + * ? . where they stand for themselves; in a string twice"},
	{"awk", `function .* (?:not defined|never defined)`, "gawk has split, substr, match, gsub, tolower, sprintf, strftime ...; JSON is for jq"},
	{"join comm", `not (?:in )?sorted(?: order)?`, "sort both inputs before, by the same field: sort -k1,1 (and -t as here)"},
	{"comm", `order`, "sort both inputs before"},
	{"bc", `(?i)syntax error|parse error`, "bc reads lines such as 2*3+1, with . for decimals; words and units have to go before"},
	{"bc", `(?i)divide by zero`, "guard the division: if (n == 0) 0 else sum / n"},
	{"base64", `invalid input`, "the input is no base64, or has other characters in it: -d -i passes over them"},
	{"numfmt", `invalid (?:number|suffix)`, "some field is no such number: --invalid=ignore leaves it as it is"},
	{"date", `invalid date`, `-d takes dates such as "2024-05-06 07:08" or "yesterday"; dates in data are for jq: fromdate, strptime, strftime`},
	{"cut numfmt", `numbered from 1|decreasing range|invalid (?:field|byte|character|range)`, "positions count from 1, and the larger one comes last: 1,3-5,7-"},
	{"sort", `incompatible`, "take one way of ordering a key: n, g, h, M, V or d, each with r, b or f if needed"},
	{"tr", `reverse collating`, "a range goes upwards: a-z; a - stands for itself at the end"},
	{"tr", `missing operand|extra operand`, "two sets are needed, or -d or -s with one"},
	{"tr", `string2 must be non-empty|two strings must be given`, "-d deletes characters: tr -d SET"},
	{"tsort", `loop|odd number`, "the input is pairs, before and after, without a circle"},
	{"column", `--json and --table-columns`, "-J needs the names of the columns: -N id,name"},
	{"shuf", `of memory|of processor time|memory exhausted`, "ask for fewer numbers: a smaller range, or a sample of it with -n 10"},
	{"uniq cut paste fold nl wc head tail sort", `memory exhausted|line too long`, "a line is too long: make lines of the data before, with jq -c '.[]'"},
}
