package programs_test

import (
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// check parses arguments and checks the script in them, here and not in a jail.
func check(name string, args []string, inputs ...string) (programs.Invocation, error) {
	inv, err := programs.Parse(name, args, inputs...)
	if err != nil {
		return inv, err
	}
	if p, _ := programs.Find(name); p.HasScript() {
		inv.Traits, err = inv.Judge(name, args, p.Verdict(inv.Argv[1:]))
	}
	return inv, err
}
