package programs

import (
	"slices"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// An arranger checks the arguments of a program together, and may change them.
type arranger = func(p *parsed, inv *Invocation) *stages.Error

// take reads the operands behind the first ones: "-", files, and with inputs the names of inputs.
func (p *parsed) take(first int, inputs bool) *stages.Error {
	for i, w := range p.words {
		switch {
		case w.opt != nil:
		case first > 0:
			first--
		case w.value == "-" && !p.FilesOnly:
		case inputs && isInputName(w.value):
			p.words[i].source = w.value
		default:
			if err := p.reads(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// dashesOnly is for programs to which "-" means more than its absence: wc then prints a name.
func dashesOnly(p *parsed, _ *Invocation) *stages.Error { return p.take(0, false) }

// stdinOnly is for programs that read their input, or files in its place. Without files "-" is left out.
func stdinOnly(p *parsed, _ *Invocation) *stages.Error {
	if err := p.take(0, false); err != nil {
		return err
	}
	if p.named() != nil {
		if ops := p.operands(); p.oneFile && len(ops) > 1 { // uniq would write the second one
			return refuse(ops[1].at, "let a stage before put them together, such as tail -q -n +1", "%s reads one file, not %d", p.Name, len(ops))
		}
		return nil
	}
	p.drop(func(word) bool { return true })
	return nil
}

// scriptFirst is for programs whose first operand is the script or the pattern unless an option gave one, or a named input
// does: it becomes that option.
func scriptFirst(what, example string) arranger {
	return func(p *parsed, inv *Invocation) *stages.Error {
		if !p.has(p.script) && !p.has("file") {
			i := slices.IndexFunc(p.words, func(w word) bool { return w.opt == nil })
			if i < 0 {
				return refuse(-1, "for example "+example, "%s: the %s is missing", p.Name, what)
			}
			p.words[i].opt, p.words[i].has = p.long(p.script), true
		}
		for _, w := range p.words {
			if what == "script" && w.is(p.script) {
				if err := quotedScript(p, w); err != nil {
					return err
				}
			}
		}
		return stdinOnly(p, inv)
	}
}

// quotedScript refuses a script that still wears the quotes that a shell would have taken off.
func quotedScript(p *parsed, w word) *stages.Error {
	s := w.value
	if len(s) < 2 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return nil
	}
	return refuse(w.at, "write "+texts.JSON(s[1:len(s)-1]),
		"%s: %s is quoted for a shell, but no shell reads it", p.Name, texts.Quote(s))
}
