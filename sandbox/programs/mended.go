package programs

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/stages"
)

// A mend changes arguments that were refused, about the one at index at, into what was meant, or returns nil. It is
// right only if what it returns is accepted.
type mend func(p Program, args []string, at int, refused *stages.Error) []string

// mendings are tried in this order.
var mendings = []mend{
	corrected, unquotedScript, apart, countOption, tabulator, listOption, nearOption, withoutShell, withoutOption, withoutFile,
}

// mendedArgs is how many mistakes of one argv are mended.
const mendedArgs = 4

// mended gives a refusal the arguments that would be accepted, where they can be derived.
func (p Program) mended(args []string, there Given, refused *stages.Error) *stages.Error {
	first := *refused
	for range mendedArgs {
		at := argAt(refused)
		if at >= len(args) {
			return &first
		}
		next := p.mendOnce(args, at, refused)
		if next == nil {
			return &first
		}
		args = next
		if _, refused = p.parse(args, there); refused == nil {
			first.Fix = fix(member{"args", args})
			return &first
		}
	}
	return &first
}

func (p Program) mendOnce(args []string, at int, refused *stages.Error) []string {
	for _, m := range mendings {
		if next := m(p, slices.Clone(args), at, refused); next != nil && !slices.Equal(next, args) {
			return next
		}
	}
	return nil
}

// argAt returns the index of the argument that a refusal is about, or -1.
func argAt(e *stages.Error) int {
	number, ok := strings.CutPrefix(e.Field, "args[")
	if at, err := strconv.Atoi(strings.TrimSuffix(number, "]")); ok && err == nil {
		return at
	}
	return -1
}

// member is one of the members of a stage's JSON.
type member struct {
	name  string
	value any
}

// fix writes members of a stage that would be right.
func fix(members ...member) json.RawMessage {
	var b strings.Builder
	for i, m := range members {
		b.WriteString([]string{",", "{"}[btoi(i == 0)] + jsonText(m.name) + ":" + jsonText(m.value))
	}
	return json.RawMessage(b.String() + "}")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// corrected takes what the refusal knows already.
func corrected(_ Program, args []string, at int, refused *stages.Error) []string {
	var known struct{ Args []string }
	if refused.Fix == nil || json.Unmarshal(refused.Fix, &known) != nil || at < 0 || len(known.Args) != 1 {
		return nil
	}
	args[at] = known.Args[0]
	return args
}

// unquotedScript takes off the quotes that a shell would have taken off.
func unquotedScript(_ Program, args []string, at int, _ *stages.Error) []string {
	if at < 0 || len(args[at]) < 2 {
		return nil
	}
	s := args[at]
	if q := s[0]; (q == '\'' || q == '"') && s[len(s)-1] == q && !strings.ContainsRune(s[1:len(s)-1], rune(q)) {
		args[at] = s[1 : len(s)-1]
		return args
	}
	return nil
}

var together = lazy.Regexp(`^(--?[A-Za-z][\w-]*)[ \t]+(\S(?s:.*))$`)

// apart splits an option from what follows it in the same argument: "-r .name".
func apart(_ Program, args []string, at int, _ *stages.Error) []string {
	if at < 0 {
		return nil
	}
	m := together().FindStringSubmatch(args[at])
	if m == nil {
		return nil
	}
	return slices.Replace(args, at, at+1, m[1], m[2])
}

// countOption gives head and tail their number as an option.
func countOption(p Program, args []string, at int, _ *stages.Error) []string {
	if at < 0 || p.grammar().number != "lines" {
		return nil
	}
	if _, err := strconv.ParseUint(args[at], 10, 40); err != nil {
		return nil
	}
	return slices.Insert(args, at, "-n")
}

// tabulator puts a tab where a shell would have made one of \t.
func tabulator(_ Program, args []string, at int, refused *stages.Error) []string {
	if at < 0 || !strings.Contains(refused.Hint, "tab character") {
		return nil
	}
	for i := at; i < min(at+2, len(args)); i++ {
		if s := strings.Replace(args[i], `\t`, "\t", 1); s != args[i] {
			args[i] = s
			return args
		}
	}
	return nil
}

// listOption gives cut its list of fields as an option.
func listOption(p Program, args []string, _ int, refused *stages.Error) []string {
	if p.Name != "cut" || refused.Field != "args" {
		return nil
	}
	for i, arg := range args {
		if arg != "" && arg[0] != '-' && ranges(arg) == nil && (i == 0 || args[i-1] != "-d") {
			return slices.Insert(args, i, "-f")
		}
	}
	return nil
}

var namedOption = lazy.Regexp(`^(?:did you mean|write) (--[a-z][\w-]*)(?:\?|$)`)

// nearOption writes the option that the refusal takes for the one that was meant.
func nearOption(_ Program, args []string, at int, refused *stages.Error) []string {
	m := namedOption().FindStringSubmatch(refused.Hint)
	if m == nil || at < 0 {
		return nil
	}
	if _, value, ok := strings.Cut(args[at], "="); ok && strings.HasPrefix(args[at], "--") {
		m[1] += "=" + value
	}
	args[at] = m[1]
	return args
}

// withoutShell leaves out what only a shell understands, but for what begins another command.
func withoutShell(_ Program, args []string, at int, _ *stages.Error) []string {
	if at < 0 {
		return nil
	}
	switch shellWords[args[at]] {
	case useNothing:
		return slices.Delete(args, at, at+1)
	case useStdout, useStdin:
		return slices.Delete(args, at, min(at+2, len(args)))
	}
	return nil
}

// withoutOption leaves out an option that is not needed here, and its value.
func withoutOption(p Program, args []string, at int, refused *stages.Error) []string {
	if at < 0 || !strings.HasPrefix(args[at], "-") || !strings.HasPrefix(refused.Hint, "leave ") {
		return nil
	}
	name := strings.TrimLeft(args[at], "-")
	if !strings.HasPrefix(args[at], "--") && len(name) > 1 {
		return nil // one of several in a cluster
	}
	o := p.grammar().long(name)
	if o == nil && len(name) == 1 {
		o = p.grammar().short(name[0])
	}
	if o == nil {
		return nil
	}
	n := 1
	if o.takes == one {
		n = 2
	}
	return slices.Delete(args, at, min(at+n, len(args)))
}

// withoutFile leaves out an operand that names a file: the data comes from the stage before.
func withoutFile(_ Program, args []string, at int, refused *stages.Error) []string {
	if at < 0 || !strings.HasPrefix(refused.Hint, useStdin) || strings.HasPrefix(args[at], "-") {
		return nil
	}
	return slices.Delete(args, at, at+1)
}
