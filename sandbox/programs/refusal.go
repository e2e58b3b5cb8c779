package programs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// maxShown is how many bytes of a text a refusal shows.
const maxShown = 60

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

var together = lazy.Regexp(`^(--?[A-Za-z][\w-]*)[ \t]+(\S(?s:.*))$`)

// apart proposes the arguments that would be accepted where the one that was refused holds an option and what follows it:
// "-r .name".
func (p Program) apart(args []string, there Given, refused *stages.Error) *stages.Error {
	for at, arg := range args {
		m := together().FindStringSubmatch(arg)
		if m == nil || refused.Field != fmt.Sprintf("args[%d]", at) {
			continue
		}
		split := slices.Replace(slices.Clone(args), at, at+1, m[1], m[2])
		if _, err := p.parse(split, there); err == nil {
			refused.Hint, refused.Fix = "make every argument an element of its own", fix(stage{Args: split})
		}
	}
	return refused
}

// noFile refuses an operand that names a file.
func (p *parsed) noFile(w word) *stages.Error {
	name := p.Name
	if p.number == "lines" && count(w.value) == nil {
		return refuse(w.at, "write -n "+w.value, "%s: %s is read as the name of a file, and there are none", name, texts.Quote(w.value))
	}
	if use, ok := shellWords[w.value]; ok {
		return refuse(w.at, use, "%s: %s has no meaning here: no shell reads a command's arguments", name, texts.Quote(w.value))
	}
	if isInputName(w.value) {
		return noInput(name, w.at, w.value)
	}
	return refuse(w.at, useStdin, "%s: file operands such as %s are not available: there are no files", name, texts.Quote(w.value))
}

// unknown refuses an option that there is not. letters is the cluster that it stands in.
func (r *reader) unknown(at int, opt, letters string) *stages.Error {
	hint := "offered: " + r.offered()
	if len(letters) > 1 && r.long(letters) != nil {
		hint = "write --" + letters
	} else if near := r.nearest(strings.TrimPrefix(opt, "--")); near != "" && strings.HasPrefix(opt, "--") {
		hint = "did you mean --" + near + "? " + hint
	}
	return refuse(at, hint, "%s: %s is not an option that is offered here", r.Name, texts.Cut(opt, maxShown))
}

// offered lists the options that have an effect.
func (p *Program) offered() string {
	var names []string
	for o := range p.each {
		if o.fate == kept && o.as == "" {
			names = append(names, o.String())
		}
	}
	return strings.Join(names, " ")
}

// nearest returns the long option that is most like name, or "".
func (p *Program) nearest(name string) string {
	var names []string
	for o := range p.each {
		if o.fate != refused && o.long != "" {
			names = append(names, o.long)
		}
	}
	return nearest.Name(name, names)
}
