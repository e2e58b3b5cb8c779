package programs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
)

// A Complaint is what is known of a command that has failed at work.
type Complaint struct {
	Args   []string // as the agent wrote them
	Said   string   // on standard error
	Sample []byte   // the beginning of its input
	Cut    bool     // whether there was more
}

// Advise says what to do about a command that has failed: a hint, and the members of its stage that would be right where
// they can be derived. Both may be empty. It runs nothing, and its work is bounded.
func Advise(name string, c Complaint) (hint string, fixed json.RawMessage) {
	if name == "jq" {
		return adviseJQ(c)
	}
	program, ok := Find(name)
	if !ok {
		return "", nil
	}
	for _, a := range advices {
		if !slices.Contains(strings.Fields(a.of), name) || !regexp.MustCompile(a.says).MatchString(c.Said) {
			continue
		}
		if a.fixed == nil {
			return a.hint, nil
		}
		args := a.fixed(slices.Clone(c.Args))
		if _, err := program.parse(args, Given{Files: true}); args == nil || err != nil || slices.Equal(args, c.Args) {
			return a.hint, nil
		}
		return a.hint, fix(member{"args", args})
	}
	return "", nil
}

// advices are the common failures of programs other than jq, by what they say.
var advices = []struct {
	of    string // names of programs
	says  string // regular expression
	hint  string
	fixed func(args []string) []string // nil: it cannot be derived
}{
	{"grep", `(?i)unmatched|unbalanced|invalid preceding|invalid regular expression|trailing backslash|missing (terminating|closing)|quantifier does not follow|nothing to repeat`, "-F looks for the text as it stands; as a regular expression, escape ( [ { + * ? .", plainly},
	{"rg", `look-around|backreferences are not supported`, "-P has look-around and back-references", withOption("-P")},
	{"rg", `regex parse error`, "-F looks for the text as it stands; as a regular expression, escape ( [ { + * ? .", withOption("-F")},
	{"sed", "disabled in sandbox mode", "leave out the commands e, r, R, w and W and the flags e and w of s: what sed prints goes to the next stage by itself; to save it, end with tee", nil},
	{"sed", "unterminated `s' command", "an s command has three delimiters: s/old/new/", sedDelimiter},
	{"sed", "unknown option to `s'", "the text has the delimiter in it: use another one, s|old|new|", nil},
	{"sed", "invalid reference", "groups are ( ) with -E, \\( \\) without: add -E", withOption("-E")},
	{"sed", "unknown command|missing command|unexpected|unterminated address", "a script is a list of commands such as s/old/new/g, /re/d or 5,10p (with -n)", nil},
	{"sed", `(?i)unmatched|invalid preceding|invalid regular`, "escape ( [ { + * ? . where they stand for themselves", nil},
	{"awk", `division by zero`, "guard the division: n ? sum / n : 0", nil},
	{"awk", `syntax error|unexpected newline|unterminated`, `a program is PATTERN { ACTION }, strings in double quotes: {print $1 ": " $2}`, awkBraces},
	{"awk", `(?i)invalid regexp|unmatched`, "escape ( [ { + * ? . where they stand for themselves; in a string twice", nil},
	{"awk", `function .* (not defined|never defined)`, "gawk has split, substr, match, gsub, tolower, sprintf, strftime ...; JSON is for jq", nil},
	{"join comm", `not (in )?sorted( order)?`, "sort both inputs before, by the same field: sort -k1,1 (and -t as here)", nil},
	{"comm", `order`, "sort both inputs before", nil},
	{"bc", `(?i)syntax error|parse error`, "bc reads lines such as 2*3+1, with . for decimals; words and units have to go before", nil},
	{"bc", `(?i)divide by zero`, "guard the division: if (n == 0) 0 else sum / n", nil},
	{"base64", `invalid input`, "the input is no base64, or has other characters in it: -d -i passes over them", nil},
	{"numfmt", `invalid (number|suffix)`, "some field is no such number: --invalid=ignore leaves it as it is", withOption("--invalid=ignore")},
	{"date", `invalid date`, `-d takes dates such as "2024-05-06 07:08" or "yesterday"; dates in data are for jq: fromdate, strptime, strftime`, nil},
	{"cut numfmt", `numbered from 1|decreasing range|invalid (field|byte|character|range)`, "positions count from 1, and the larger one comes last: 1,3-5,7-", nil},
	{"sort", `incompatible`, "take one way of ordering a key: n, g, h, M, V or d, each with r, b or f if needed", nil},
	{"tr", `reverse collating`, "a range goes upwards: a-z; a - stands for itself at the end", nil},
	{"tr", `missing operand`, "two sets are needed, or -d or -s with one", nil},
	{"tr", `string2 must be non-empty|two strings must be given`, "-d deletes characters", deleting},
	{"tsort", `loop|odd number`, "the input is pairs, before and after, without a circle", nil},
	{"column", `--json and --table-columns`, "-J needs the names of the columns: -N id,name", nil},
	{"uniq cut paste fold nl wc head tail sort", `memory exhausted|line too long`, "a line is too long: make lines of the data before, with jq -c '.[]'", nil},
}

