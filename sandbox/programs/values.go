package programs

import (
	"slices"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// judgeValues refuses values that would be more than values: the program of jq, awk or sed, and the name of an input.
func (p *parsed) judgeValues(args []string, there Given, inv Invocation) *stages.Error {
	for _, at := range there.Values {
		switch {
		case p.scriptIs(at, inv.ScriptAt):
			return refuse(at, "write the program in the plan; one of jq reads values as $params", "%s: a value cannot be its program", p.Name)
		case at < len(args) && isInputName(args[at]) && slices.Contains(there.Inputs, args[at][1:]):
			return refuse(at, "give another value", "%s: the value %s is the name of an input of this command", p.Name, texts.Quote(args[at]))
		}
	}
	return nil
}

// scriptIs reports whether the program of jq, awk or sed is an argument; scriptAt is the operand that may be one.
func (p *parsed) scriptIs(at, scriptAt int) bool {
	script := scriptAt == at || slices.ContainsFunc(p.words, func(w word) bool { return w.is(p.script) && max(w.at, w.from) == at })
	return script && (p.Script || p.script != "" && p.script != "regexp")
}

// Scripts returns those of some arguments of a command that are its program with any values: of jq, awk or sed.
func Scripts(name string, args []string, values []int) (scripts []int) {
	p, _ := Find(name)
	w, err := p.read(args, values...)
	for _, at := range values {
		if err == nil && w.scriptIs(at, w.scriptAt()) {
			scripts = append(scripts, at)
		}
	}
	return scripts
}
