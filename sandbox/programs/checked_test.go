package programs_test

import (
	"context"
	"io"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// check parses arguments and checks the script in them, here and not in a jail.
func check(name string, args []string, inputs ...string) (programs.Invocation, error) {
	inv, err := programs.Parse(name, args, programs.Given{Inputs: inputs})
	if err != nil {
		return inv, err
	}
	if p, _ := programs.Find(name); p.Script {
		_, verdict := p.Ready(inv.Argv[1:], nil)
		inv.Traits, err = inv.Judge(name, args, verdict)
	}
	return inv, err
}

// run runs a program of this module as a worker does.
func run(ctx context.Context, p programs.Program, args []string, input programs.Inputs, in io.Reader, out, errOut io.Writer) int {
	ready, _ := p.Ready(args, input)
	return ready(ctx, programs.IO{In: in, Out: out, Err: errOut})
}