// withOption puts an option first, once.
func withOption(option string) func(args []string) []string {
	return func(args []string) []string {
		if slices.Contains(args, option) {
			return nil
		}
		return slices.Insert(args, 0, option)
	}
}

// deleting makes tr delete what it was to replace with nothing.
func deleting(args []string) []string {
	return slices.Insert(slices.DeleteFunc(args, func(a string) bool { return a == "" }), 0, "-d")
}

// plainly makes grep look for text.
func plainly(args []string) []string {
	args = slices.DeleteFunc(args, func(a string) bool { return a == "-E" || a == "-P" || a == "-G" })
	if slices.ContainsFunc(args, func(a string) bool { return regexp.MustCompile(`^-\w*[EPGF]`).MatchString(a) }) {
		return nil
	}
	return slices.Insert(args, 0, "-F")
}

// sedDelimiter ends an s command.
func sedDelimiter(args []string) []string {
	for i, arg := range args {
		if len(arg) > 3 && arg[0] == 's' && strings.Count(arg[1:], arg[1:2]) == 2 && !strings.ContainsAny(arg[1:2], `\ ;`) {
			args[i] = arg + arg[1:2]
			return args
		}
	}
	return nil
}

// awkBraces puts an action into braces.
func awkBraces(args []string) []string {
	for i, arg := range args {
		if regexp.MustCompile(`^\s*print\b[^{}]*$`).MatchString(arg) {
			args[i] = "{" + strings.TrimSpace(arg) + "}"
			return args
		}
	}
	return nil
}

// adviseJQ asks jq, and writes the arguments anew.
func adviseJQ(c Complaint) (hint string, fixed json.RawMessage) {
	p, err := jqGrammar().read("jq", c.Args)
	if err != nil {
		return "", nil
	}
	options, err := jqOptions(p)
	if err != nil {
		return "", nil
	}
	advice := jq.Advise(options, c.Said, c.Sample, c.Cut)
	if advice.Fixed == nil {
		return advice.Hint, nil
	}
	args, ok := refiltered(p, slices.Clone(c.Args), options, *advice.Fixed)
	if !ok {
		return advice.Hint, nil
	}
	return advice.Hint, fix(member{"args", args})
}

// refiltered changes the filter and the flags for the input in the arguments of jq.
func refiltered(p *parsed, args []string, old, now jq.Options) ([]string, bool) {
	if ops := p.operands(); len(ops) > 0 {
		args[ops[0].at] = now.Filter
	} else {
		args = append(args, now.Filter)
	}
	for _, f := range []struct {
		letter, long string
		had, has     bool
	}{
		{"n", "--null-input", old.NullInput, now.NullInput},
		{"s", "--slurp", old.Slurp, now.Slurp},
		{"R", "--raw-input", old.RawInput, now.RawInput},
	} {
		switch {
		case f.has && !f.had:
			args = slices.Insert(args, 0, "-"+f.letter)
		case f.had && !f.has:
			args = withoutFlag(args, now.Filter, f.letter, f.long)
		}
	}
	check, err := jqGrammar().read("jq", args)
	if err != nil {
		return nil, false
	}
	got, err := jqOptions(check)
	return args, err == nil && got.Filter == now.Filter && got.NullInput == now.NullInput && got.Slurp == now.Slurp && got.RawInput == now.RawInput
}

// withoutFlag leaves a flag out of arguments, alone or in a cluster.
func withoutFlag(args []string, filter, letter, long string) []string {
	var left []string
	for _, arg := range args {
		cluster := len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && arg != filter
		switch {
		case arg == long:
			continue
		case cluster:
			if arg = strings.ReplaceAll(arg, letter, ""); arg == "-" {
				continue
			}
		}
		left = append(left, arg)
	}
	return left
}
