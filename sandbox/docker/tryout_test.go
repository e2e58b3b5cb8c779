package docker_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestTryoutsContainer: what tries out the commands of a plan takes no container from others: the run of the plan goes on
// in the same one.
func TestTryoutsContainer(t *testing.T) {
	needEngine(t)
	p := newPoolOf(t, options(), cold)
	for i := range 3 { // what a program has said of its arguments is remembered
		plan, errs := stages.Compile(t.Context(), fmt.Appendf(nil, `[{"type":"command","command":"sed","args":["s/a/%d/"]}]`, i), stages.Deps{Commands: p, Caller: "a", CheckOnly: true})
		if errs != nil {
			t.Fatal(errs)
		}
		var out bytes.Buffer
		if _, err := plan.Run(t.Context(), nil, &out, stages.RunOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(ours(t)); n != 1 {
		t.Errorf("%d containers, want 1", n)
	}
}
