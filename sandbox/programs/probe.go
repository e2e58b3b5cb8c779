package programs

import "slices"

// ArgProbe returns the invocation changed so that, run on empty input, the program finds what is wrong with its arguments,
// exits with a status that is no success if anything is, and does no more. It returns false where the grammar leaves
// nothing to be found, or where empty input would be a mistake of its own.
func (inv Invocation) ArgProbe() (Invocation, bool) {
	if !inv.tries {
		return inv, false
	}
	if inv.bare != nil {
		inv.Argv, inv.Files = inv.bare, nil
	}
	return inv.with(inv.program.dry), true
}

// given is for programs that may refuse any arguments, but not that there are none.
func given(p *parsed) bool { return len(p.words) > 0 }

// several is for programs that may refuse some options beside others.
func several(p *parsed) bool { return len(p.words) > 1 }

// givenAny is for programs that may refuse the values of some options.
func givenAny(options ...string) func(p *parsed) bool {
	return func(p *parsed) bool { return slices.ContainsFunc(options, p.has) }
}

// scriptAt returns the index of the argument that is the program's script, or its pattern; -1 if there is none.
func (p *parsed) scriptAt() int {
	for _, w := range p.words {
		if p.script != "" && (w.opt == nil || w.is(p.script)) || p.Script && w.opt == nil {
			return w.at
		}
	}
	return -1
}
