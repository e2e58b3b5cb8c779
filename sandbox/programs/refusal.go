package programs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/stages"
)

// refuse makes a DISALLOWED_ARGUMENT error about the argument at index at, or about all of them if at is negative.
func refuse(at int, hint, format string, args ...any) *stages.Error {
	err := stages.Errorf(stages.DisallowedArgument, hint, format, args...)
	err.Field = "args"
	if at >= 0 {
		err.Field = fmt.Sprintf("args[%d]", at)
	}
	return err
}

// shellWords are arguments that only mean something to a shell.
var shellWords = map[string]string{
	"|": "make what follows a command stage of its own", "|&": "make what follows a command stage of its own",
	"||": "a failing stage ends the pipeline", "&&": "every stage runs only if the plan holds: make what follows a stage of its own",
	";": "make what follows a stage of its own", "&": "stages already run at the same time",
	">": useStdout, ">>": useStdout, "2>&1": useNothing, "2>/dev/null": useNothing, ">/dev/null": useNothing,
	"<": useStdin, "<<": useStdin, "<<<": useStdin,
}

// noFile refuses an operand that names a file.
func noFile(name string, w word) *stages.Error {
	if use, ok := shellWords[w.value]; ok {
		return refuse(w.at, use, "%s: %s has no meaning here: no shell reads a command's arguments", name, quote(w.value))
	}
	if isInputName(w.value) {
		return noInput(name, w.at, w.value)
	}
	return refuse(w.at, useStdin, "%s: file operands such as %s are not available: there are no files", name, quote(w.value))
}

// unknown refuses an option that is not in the grammar. letters is the cluster that it stands in.
func (r *reader) unknown(at int, opt, letters string) *stages.Error {
	hint := "offered: " + r.grammar.offered()
	if len(letters) > 1 && r.grammar.long(letters) != nil {
		hint = "write --" + letters
	} else if near := r.grammar.nearest(strings.TrimPrefix(opt, "--")); near != "" && strings.HasPrefix(opt, "--") {
		hint = "did you mean --" + near + "? " + hint
	}
	return refuse(at, hint, "%s: %s is not an option that is offered here", r.name, shorten(opt))
}

// offered lists the options of a grammar that have an effect.
func (g *grammar) offered() string {
	var names []string
	for i := range g.options {
		if o := &g.options[i]; o.fate == kept && o.as == "" {
			names = append(names, o.String())
		}
	}
	return strings.Join(names, " ")
}

// nearest returns the long option that is most like name, or "".
func (g *grammar) nearest(name string) string {
	var names []string
	for i := range g.options {
		if g.options[i].fate != refused && g.options[i].long != "" {
			names = append(names, g.options[i].long)
		}
	}
	return nearest.Name(name, names)
}

// shorten cuts s to a length that an error can carry.
func shorten(s string) string {
	const limit = 60
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func quote(s string) string { return strconv.Quote(shorten(s)) }
