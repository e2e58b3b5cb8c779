package programs

import (
	"slices"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// judgeValues refuses values that would be more than values: the program of jq, awk or sed, and the name of an input.
func (p *parsed) judgeValues(args []string, there Given, inv Invocation) *stages.Error {
	for _, at := range there.Values {
		script := inv.ScriptAt == at || slices.ContainsFunc(p.words, func(w word) bool { return w.is(p.script) && max(w.at, w.from) == at })
		switch {
		case script && (p.Script || p.script != "" && p.script != "regexp"):
			return refuse(at, "write the program in the plan; one of jq reads values as $params", "%s: a value cannot be its program", p.Name)
		case at < len(args) && isInputName(args[at]) && slices.Contains(there.Inputs, args[at][1:]):
			return refuse(at, "give another value", "%s: the value %s is the name of an input of this command", p.Name, texts.Quote(args[at]))
		}
	}
	return nil
}
