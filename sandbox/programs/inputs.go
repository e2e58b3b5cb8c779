package programs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
	"github.com/mcsh-dev/mcsh/stages"
)

// useInputs says which commands read named inputs.
const useInputs = `named inputs are for join, comm and paste (join - @b), grep -f @b, and jq --slurpfile NAME @b or --rawfile NAME @b`

// isInputName says whether an argument is meant as the name of a second input, such as @users.
func isInputName(arg string) bool { return len(arg) > 1 && arg[0] == '@' && jq.IsName(arg[1:]) }

// inputs returns the names of the inputs that the words read, each once. All must be among those that are there.
func (p *parsed) inputs(there []string) ([]string, *stages.Error) {
	var names []string
	for _, w := range p.words {
		name, ok := strings.CutPrefix(w.source, "@")
		switch {
		case !ok || slices.Contains(names, name):
			continue
		case !slices.Contains(there, name):
			return nil, unboundInput(p.Name, name, there, w.at)
		}
		names = append(names, name)
	}
	return names, nil
}

func unboundInput(program, name string, there []string, at int) *stages.Error {
	hint := fmt.Sprintf(`add "inputs": {%q: [stages]} to the stage: they run once, on empty input, and %s reads their output as @%s`, texts.Cut(name, maxShown), program, texts.Cut(name, maxShown))
	if near := nearest.Name(name, there); near != "" {
		hint = fmt.Sprintf("did you mean @%s? %s", near, hint)
	}
	return refuse(at, hint, "%s: there is no input @%s", program, texts.Cut(name, maxShown))
}

// notRead refuses an input that no argument names: it would run for nothing.
func notRead(p Program, input string) *stages.Error {
	hint := "leave it out: " + useInputs
	if p.atInput != "" {
		hint = fmt.Sprintf(`name it in "args", for example %s; or leave it out`, fmt.Sprintf(p.atInput, texts.Cut(input, maxShown)))
	}
	err := stages.Errorf(stages.InvalidPipeline, hint, "%s does not read the input @%s", p.Name, texts.Cut(input, maxShown))
	err.Field = "inputs." + input
	return err
}

// noInput refuses the name of an input where a program reads none.
func noInput(name string, at int, arg string) *stages.Error {
	return refuse(at, useInputs, "%s: the input %s cannot be read here", name, texts.Cut(arg, maxShown))
}

// dashesAndInputs is for programs to which every operand is an input: "-" is their own, the others have names.
func dashesAndInputs(p *parsed, _ *Invocation) *stages.Error { return p.take(0, true) }

// twoInputs is for programs that compare two inputs, one of which at most is the command's own.
func twoInputs(p *parsed, inv *Invocation) *stages.Error {
	if err := dashesAndInputs(p, inv); err != nil {
		return err
	}
	ops := p.operands()
	if len(ops) != 2 {
		return refuse(-1, `for example "args": ["-", "@b"], "inputs": {"b": [stages]}`,
			"%s: two inputs are needed, - for what the stage before wrote and the name of another, not %d", p.Name, len(ops))
	}
	if ops[0].value == "-" && ops[1].value == "-" {
		return refuse(ops[1].at, `name the other input: "args": ["-", "@b"], "inputs": {"b": [stages]}`,
			"%s: only one of the two inputs can be the stage before", p.Name)
	}
	return nil
}
