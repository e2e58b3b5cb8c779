//go:build !race

package programs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// TestOptionsAgree writes every allowed option in every way that an agent might (in full, abbreviated, short, with the
// value attached and apart, in a cluster) and gives the result to the real tool; the canonical arguments give the same output and
// the same exit status. So that a row is worth something, the output without the option is another one.
func TestOptionsAgree(t *testing.T) {
	for _, r := range optionRows(t) {
		p, ok := programs.Find(r.Command)
		if !ok {
			t.Fatalf("no program %s", r.Command)
		}
		i := slices.IndexFunc(programs.AllowedOptions(p), func(a programs.Allowed) bool { return a.Option == r.Option })
		if i < 0 {
			t.Errorf("%s has no option %s", r.Command, r.Option)
			continue
		}
		t.Run(r.Command+" "+r.Option+strings.Join(r.Values, " "), func(t *testing.T) {
			t.Parallel()
			r.test(t, p, programs.AllowedOptions(p)[i])
		})
	}
}
